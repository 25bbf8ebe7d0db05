"""Twelve online queries with Poisson arrivals: ReLAQS beside fair sharing, both live.

python -m bench.online.arrivals [--scale 5] [--seeds 10] [--gaps 0.3,1,3]: about half a minute per
run, two runs per seed and gap: half an hour. `--short` does the same on SF 1, a third as long.

The error is the true one of the answers that were given: the median relative error over groups and
columns. A reduction of 70 % is reached once the error stays below 30 % of that of the first answer.
Gaps are in mean times of the exact queries alone. ReLAQS allots slots once per second, or once per
mean exact time if that is less: on a smaller scale an epoch is as long a part of a query.

From the same runs comes how far the scheduler's measure of progress is from the true error, and how
far forecasts of it miss one and five parts ahead (`bench.online.progress`).

On SF 1 nearly all queries end within the second for which fair sharing leaves slots to the queries
that hold them: it serves queries one after the other there, which is good for late answers.
"""

from __future__ import annotations

import math
import statistics
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import duckdb
from rich.console import Console
from rich.table import Table

import queryard
from queryard.core.events import AnswerReported
from queryard.core.model import JobId
from queryard.history import HistoryReader
from queryard.replay import recorded

from .answers import Truth
from .progress import AHEAD, Misses, Report
from .questions import LINEITEM, question
from .setting import options, tables

QUERIES = 12
MIX = (*(question(name) for name in ("q1", "q6", "q14", "q3total", "q5")), *LINEITEM[:8])
POLICIES = ("fair", "relaqs")
REDUCTIONS = (0.7, 0.9)
EPOCH_S = 1.0
SHORT_SCALE = 1.0
# What the paper prints, in per cent: progress beside the true error, forecasts one and five ahead.
PRINTED = (5.15, 5.0, 7.0)


@dataclass(frozen=True)
class Told:
    """One answer: when it came after the submission, how wrong it was, and of what it was made."""

    time_s: float
    error: float
    fraction: float = 0.0


def reached_s(answers: Sequence[Told], reduction: float) -> float:
    """When the error has fallen by a share for good.

    >>> reached_s([Told(1.0, 0.1), Told(2.0, 0.02), Told(3.0, 0.05), Told(4.0, 0.0)], 0.7)
    4.0
    """
    most = (1.0 - reduction) * answers[0].error
    found = answers[-1].time_s
    for answer in reversed(answers):
        if answer.error > most:
            break
        found = answer.time_s
    return found


def profile(policy: str, epoch_s: float) -> str | dict[str, Any]:
    """A policy with its epoch."""
    if policy != "relaqs":
        return policy
    online = {"order": {"name": "progress", "epoch_s": epoch_s}, "weight": "queries"}
    exact = {"order": "fair", "weight": "queries"}
    return {"name": policy, "pools": {"by": "kind", "children": {"exact": exact, "online": online}}}


def played(
    folder: Path,
    policy: str | dict[str, Any],
    asked: Sequence[tuple[float, str]],
    truths: Mapping[str, Truth],
    slots: int,
    misses: Misses,
) -> list[list[Told]]:
    """All answers of all queries under a policy."""
    found: list[list[Told]] = [[] for _ in asked]
    names: list[str] = [""] * len(asked)
    with tempfile.TemporaryDirectory() as kept:
        history = Path(kept) / "history.sqlite"
        with queryard.connect(folder, slots=slots, history=history, profile=policy) as qy:
            for _ in qy.online(LINEITEM[0]):
                pass
            began = time.perf_counter()

            def one(place: int) -> None:
                due, sql = asked[place]
                time.sleep(max(0.0, due - (time.perf_counter() - began)))
                answers = qy.online(sql, every=0)
                names[place] = answers.handle.id
                for answer in answers:
                    at = time.perf_counter() - began - due
                    told = Told(at, truths[sql].error_of(answer), answer.fraction)
                    found[place].append(told)

            threads = [threading.Thread(target=one, args=(place,)) for place in range(len(asked))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        reports = reported(history)
    for name, answers in zip(names, found, strict=True):
        misses.add(matched(reports.get(name, []), answers))
    return found


def reported(history: Path) -> dict[str, list[AnswerReported]]:
    """What the policy was told of answers, by query."""
    found: dict[str, list[AnswerReported]] = {}
    with HistoryReader(history) as reader:
        for step in recorded(reader).journal.steps:
            for event in step.events:
                if isinstance(event, AnswerReported):
                    found.setdefault(JobId.of(event.job).query, []).append(event)
    return found


def matched(reports: Sequence[AnswerReported], answers: Sequence[Told]) -> list[Report]:
    """What was reported of each part, with the true errors of the answers that were given.

    >>> reports = [AnswerReported(0.0, "q/j", 3, 0.1, 1.0, None, (1.0, 0.5), 0.3)]
    >>> for report in matched(reports, [Told(1.0, 0.2, 1.0)])[1:]:
    ...     print(report)
    Report(part=2, change=0.5, error=None, left=None)
    Report(part=3, change=0.1, error=0.2, left=0.3)
    """
    changes = [change for report in reports for change in (*report.before, report.change)]
    errors = {round(answer.fraction * len(changes)): answer.error for answer in answers}
    left = {report.batch: report.left for report in reports}
    return [Report(n, change, errors.get(n), left.get(n)) for n, change in enumerate(changes, 1)]


def bench(folder: Path, seeds: int, gaps: Sequence[float], slots: int) -> None:
    plain = duckdb.connect(config={"threads": slots})
    for file in folder.glob("*.parquet"):
        plain.execute(f"CREATE VIEW {file.stem} AS FROM read_parquet('{file}')")
    truths, times = {}, []
    for sql in MIX:
        began = time.perf_counter()
        truths[sql] = Truth(plain, sql)
        times.append(time.perf_counter() - began)
    plain.close()
    with queryard.connect(folder, slots=slots, history=False) as qy:
        qy.shuffle("lineitem")
    mean_s = statistics.fmean(times)
    epoch_s = min(EPOCH_S, mean_s)
    table = Table(
        title=f"{QUERIES} online queries, {slots} slots, {seeds} seeds, mean exact time "
        f"{mean_s:.2f} s, epoch {epoch_s:.2f} s"
    )
    misses = Misses()
    for column in ("gap", "reduction", "fair", "relaqs", "ratio", "worst query"):
        table.add_column(column, justify="right")
    for gap in gaps:
        runs: dict[str, list[list[Told]]] = {policy: [] for policy in POLICIES}
        for seed in range(seeds):
            draw = Random(f"arrivals/{gap}/{seed}")
            at, asked = 0.0, []
            for _ in range(QUERIES):
                asked.append((at, draw.choice(MIX)))
                at += draw.expovariate(1.0 / (gap * mean_s))
            for policy in POLICIES if seed % 2 else POLICIES[::-1]:
                used = profile(policy, epoch_s)
                runs[policy] += played(folder, used, asked, truths, slots, misses)
        for reduction in REDUCTIONS:
            fair, ours = (
                [reached_s(answers, reduction) for answers in runs[policy]] for policy in POLICIES
            )
            ratio = statistics.fmean(ours) / statistics.fmean(fair)
            worst = max(o / f for o, f in zip(ours, fair, strict=True))
            table.add_row(
                f"{gap:g}",
                f"{reduction:.0%}",
                f"{statistics.fmean(fair):.2f} s",
                f"{statistics.fmean(ours):.2f} s",
                f"{ratio:.2f}",
                f"{worst:.1f}",
            )
        crossing = _crossing(runs)
        told = "none" if math.isnan(crossing) else f"{crossing:.0%}"
        table.add_row(f"{gap:g}", "crossing", "", "", told, "")
    console = Console(width=110)
    console.print(table)
    measured = [("progress beside the true error", misses.metric)]
    measured += [(f"progress foretold {n} ahead", misses.ahead[n]) for n in AHEAD]
    for (what, values), printed in zip(measured, PRINTED, strict=True):
        console.print(f"{what}: {_mean_off(values)} (paper: {printed:g})")
    console.print(f"expected error left beside the true error: {_mean_off(misses.left)}")
    console.print(
        f"expected error left foretold for the next answer: {_mean_off(misses.next_left)}"
    )


def _mean_off(values: Sequence[float]) -> str:
    mean = 100 * statistics.fmean(values) if values else math.nan
    return f"off by {mean:.1f} % in the mean of {len(values)}"


def _crossing(runs: Mapping[str, list[list[Told]]]) -> float:
    """The least reduction from which fair sharing is sooner; nan if there is none."""
    for percent in range(50, 101):
        fair, ours = (
            statistics.fmean(reached_s(answers, percent / 100) for answers in runs[policy])
            for policy in POLICIES
        )
        if fair < ours:
            return percent / 100
    return math.nan


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__, "one seed, one gap")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--gaps", default="0.3,1,3")
    parser.add_argument("--short", action="store_true", help=f"on SF {SHORT_SCALE:g}")
    given = parser.parse_args(arguments)
    if given.short:
        given.scale = SHORT_SCALE
    folder = tables(given)
    gaps = [1.0] if given.quick else [float(gap) for gap in given.gaps.split(",")]
    bench(folder, 1 if given.quick else given.seeds, gaps, given.slots)


if __name__ == "__main__":
    main()
