"""How evenly a run treats its queries and its tenants."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .deadlines import Deadlines, deadlines
from .response import Counts, Spread, counts, mean, spread
from .rows import QueryRow, RunRows


def jain(values: Iterable[float]) -> float | None:
    """Jain's index, (Σx)² / (n·Σx²): 1 where all are equal, 1/n where one has everything.

    >>> jain([2.0, 2.0]), jain([1.0, 0.0, 0.0, 0.0])
    (1.0, 0.25)
    """
    numbers = list(values)
    largest = max(numbers, default=None)
    if largest is None:
        return None
    if largest == 0:
        return 1.0
    scaled = [number / largest for number in numbers]  # so that no square overflows
    squares = math.fsum(number * number for number in scaled)
    return math.fsum(scaled) ** 2 / (len(scaled) * squares)


@dataclass(frozen=True, slots=True)
class TenantRow:
    """What one tenant saw, and the slot-seconds it used."""

    tenant: str
    counts: Counts
    response_s: Spread
    wait_s: Spread
    slowdown: Spread
    deadlines: Deadlines
    slot_s: float


def by_tenant(run: RunRows, slowdown: Mapping[str, float]) -> tuple[TenantRow, ...]:
    """One row per tenant, by name."""
    members: dict[str, list[QueryRow]] = {}
    for row in run.queries.values():
        members.setdefault(row.query.tenant, []).append(row)
    return tuple(
        TenantRow(
            tenant=tenant,
            counts=counts(rows),
            response_s=spread(row.response_s for row in rows),
            wait_s=spread(row.wait_s for row in rows),
            slowdown=spread(slowdown.get(row.query.id) for row in rows),
            deadlines=deadlines(rows, run.closed_s),
            slot_s=math.fsum(row.slot_s for row in rows),
        )
        for tenant, rows in sorted(members.items())
    )


def tenant_fairness(run: RunRows, slowdown: Mapping[str, float]) -> float | None:
    """Jain's index over the tenants' mean slowdowns; None where none has one."""
    of_tenant: dict[str, list[float]] = {}
    for query, value in slowdown.items():
        of_tenant.setdefault(run.queries[query].query.tenant, []).append(value)
    return jain(mean(values) for values in of_tenant.values())
