"""EDLS-Sh with hard caps beside its borrowing form, and which one the printed scores resemble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from research.numbers import HUNDREDTHS, ROUNDED
from research.outcome import RunOptions, Table, interval, of_seeds

from .published import PUBLISHED
from .schedulers import POLICIES, TITLES, by_policy
from .workloads import WORKLOADS, Draw

FORMS = {"edls-sh": "hard caps", "edls-sh-borrow": "borrowing"}


def borrowing_table(options: RunOptions, draws: Mapping[str, Sequence[Draw]]) -> Table:
    """Both forms of EDLS-Sh on every workload: their scores, and the batch part over SRTF's."""
    printed = {f"workload {number}": f"{_printed_ratio(number):.1f}" for number in WORKLOADS}
    rows = []
    for title, of in draws.items():
        options.tell(f"{title}, EDLS-Sh that borrows")
        base = [by_policy(draw, run, POLICIES[0]) for run, draw in enumerate(of)]
        for form, told in FORMS.items():
            played = [by_policy(draw, run, form) for run, draw in enumerate(of)]
            ratios = [own.batch / srtf.batch for own, srtf in zip(played, base, strict=True)]
            rows.append(
                (
                    f"{title}, {told}",
                    interval([run.score("mixed") for run in played]).text(ROUNDED),
                    interval([run.deadline for run in played]).text(ROUNDED),
                    printed.get(title, ""),
                    interval(ratios).text(HUNDREDTHS),
                )
            )
    columns = (
        *("workload, form", "mixed", "deadline part"),
        *("batch part over SRTF's, paper", "ours (95 %)"),
    )
    seeds = of_seeds(min(len(of) for of in draws.values()))
    return Table(
        f"{TITLES['edls-sh']} with hard caps, and when it borrows ({seeds})", columns, tuple(rows)
    )


def _printed_ratio(number: int) -> float:
    paper = PUBLISHED[number]
    return paper["edls-sh"].batch.average / paper["srtf"].batch.average
