"""The portfolio without one of its mechanisms at a time: what each is worth.

Every variant runs on the same workloads with the same seeds as the whole portfolio. What is shown
is the geometric mean of its scores over those of the whole portfolio, run by run, with the 95 %
interval. A mechanism pays if the interval of its removal lies above 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from unittest.mock import patch

from queryard.portfolio import (
    OBJECTIVES,
    PortfolioSettings,
    Selector,
    candidates_of,
    selection,
)

from .outcome import Experiment, Outcome, RunOptions, Table, interval
from .posum.schedulers import POLICIES, play_portfolio
from .posum.workloads import Draw, posum_setting
from .recorded.comparison import CANDIDATES
from .recorded.workloads import LOADS, STREAM_SHARE, decima, spark_stock, stream
from .trials import Setting

Patch = tuple[Any, str, Any]
GOAL = "mixed"
# A shorter workload of POSUM has no queue to speak of.
LEAST_HOURS = 0.3
# Where the draws of POSUM's other workloads begin.
OTHERS = 100
FIXED_S = 30.0
# The runs of one seed.
POSUM, POSUM_SH = "POSUM, srtf first", "POSUM, edls-sh first"
SPARK_FAIR, SPARK, DECIMA = "Spark, fair first", "Spark", "Decima"
CASES = (POSUM, SPARK_FAIR, SPARK, POSUM_SH, DECIMA)


@dataclass(frozen=True, slots=True)
class Variant:
    """Other settings, and parts of the portfolio that are replaced while it runs."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    patches: tuple[Patch, ...] = ()

    @contextmanager
    def in_place(self) -> Iterator[None]:
        with ExitStack() as stack:
            for owner, name, value in self.patches:
                stack.enter_context(patch.object(owner, name, value))
            yield


def _no_return(self: Any, scores: Mapping[str, float]) -> str:
    best = min(scores, key=lambda name: (scores[name], name != self._first, name))
    is_better = scores[best] < scores[self.current] * (1 - self.settings.margin)
    return best if is_better else str(self.current)


FULL = "the whole portfolio"
VARIANTS: Mapping[str, Variant] = {
    FULL: Variant(),
    "no margin": Variant({"margin": 0.0}),
    "the first does not come back": Variant(patches=((Selector, "best", _no_return),)),
    "a decision every 30 s": Variant({"period_s": FIXED_S, "least_s": FIXED_S}),
    "no early decision after a burst": Variant(patches=((selection, "BURST", 1.0),)),
    "no decision is dropped": Variant({"too_late": math.inf}),
}


def _settings(first: str, names: Sequence[str], share: float) -> PortfolioSettings:
    chosen = candidates_of(tuple(dict.fromkeys((first, *names))))
    return PortfolioSettings(chosen, OBJECTIVES[GOAL], share=share)


def _posum(options: RunOptions, seed: int, first: str) -> tuple[Setting, PortfolioSettings]:
    draw = Draw(OTHERS + seed, hours=max(LEAST_HOURS, options.size))
    return posum_setting(draw, seed), _settings(first, POLICIES, 0.05)


def _stream(
    stock: Any, name: str, options: RunOptions, seed: int, first: str
) -> tuple[Setting, PortfolioSettings]:
    setting = stream(name, stock(), LOADS[1], seed, options.size)
    return setting, _settings(first, CANDIDATES, STREAM_SHARE)


def _cases(
    options: RunOptions,
) -> dict[str, Callable[[int], tuple[Setting, PortfolioSettings]]]:
    found: dict[str, Any] = {
        POSUM: lambda seed: _posum(options, seed, "srtf"),
        POSUM_SH: lambda seed: _posum(options, seed, "edls-sh"),
    }
    if options.traces is not None:
        spark = partial(_once, {}, partial(spark_stock, options.traces))
        tpch = partial(_once, {}, partial(decima, options.traces))
        best = CANDIDATES[0]
        found |= {
            SPARK_FAIR: lambda seed: _stream(spark, "Spark", options, seed, "fair"),
            SPARK: lambda seed: _stream(spark, "Spark", options, seed, best),
            DECIMA: lambda seed: _stream(tpch, "Decima", options, seed, best),
        }
    return {name: found[name] for name in CASES if name in found}


def _once(kept: dict[str, Any], read: Callable[[], Any]) -> Any:
    if "stock" not in kept:
        kept["stock"] = read()
    return kept["stock"]


def run(options: RunOptions) -> Outcome:
    scores: dict[str, dict[str, list[float]]] = {}
    for case, make in _cases(options).items():
        for seed in range(options.seeds):
            setting, settings = make(seed)
            for name, variant in VARIANTS.items():
                with variant.in_place():
                    played = play_portfolio(setting, replace(settings, **variant.settings), seed)
                score = played.score(GOAL)
                options.tell(f"{case}; seed {seed}; {name}; {score:.6g}")
                scores.setdefault(name, {}).setdefault(case, []).append(score)
    return Outcome(tables=(table(scores),))


def table(scores: Mapping[str, Mapping[str, Sequence[float]]]) -> Table:
    """Every variant over the whole portfolio, by case and over all runs."""
    whole = scores[FULL]
    rows = []
    for name, by_case in scores.items():
        cells, all_logs = [], []
        for case in whole:
            if case not in by_case:
                cells.append("")
                continue
            logs = [math.log(a / b) for a, b in zip(by_case[case], whole[case], strict=True)]
            all_logs += logs
            cells.append(f"{math.exp(sum(logs) / len(logs)):.2f}")
        rows.append((name, interval(all_logs).text(lambda log: f"{math.exp(log):.2f}"), *cells))
    title = f"{GOAL} scores, of the whole portfolio's: geometric mean and 95 % interval"
    return Table(title, ("portfolio", "all runs", *whole), tuple(rows))


EXPERIMENT = Experiment(
    "portfolio-ablation",
    "The portfolio without one of its mechanisms at a time",
    "recorded streams; POSUM's workloads",
    run,
    {"load": f"{LOADS[1]:.0%} of 50 slots", "goal": GOAL},
)
