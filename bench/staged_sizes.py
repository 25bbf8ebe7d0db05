"""How well the sizes of staged jobs are foreseen: rows and bytes of each job, beside real ones.

`python -m bench.foreseen FAMILY --data DIR --plan staged` runs it. Each query that can be split
runs once, staged. What was expected of its jobs is from statistics alone: those that a session
collects by itself in its first second. A q-error is the larger of expected over real and real over
expected; less than one row, and less than a row's bytes, count as one row.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

import queryard
from queryard.sql.statistics.quick import quick_statistics

from .accuracy import share_below
from .families import Family

MEDIAN, NINTH_DECILE = 1.3, 3.0
"""What is asked for, of rows and of bytes."""
OPERATORS = ("extract", "groupby", "join")


@dataclass(frozen=True)
class SizedJob:
    """One job: what it was expected to leave, and what it left."""

    query: str
    job: str
    operator: str
    rows_expected: float
    rows: float
    bytes_expected: float
    bytes: float

    @property
    def by_rows(self) -> float:
        """The q-error of its rows."""
        return q_error(self.rows_expected, self.rows, 1.0)

    @property
    def by_bytes(self) -> float:
        """The q-error of its bytes."""
        return q_error(self.bytes_expected, self.bytes, self.bytes / max(1.0, self.rows) or 1.0)


def q_error(expected: float, real: float, least: float) -> float:
    """By which factor an expected size is off; sizes below the least count as it.

    >>> q_error(30.0, 10.0, 1.0), q_error(10.0, 30.0, 1.0), q_error(0.2, 0.0, 1.0)
    (3.0, 3.0, 1.0)
    """
    one, other = max(expected, least), max(real, least)
    return max(one / other, other / one)


def sized_jobs(chosen: Family, folder: Path, slots: int) -> tuple[list[SizedJob], dict[str, str]]:
    """The jobs of all queries that can be split, and why others cannot."""
    found: list[SizedJob] = []
    whole: dict[str, str] = {}
    places: dict[str, object] = dict(chosen.places(folder))
    with queryard.connect(tables=places, slots=slots, history=False, statistics="off") as session:
        for key in track(list(session.catalog.tables), "samples", transient=True):
            quick_statistics(session.catalog, key)
        for query in track(chosen.queries(folder), "staged", transient=True):
            explained = session.explain(query.sql, analyze=True, plan="staged")
            if explained.plan != "staged":
                whole[query.name] = "; ".join(explained.reasons)
                continue
            for job in explained.jobs:
                if job.rows is None or job.bytes is None:
                    continue
                assert job.rows_expected is not None
                assert job.bytes_expected is not None
                found.append(
                    SizedJob(
                        query.name,
                        job.name,
                        job.operator,
                        job.rows_expected.value,
                        job.rows,
                        job.bytes_expected.value,
                        job.bytes,
                    )
                )
    return found, whole


def summary(jobs: Sequence[SizedJob]) -> dict[str, dict[str, float]]:
    """Q-errors of all jobs, and by operator class."""
    groups = {"all": list(jobs)}
    groups |= {name: [job for job in jobs if job.operator == name] for name in OPERATORS}
    return {name: _errors(group) for name, group in groups.items() if group}


def _errors(jobs: Sequence[SizedJob]) -> dict[str, float]:
    found: dict[str, float] = {"jobs": len(jobs)}
    for what, errors in (
        ("rows", [job.by_rows for job in jobs]),
        ("bytes", [job.by_bytes for job in jobs]),
    ):
        found[f"{what}_median"] = statistics.median(errors)
        found[f"{what}_ninth_decile"] = share_below(errors, 0.9)
        found[f"{what}_worst"] = max(errors)
    return found


def show(
    title: str,
    jobs: Sequence[SizedJob],
    whole: dict[str, str],
    figures: dict[str, dict[str, float]],
    console: Console,
) -> None:
    """The jobs that are off most, then the figures."""
    table = Table(title=f"{title}, staged: the jobs that are off most")
    for column in ("query", "job", "operator"):
        table.add_column(column)
    for column in ("rows expected", "real", "q-error", "bytes expected", "real", "q-error"):
        table.add_column(column, justify="right")
    for job in sorted(jobs, key=lambda job: -max(job.by_rows, job.by_bytes))[:20]:
        table.add_row(
            *(job.query, job.job, job.operator),
            *(f"{job.rows_expected:,.0f}", f"{job.rows:,.0f}", f"{job.by_rows:.2f}"),
            *(f"{job.bytes_expected:,.0f}", f"{job.bytes:,.0f}", f"{job.by_bytes:.2f}"),
        )
    console.print(table)
    for line in lines(figures, whole):
        print(line)


def lines(figures: dict[str, dict[str, float]], whole: dict[str, str]) -> Iterable[str]:
    """The figures, the wanted ones with what is asked for."""
    for name, found in figures.items():
        for what in ("rows", "bytes"):
            median, ninth = found[f"{what}_median"], found[f"{what}_ninth_decile"]
            told = f"{name:8} {found['jobs']:4.0f} jobs, q-error of {what:5}: median {median:.2f}"
            told += f", 90th percentile {ninth:.2f}, worst {found[f'{what}_worst']:,.1f}"
            if name == "all":
                met = median <= MEDIAN and ninth <= NINTH_DECILE
                told += f" (at most {MEDIAN:g} and {NINTH_DECILE:g}: {_verdict(met)})"
            yield told
    if whole:
        yield f"not split: {', '.join(whole)}"


def _verdict(met: bool) -> str:
    return "reached" if met else "missed"


def as_json(
    jobs: Sequence[SizedJob], whole: dict[str, str], figures: dict[str, dict[str, float]]
) -> dict[str, Any]:
    """Everything, for a file."""
    return {"figures": figures, "jobs": [asdict(job) for job in jobs], "not_split": whole}
