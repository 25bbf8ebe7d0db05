"""A portfolio in a session beside every policy that it chooses from, on loads that change.

Each load has three phases, and an objective that the portfolio is asked for. The score of a run is
that objective over all its queries, with the work that each template takes alone. The portfolio's
score over that of the best fixed policy of the seed is the figure; the worst is shown to say that
the choice matters. Beside it: the share of a core that deciding took, its worker's start included,
how long a decision over fifty waiting queries takes, and one from memory.

python -m bench.portfolio_live [--seeds 5] [--only flood]: about 13 min on two cores.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.live.setting import Setting, checked, in_turn, schema
from bench.live.verdict import Figure, show
from queryard.engine.budget import memory_budget, slot_range
from queryard.load import Alone, Ground, Played, Request, SessionTarget, measure_alone, play
from queryard.portfolio import Objective, QueryEnd, Schedule, objective_of

from .deciding import from_memory, over_fifty
from .loads import LOADS, Kinds, Machine, examples

CANDIDATES = ("marshal", "fifo", "swrd", "edf")
PORTFOLIO = "portfolio"
PHASE_S, QUICK_PHASE_S = 3.0, 1.0
SCALES, QUICK_SCALES = (0.1, 1.0), (0.01, 0.1)
NEAR, APART, SHARE, DECIDES_S, RECALLS_S = 1.05, 1.5, 0.05, 0.5, 0.01


@dataclass(frozen=True)
class Run:
    """One run: its score, what it played, and what deciding took."""

    played: Played
    score: float
    share: float = 0.0
    chosen: tuple[str, ...] = ()


def one_run(
    name: str,
    objective: Objective,
    asked: Sequence[Request],
    ground: Ground,
    alone: dict[str, Alone],
) -> Run:
    profile: object = name
    if name == PORTFOLIO:
        profile = {"portfolio": {"objective": objective.name, "candidates": list(CANDIDATES)}}
    target = SessionTarget(name, ground, profile)  # type: ignore[arg-type]
    try:
        began_s = target.session.now()
        played = play(asked, target, alone)
        took_s = target.session.now() - began_s
        cpu_s = target.session.report().portfolio_cpu_s
        decisions = target.session.policy_decisions(1000)
    finally:
        target.close()
    chosen = tuple(each["chosen"] for each in reversed(decisions) if each["dropped"] is None)
    return Run(played, score_of(objective, played, alone), cpu_s / took_s, chosen)


def score_of(objective: Objective, played: Played, alone: dict[str, Alone]) -> float:
    """The objective over all queries of a run."""
    queries = tuple(
        QueryEnd(
            outcome.request.id,
            outcome.request.time_s,
            math.inf if outcome.ended_s is None else outcome.ended_s,
            alone[outcome.request.template].work_s,
            outcome.due_s,
            outcome.request.tenant,
        )
        for outcome in played.outcomes
    )
    return objective.score(objective.vector(Schedule(queries)))


def bench_load(name: str, chosen: Setting, ground: Ground, alone: dict[str, Alone]) -> list[Figure]:
    draw, words = LOADS[name]
    objective = objective_of(words)
    work_s = {each: found.work_s for each, found in alone.items()}
    machine = Machine(kinds_of(chosen), work_s, ground.slots)
    phase_s = QUICK_PHASE_S if chosen.quick else PHASE_S
    ratios: list[float] = []
    worst: list[float] = []
    shares: list[float] = []
    for seed in range(chosen.seeds):
        asked = draw(machine, phase_s, seed)
        runs: dict[str, Callable[[], Run]] = {
            policy: partial(one_run, policy, objective, asked, ground, alone)
            for policy in (PORTFOLIO, *CANDIDATES)
        }
        found = in_turn(seed, runs)
        checked({policy: run.played for policy, run in found.items()})
        fixed = {policy: found[policy].score for policy in CANDIDATES}
        best = min(fixed, key=lambda policy: fixed[policy])
        ratios.append(found[PORTFOLIO].score / fixed[best])
        worst.append(max(fixed.values()) / fixed[best])
        shares.append(found[PORTFOLIO].share)
        scores = ", ".join(f"{policy} {score:.3g}" for policy, score in fixed.items())
        used = found[PORTFOLIO].chosen
        counts = {policy: used.count(policy) for policy in CANDIDATES if policy in used}
        print(
            f"  {name}, seed {seed}, {len(asked)} queries: portfolio {found[PORTFOLIO].score:.3g} "
            f"({ratios[-1]:.2f} of {best}; decided for {counts}); {scores}",
            flush=True,
        )
    mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))
    return [
        Figure(f"{name}: score, of the best fixed policy's", ratios, NEAR),
        Figure("  geometric mean over the seeds", [mean], NEAR),
        Figure(f"  the worst fixed policy's, of the best's (at least {APART:g})", worst),
        Figure("  share of a core for deciding", shares, SHARE, "%"),
    ]


def kinds_of(chosen: Setting) -> Kinds:
    small, middle = QUICK_SCALES if chosen.quick else SCALES
    return Kinds.of(schema(small), schema(middle))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.portfolio_live",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, default=None, help="default: 5")
    parser.add_argument("--only", default=",".join(LOADS), help="loads; default: %(default)s")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "queryard-bench")
    parser.add_argument("--out", type=Path, help="keep the figures in this file (JSON)")
    parser.add_argument("--slots", type=int, help="default: all cores")
    parser.add_argument("--memory", help="the budget, such as 8GB (default: 70 %% of the machine)")
    parser.add_argument("--quick", action="store_true", help="one seed, a tenth of the data")
    given = parser.parse_args(arguments)
    chosen = Setting(
        seeds=given.seeds if given.seeds is not None else 1 if given.quick else 5,
        data=given.data,
        out=given.out,
        alone=None,
        quick=given.quick,
        slots=slot_range(given.slots)[1],
        memory_bytes=memory_budget(given.memory),
        given=given,
    )
    names = [name for name in given.only.split(",") if name]
    for name in names:
        if name not in LOADS:
            parser.error(f"unknown load {name!r} (valid: {', '.join(LOADS)})")
    figures: list[Figure] = []
    if names:
        ground = chosen.ground(*(QUICK_SCALES if chosen.quick else SCALES))
        measured = measure_alone(ground, examples(kinds_of(chosen)))
        if measured.failed:
            raise SystemExit(f"error: queries that fail alone: {measured.failed}")
        for name in names:
            figures += bench_load(name, chosen, ground, measured.alone)
    times = 3 if chosen.quick else 10
    figures.append(
        Figure("a decision over 50 queries", over_fifty(chosen.slots, times), DECIDES_S, "s")
    )
    figures.append(Figure("one from memory", from_memory(chosen.slots, times), RECALLS_S, "s"))
    show("a portfolio beside its candidates", figures, chosen)


if __name__ == "__main__":
    main()
