"""One query over time: when it waited, and which slots it held.

Times of segments are seconds since the query was submitted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from queryard.core.model import JobId
from queryard.core.readable import several

Row = Mapping[str, Any]
Kind = Literal["waiting", "lease", "task", "ride", "paused"]
# A shorter pause is the time between two decisions.
LEAST_PAUSE_S = 0.001
BETWEEN = "It held no slots: others had them, or its reader was behind."
AFTER = "Its work was done; its rows were handed over."


class Segment(NamedTuple):
    """Some slots of a node over some time, or a time without slots."""

    kind: Kind
    from_s: float
    to_s: float
    slots: int
    node: str | None
    label: str


class Times(NamedTuple):
    """When a query was submitted, began and ended; `until_s` is its end, or now."""

    submitted_s: float
    started_s: float | None
    until_s: float


def segments(
    times: Times, leases: Iterable[Row], tasks: Iterable[Row], riders: Mapping[int, int]
) -> list[Segment]:
    """All segments by their beginning. `riders` are other queries on a launch, by its number."""
    zero_s, until_s = times.submitted_s, times.until_s

    def span(row: Row) -> tuple[float, float]:
        begin_s = min(row["started_s"], until_s)
        end_s = until_s if row["ended_s"] is None else min(row["ended_s"], until_s)
        return begin_s - zero_s, max(begin_s, end_s) - zero_s

    found: list[Segment] = []
    for row in leases:
        slots = row["slots"]
        label = f"{several(slots, 'slot')}, {row['outcome'] or 'held'}"
        found.append(Segment("lease", *span(row), slots, row["node"], label))
    launches: dict[int, list[Row]] = {}
    for row in tasks:
        launches.setdefault(row["launch"], []).append(row)
    for launch, rows in launches.items():
        # Tasks of one launch share its slot, those of other queries, too.
        others = riders.get(launch, 0)
        kind: Kind = "ride" if others else "task"
        begin_s, end_s = min(map(span, rows)), max(map(span, rows), key=lambda each: each[1])
        label = _task_label(rows, others)
        found.append(Segment(kind, begin_s[0], end_s[1], 1, rows[0]["node"], label))
    found.sort(key=lambda each: (each.from_s, each.to_s))
    return [*_without_slots(times, found), *found]


def _task_label(rows: list[Row], others: int) -> str:
    """The tasks of a launch in words, and how many other queries rode along."""
    first = rows[0]
    name = JobId.of(first["job"]).name
    parts = [f"{name}: {first['kind']} {first['task'] + 1}", first["outcome"] or "running"]
    if len(rows) > 1:
        parts.append(f"with {several(len(rows) - 1, 'task')} more of its own")
    if others:
        parts.append(f"with {several(others, 'other query')}")
    return ", ".join(parts)


def _without_slots(times: Times, busy: list[Segment]) -> list[Segment]:
    """The time before the first slot, and pauses between and after slots."""
    end_s = times.until_s - times.submitted_s
    began_s = None if times.started_s is None else times.started_s - times.submitted_s
    if busy:
        began_s = busy[0].from_s if began_s is None else min(began_s, busy[0].from_s)
    first_s = end_s if began_s is None else min(began_s, end_s)
    found = [Segment("waiting", 0.0, first_s, 0, None, "It waited for its first slot.")]
    reached_s = first_s
    for each in busy:
        if each.from_s - reached_s > LEAST_PAUSE_S:
            found.append(Segment("paused", reached_s, each.from_s, 0, None, BETWEEN))
        reached_s = max(reached_s, each.to_s)
    if busy and end_s - reached_s > LEAST_PAUSE_S:
        found.append(Segment("paused", reached_s, end_s, 0, None, AFTER))
    return found


def waits(
    times: Times, jobs: Iterable[Row], found: Iterable[Segment], holds: Mapping[str, float]
) -> list[dict[str, Any]]:
    """What the query waited for, and how long.

    `holds` are seconds by reason, from looks at it before its first slot: they tell the shares.
    """
    by_reason: defaultdict[str, float] = defaultdict(float)
    for each in found:
        seconds = each.to_s - each.from_s
        if each.kind == "waiting":
            entered_s = min((row["submitted_s"] for row in jobs), default=times.submitted_s)
            before_s = min(seconds, max(0.0, entered_s - times.submitted_s))
            by_reason["planning, or its client's own connection"] += before_s
            held = sum(holds.values())
            for reason, part_s in (holds if held else {"its first slot": 1.0}).items():
                by_reason[reason] += (seconds - before_s) * part_s / (held or 1.0)
        elif each.kind == "paused":
            reason = "its reader" if each.label == AFTER else "slots, after it had begun"
            by_reason[reason] += seconds
    return [
        {"reason": reason, "s": round(seconds, 4)}
        for reason, seconds in by_reason.items()
        if seconds > LEAST_PAUSE_S
    ]


def held_s(found: Iterable[Segment]) -> float:
    """Slot-seconds of all segments."""
    return sum(each.slots * (each.to_s - each.from_s) for each in found)


def plan_text(plan: str, jobs: Iterable[Row]) -> str:
    """The jobs of a query, a line each."""
    lines = [f"plan: {plan}"]
    for row in jobs:
        name = JobId.of(row["job"]).name
        parts = [row["operator"] or "any operator"]
        if row["width"]:
            parts.append(f"up to {several(row['width'], 'slot')} at once")
        else:
            parts.append(several(row["maps"], "map"))
            if row["reduces"]:
                parts.append(several(row["reduces"], "reduce"))
        lines.append(f"{name}: {', '.join(parts)}")
    return "\n".join(lines)
