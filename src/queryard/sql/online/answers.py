"""Groups with their estimates as rows of an answer, with intervals.

The estimates are those of `engine.online.leaving_out`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from queryard.estimate.online import (
    Changes,
    Estimate,
    FileQuantiles,
    Ranked,
    Sample,
    all_hold,
    estimate,
    holds,
    in_top,
    quantile_estimate,
    rows_hidden,
    tail_of,
)

from .formulas import columns_of
from .plan import Additive, OnlinePlan, OutputColumn


@dataclass(frozen=True, slots=True)
class OnlineRow:
    """A row of the answer so far.

    `values` has a key or a bound as it is, an estimated number as DOUBLE; `estimates` has an entry
    per column, None for keys and bounds. `settled` is True if the row is surely in the exact answer
    at this confidence, False if it surely is not, None if that is open. `rows` were read.
    """

    values: tuple[Any, ...]
    estimates: tuple[Estimate | None, ...]
    settled: bool | None
    rows: int


@dataclass(frozen=True, slots=True)
class OnlineRows:
    """The rows that HAVING, ORDER BY and LIMIT choose by the estimates, in order.

    `unsettled` counts the rows, shown or not, of which it is open whether they are in the answer.
    `hidden` is how many rows of the table a group may have that was not seen yet.
    """

    rows: tuple[OnlineRow, ...]
    sample: Sample
    unsettled: int
    hidden: float
    notes: Mapping[str, int] = field(default_factory=dict)
    """Why numbers that are shown have no interval, and how many of them."""

    @property
    def error(self) -> float | None:
        """The largest relative half-width; None if a number that is shown has no interval."""
        found = [each.error for row in self.rows for each in row.estimates if each is not None]
        known = [error for error in found if error is not None]
        if not known or len(known) < len(found):
            return None
        return max(known)


def online_rows(
    plan: OnlinePlan, rows: Iterable[Mapping[str, Any]], sample: Sample, confidence: float = 0.95
) -> OnlineRows:
    """The answer from groups with their estimates, in their order, each a mapping by column."""
    found = list(rows)
    # Of each measure: the aggregates with tails that it is made of.
    tailed = [
        [a for a in plan.additives if a.ends is not None and a.name in columns_of(formula)]
        for formula in plan.formulas
    ]
    measures = [_measures(plan, row, tailed, sample, confidence) for row in found]
    kept = [_kept(plan, row, each) for row, each in zip(found, measures, strict=True)]
    settled = _settled(plan, kept, measures)
    shown, notes = [], dict[str, int]()
    for row, numbers, sure in zip(found, measures, settled, strict=True):
        if not row["kept"] or not _within(plan, row["place"]):
            continue
        estimates = tuple(
            _estimate(out, row[f"o{i}"], numbers, sample, confidence)
            for i, out in enumerate(plan.fields)
        )
        values = tuple(
            row[f"o{i}"] if each is None else each.value for i, each in enumerate(estimates)
        )
        for each in estimates:
            if each is not None and each.note:
                notes[each.note] = notes.get(each.note, 0) + 1
        shown.append(OnlineRow(values, estimates, sure, int(row["n"])))
    hidden = rows_hidden(sample, confidence) if plan.keys else 0.0
    open_ = sum(sure is None for sure in settled)
    return OnlineRows(tuple(shown), sample, open_, hidden, notes)


def _measures(
    plan: OnlinePlan,
    row: Mapping[str, Any],
    tailed: Sequence[Sequence[Additive]],
    sample: Sample,
    confidence: float,
) -> list[Estimate]:
    found = []
    for i in range(plan.measures):
        parts = [row[f"m{i}_{part}"] for part in "dqbr"]
        tail = max((_tail(row, each) for each in tailed[i]), default=0.0)
        changes = None if None in parts else Changes(*parts, tail)
        value, n, files = row[f"m{i}"], int(row["n"]), int(row["files"])
        found.append(estimate(value, changes, n, files, sample, confidence))
    return found


def _tail(row: Mapping[str, Any], each: Additive) -> float:
    """What the largest values of files say of the tails of an aggregate."""
    deviation = row[f"{each.name}_s"]
    return 0.0 if deviation is None else tail_of(deviation, row[f"{each.name}_k"], each.moments)


def _estimate(
    out: OutputColumn, found: Any, numbers: list[Estimate], sample: Sample, confidence: float
) -> Estimate | None:
    if out.measure is not None:
        return numbers[out.measure]
    if out.share is None:
        return None
    files = [FileQuantiles(each["n"], each["v"]) for each in found or () if each["n"]]
    return quantile_estimate(out.share, files, sample, confidence)


def _kept(plan: OnlinePlan, row: Mapping[str, Any], numbers: list[Estimate]) -> bool | None:
    """Whether HAVING surely holds; conditions on keys are decided by the keys."""
    if all(condition.exact for condition in plan.having):
        return bool(row["kept"])
    told = []
    for condition in plan.having:
        if condition.measure is not None and condition.side is not None:
            told.append(holds(numbers[condition.measure], condition.side))
        elif not condition.exact:
            told.append(None)
    return all_hold(told)


def _settled(
    plan: OnlinePlan, kept: list[bool | None], measures: list[list[Estimate]]
) -> list[bool | None]:
    order = plan.ordering
    if order is None or (order.limit is None and not order.offset):
        return kept
    if order.measure is None:
        # By keys: more groups may come before, so only what surely is not is known.
        return [False if each is False else None for each in kept]
    ranked = [Ranked(m[order.measure], k) for m, k in zip(measures, kept, strict=True)]
    return in_top(ranked, order.limit, order.offset, order.descending)


def _within(plan: OnlinePlan, place: int) -> bool:
    order = plan.ordering
    if order is None:
        return True
    last = None if order.limit is None else order.offset + order.limit
    return place > order.offset and (last is None or place <= last)
