"""Slots in use over time, by kind, and their share of the slots there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .rows import RunRows
from .series import StepSeries

SlotKind = Literal["map", "reduce", "lease"]
SLOT_KINDS: tuple[SlotKind, ...] = ("map", "reduce", "lease")


def slots_in_use(run: RunRows) -> dict[SlotKind, StepSeries]:
    """How many slots work for each kind; a merged launch holds one, however many ride on it.

    What still runs at the last step keeps its slot.
    """
    changes: dict[SlotKind, list[tuple[float, int]]] = {kind: [] for kind in SLOT_KINDS}
    for launch in run.launches:
        changes[launch.kind].append((launch.start_s, 1))
        if launch.end_s is not None:
            changes[launch.kind].append((launch.end_s, -1))
    for lease in run.leases:
        changes["lease"].append((lease.start_s, lease.slots))
        if lease.end_s is not None:
            changes["lease"].append((lease.end_s, -lease.slots))
    return {kind: StepSeries.of_changes(changes[kind]) for kind in SLOT_KINDS}


def slots_present(run: RunRows) -> StepSeries:
    """How many slots the cluster has."""
    changes: list[tuple[float, int]] = []
    for row in run.nodes:
        changes.append((row.joined_s, row.node.slots))
        if row.lost_s is not None:
            changes.append((row.lost_s, -row.node.slots))
    return StepSeries.of_changes(changes)


@dataclass(frozen=True, slots=True)
class Utilisation:
    """Mean shares (0 to 1) of the slots by kind; None where there were no slots to use."""

    map: float | None = None
    reduce: float | None = None
    lease: float | None = None
    all: float | None = None


def leased_per_work(run: RunRows, work_s: Mapping[str, float]) -> float | None:
    """Slot-seconds of finished queries over the core-seconds of work that they had.

    Above 1 slots have waited inside queries: serial steps, or more slots than a query can use.
    None where the work of no finished query is given.
    """
    done = [row for row in run.queries.values() if row.outcome == "finished"]
    known = [row for row in done if work_s.get(row.query.id, 0.0) > 0]
    if not known:
        return None
    return sum(row.slot_s for row in known) / sum(work_s[row.query.id] for row in known)


def mean_utilisation(run: RunRows) -> Utilisation:
    """Slot-seconds used over slot-seconds present, from first submission to last end."""
    first_s = run.first_submit_s
    if first_s is None:
        return Utilisation()
    present_s = slots_present(run).integral(first_s, run.closed_s)
    if not present_s:
        return Utilisation()
    share = {
        kind: used.integral(first_s, run.closed_s) / present_s
        for kind, used in slots_in_use(run).items()
    }
    return Utilisation(share["map"], share["reduce"], share["lease"], sum(share.values()))
