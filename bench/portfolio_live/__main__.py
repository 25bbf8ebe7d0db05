"""A portfolio in a session beside every policy that it chooses from, on loads that change.

Each load has three phases, and an objective that the portfolio is asked for. The score of a run is
that objective over all its queries, with the work that each template takes alone. The portfolio's
score over that of the best fixed policy of the seed is the figure; the worst is shown to say that
the choice matters. Beside it: the share of a core that deciding took while loads were played, how
long a decision over fifty waiting queries takes, and one from memory.

python -m bench.portfolio_live [--seeds 5] [--first 0] [--only flood]: about 40 min on two cores.
python -m bench.portfolio_live --virtual [--seeds 5] [--first 0] [--without reflection,arrivals]:
the same loads in virtual time, where nothing runs; the same seeds give the same figures. 2 min.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from bench.live.setting import Setting, schema
from bench.live.verdict import WIDTH, Figure, show
from queryard.engine.instances.budget import memory_budget, slot_range
from queryard.load import measure_alone
from queryard.portfolio import objective_of
from queryard.portfolio.documents import in_usual_order

from .deciding import from_memory, over_fifty
from .live import Progress, bench_load
from .loads import LOADS, Kinds, Machine, examples
from .results import CANDIDATES, PORTFOLIO, Results, Seed
from .virtual import MACHINE, Variant, fixed_run, portfolio_run

# Long enough for several decisions at 5 % of a core.
PHASE_S, QUICK_PHASE_S = 8.0, 1.0
SCALES, QUICK_SCALES = (0.1, 1.0), (0.01, 0.1)
DECIDES_S, RECALLS_S = 0.5, 0.01
PARTS = ("reflection", "memory", "arrivals")


def in_real_time(chosen: Setting, names: Sequence[str]) -> list[Results]:
    scales = QUICK_SCALES if chosen.quick else SCALES
    kinds = Kinds.of(*(schema(scale) for scale in scales))
    # All sessions of a load are open at once.
    ground = chosen.ground(*scales)
    ground = replace(ground, memory_bytes=ground.memory_bytes // (1 + len(CANDIDATES)))
    print("  measuring what queries take alone", flush=True)
    measured = measure_alone(ground, examples(kinds))
    if measured.failed:
        raise SystemExit(f"error: queries that fail alone: {measured.failed}")
    work_s = {each: found.work_s for each, found in measured.alone.items()}
    machine = Machine(kinds, work_s, ground.slots)
    phase_s = chosen.given.phase_s
    progress = Progress(len(names) * (1 + chosen.seeds) * (1 + len(CANDIDATES)))
    return [
        bench_load(name, chosen, ground, machine, measured.alone, phase_s, progress)
        for name in names
    ]


def in_virtual_time(chosen: Setting, names: Sequence[str]) -> list[Results]:
    without = chosen.given.without
    variant = Variant(
        reflects="reflection" not in without,
        remembers="memory" not in without,
        expects="arrivals" not in without,
    )
    first = chosen.given.first
    progress = Progress(len(names) * chosen.seeds)
    found = []
    for name in names:
        draw, words = LOADS[name]
        objective = objective_of(words)
        document = {"objective": words, "candidates": in_usual_order(words, CANDIDATES)}
        results = Results(name, words)
        for seed in range(first, first + chosen.seeds):
            asked = draw(MACHINE, chosen.given.phase_s, seed)
            scores = {policy: fixed_run(policy, objective, asked, seed) for policy in CANDIDATES}
            ours = portfolio_run(document, objective, asked, seed, variant)
            by_policy = {policy: run.score for policy, run in scores.items()}
            results.seeds.append(
                Seed(
                    seed,
                    len(asked),
                    {PORTFOLIO: ours.score, **by_policy},
                    ours.cpu_s,
                    ours.took_s,
                    ours.chosen,
                )
            )
            progress.note(f"{name}, seed {seed}: {results.seeds[-1].ratio:.2f} of the best")
        found.append(results)
    return found


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
    parser.add_argument(
        "--memory", help="for all sessions together, such as 8GB (default: 70 %% of the machine)"
    )
    parser.add_argument("--quick", action="store_true", help="one seed, a tenth of the data")
    parser.add_argument("--virtual", action="store_true", help="in virtual time")
    parser.add_argument("--first", type=int, default=0, help="the first seed; default: 0")
    parser.add_argument(
        "--phase-s",
        type=float,
        help=f"the length of a phase; default: {PHASE_S}, or {QUICK_PHASE_S} with --quick",
    )
    parser.add_argument(
        "--without",
        default="",
        help=f"virtual: what the portfolio does without: {', '.join(PARTS)}",
    )
    given = parser.parse_args(arguments)
    if given.phase_s is None:
        given.phase_s = QUICK_PHASE_S if given.quick and not given.virtual else PHASE_S
    given.without = [name for name in given.without.split(",") if name]
    for name in given.without:
        if name not in PARTS:
            parser.error(f"unknown part {name!r} (valid: {', '.join(PARTS)})")
    chosen = Setting(
        seeds=given.seeds if given.seeds is not None else 1 if given.quick else 5,
        data=given.data,
        out=given.out,
        alone=None,
        quick=given.quick,
        slots=MACHINE.slots if given.virtual else slot_range(given.slots)[1],
        memory_bytes=memory_budget(given.memory),
        given=given,
    )
    names = [name for name in given.only.split(",") if name]
    for name in names:
        if name not in LOADS:
            parser.error(f"unknown load {name!r} (valid: {', '.join(LOADS)})")
    found = in_virtual_time(chosen, names) if given.virtual else in_real_time(chosen, names)
    console = Console()
    for results in found:
        (console if console.is_terminal else Console(width=WIDTH)).print(results.table())
    figures = [figure for results in found for figure in results.figures()]
    if not given.virtual:
        times = 3 if chosen.quick else 10
        print("  decisions over fifty queries, and from memory", flush=True)
        took_s, cpu_s = over_fifty(chosen.slots, times)
        figures += [
            Figure("a decision over 50 queries, beside a busy session", took_s, DECIDES_S, "s"),
            Figure("  of this, processor time", cpu_s, None, "s"),
            Figure("one from memory", from_memory(chosen.slots, times), RECALLS_S, "s"),
        ]
    show("a portfolio beside its candidates", figures, chosen)


if __name__ == "__main__":
    main()
