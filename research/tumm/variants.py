"""How TuMM's gain over 2:2 moves with what the paper leaves open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from research.numbers import as_percent
from research.outcome import RunOptions, Table, interval, of_seeds
from research.trials import Setting, parts, run_one

from .clusters import CONDITIONS, SLOW_START, setting
from .jobs import BATCH, BENCHMARKS, CONTENTION, INVERTED_INDEX, SHUFFLE, Benchmark, batch
from .shared import STATIC, TUMM, makespan_s

MOST_SEEDS = 2
USUAL = "as above"
NO_KINDS = {"slots": "open"}


def _slow_start(kind: Benchmark, share: float) -> Setting:
    return setting(batch([kind] * BATCH), slow_start=share)


def _contention(kind: Benchmark, added: float) -> Setting:
    return setting(batch([kind] * BATCH), conditions=replace(CONDITIONS, contention=added))


def _noise(kind: Benchmark, spread: float) -> Setting:
    return setting(batch([kind] * BATCH), conditions=replace(CONDITIONS, noise=spread))


def _reduces(kind: Benchmark, factor: float) -> Setting:
    return setting(batch([replace(kind, reduces=parts(kind.reduces, factor))] * BATCH))


def _shuffle(kind: Benchmark, share: float) -> Setting:
    return setting(batch([replace(kind, shuffle=share)] * BATCH))


# What is varied, how a setting is made with a value of it, and the values. The first is the usual
# one, which stands for that of all others too.
Make = Callable[[Benchmark, float], Setting]
VARIED: tuple[tuple[str, Make, tuple[float, ...]], ...] = (
    ("slow start", _slow_start, (SLOW_START, 0.5, 1.0)),
    ("contention", _contention, (0.0, CONTENTION / 2, CONTENTION * 2)),
    ("spread of task times", _noise, (0.0, 0.2, 0.4)),
    ("reduces, times the chosen", _reduces, (0.5, 2.0)),
    ("share of the shuffle", _shuffle, (SHUFFLE / 2, SHUFFLE * 2)),
)
# Parameter and value -> gain over 2:2 of all five, of Inverted Index, and over slots of no kind.
Gains = dict[tuple[str, float], tuple[float, float, float]]


def measure_variants(options: RunOptions) -> Gains:
    """TuMM's change of the makespan with every value of every parameter."""
    found: Gains = {}
    kinds = [kind.sized(options.size) for kind in BENCHMARKS]
    for what, make, values in VARIED:
        for value in values:
            options.tell(f"{what} {value:g}")
            of_index, of_all, of_kindless = [], [], []
            for seed in range(min(options.seeds, MOST_SEEDS)):
                for kind in kinds:
                    case = make(kind, value)
                    tumm_s = makespan_s(run_one(case, TUMM["TuMM"], seed))
                    gain = tumm_s / makespan_s(run_one(case, STATIC["2:2"], seed)) - 1.0
                    of_all.append(gain)
                    if kind.name == INVERTED_INDEX.name:
                        of_index.append(gain)
                    of_kindless.append(tumm_s / makespan_s(run_one(case, NO_KINDS, seed)) - 1.0)
            means = [interval(of).mean for of in (of_all, of_index, of_kindless)]
            found[what, value] = (means[0], means[1], means[2])
    return found


def variants_table(gains: Gains, options: RunOptions) -> Table:
    rows = tuple(
        (USUAL if value == SLOW_START else f"{what} {value:g}", *(as_percent(gain) for gain in of))
        for (what, value), of in gains.items()
    )
    columns = ("", "against 2:2, mean", "against 2:2, Inverted Index", "against no kinds, mean")
    seeds = of_seeds(min(options.seeds, MOST_SEEDS))
    return Table(f"TuMM's makespan with other parameters ({seeds})", columns, rows)
