"""Deadlines: 30 % of the queries are due after 1 to 3 times what they take alone, at 80 % load.

100 queries of the long-tailed mix without its longest, by a Poisson process. Peers: a session under
`fifo`, and plain DuckDB. A query that is late has missed; the others count as well in the mean
response, which is shown as well. Beside them stands a clairvoyant scheduler whose slots overstay
as those of the session did (see `overstaying`): the better of earliest deadline first and least
laxity first.

python -m bench.live.deadlines [--seeds 5]: about 40 s per run on two cores, three runs per seed,
after about a minute in which all templates are measured alone.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping, Sequence
from functools import partial

from queryard.load import Alone, Ground, Played, Request, draw, run

from . import mixes
from .overstaying import clairvoyant, earliest_deadline, least_laxity, play_watched, told
from .setting import OURS, PLAIN, Setting, checked, in_turn, setting
from .verdict import Figure, ratio, show

QUERIES, LOAD, DUE = 100, 0.8, 0.3
FIFO = "fifo"
MOST_OF_FIFO = 0.35
STEPS = "clairvoyant, overstaying"


def bench(chosen: Setting) -> None:
    size = chosen.given.scale_time or (0.1 if chosen.quick else 1.0)
    ground = chosen.ground(*mixes.scales(size))
    spec = mixes.spec("deadlines", mixes.short_tailed(size), QUERIES, size, LOAD, DUE)
    measured = chosen.measure(ground, [spec])
    found, possible, at_once = [], [], []
    for seed in range(chosen.seeds):
        asked = draw(spec, seed=seed, work_s=measured.work_s, slots=ground.slots)
        overstays: dict[str, list[float]] = {}
        played = in_turn(
            seed,
            {
                OURS: partial(_ours, asked, ground, measured.alone, overstays),
                FIFO: partial(run, asked, FIFO, ground, measured.alone),
                PLAIN: partial(run, asked, PLAIN, ground, measured.alone),
            },
        )
        checked(played)
        print(f"  seed {seed}: {told(overstays)}", flush=True)
        for misses, steps in ((possible, overstays), (at_once, {})):
            misses.append(_least_missed(asked, measured.alone, ground.slots, steps, seed))
        found.append(played)
        all_told = ", ".join(
            f"{name} {_missed(one)} (mean {_mean_s(one):.2f} s)" for name, one in played.items()
        )
        due = sum(outcome.due_s is not None for outcome in played[OURS].outcomes)
        print(
            f"  seed {seed}: of {due} deadlines missed: {all_told}, {STEPS} {possible[-1]}, "
            f"without overstaying {at_once[-1]}",
            flush=True,
        )
    missed = {name: [_missed(played[name]) for played in found] for name in (OURS, FIFO, PLAIN)}
    figures = []
    for name, target in ((FIFO, MOST_OF_FIFO), (PLAIN, None)):
        pairs = list(zip(missed[OURS], missed[name], strict=True))
        figures.append(
            Figure(f"misses, of {name}'s", [ratio(ours, theirs) for ours, theirs in pairs], target)
        )
        total = ratio(sum(missed[OURS]), sum(missed[name]))
        figures.append(Figure(f"misses of all seeds together, of {name}'s", [total]))
    figures += [
        Figure(f"{STEPS}: misses", possible),
        Figure(
            f"{STEPS}: misses of all seeds, of fifo's", [ratio(sum(possible), sum(missed[FIFO]))]
        ),
        Figure("clairvoyant, no step overstays: misses", at_once),
    ]
    for name, counts in missed.items():
        figures.append(Figure(f"{name}: misses", counts))
        figures.append(
            Figure(f"{name}: mean response", [_mean_s(p[name]) for p in found], unit="s")
        )
    show("30 % of the queries with deadlines", figures, chosen, size=size)


def _ours(
    asked: Sequence[Request],
    ground: Ground,
    alone: Mapping[str, Alone],
    overstays: dict[str, list[float]],
) -> Played:
    played, seen = play_watched(asked, OURS, ground, alone)
    overstays.update(seen)
    return played


def _least_missed(
    asked: Sequence[Request],
    alone: Mapping[str, Alone],
    slots: int,
    overstays: Mapping[str, Sequence[float]],
    seed: int,
) -> int:
    """The misses of the better clairvoyant rule."""
    due_s = {request.id: request.due_within_s(alone) for request in asked}
    counts = []
    for rule in (earliest_deadline, least_laxity):
        responses = clairvoyant(asked, alone, slots, rule, overstays, seed)
        counts.append(
            sum(
                due_s[name] is not None and took_s > due_s[name] + 1e-6
                for name, took_s in responses.items()
            )
        )
    return min(counts)


def _missed(played: Played) -> int:
    return sum(outcome.has_missed for outcome in played.outcomes)


def _mean_s(played: Played) -> float:
    return statistics.fmean(outcome.response_s or 0.0 for outcome in played.outcomes)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scale-time", type=float, help="shrink all sizes by this factor")


def main(arguments: Sequence[str] | None = None) -> None:
    bench(setting("deadlines", __doc__, arguments, _options))


if __name__ == "__main__":
    main()
