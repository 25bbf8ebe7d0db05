"""Everything worth knowing about one run, in one object and as JSON.

>>> from queryard.core.journal import Journal
>>> summarise(Journal()).makespan_s is None
True
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from queryard.core.journal import Journal

from .cost import HOUR_S, Cost, cost
from .deadlines import Deadlines, deadlines
from .fairness import TenantRow, by_tenant, jain, tenant_fairness
from .locality import Locality, Scanned, locality, scanned
from .online import REDUCTIONS, Reduction, reductions
from .response import (
    MIN_E_S,
    BinRow,
    Counts,
    Spread,
    bounded_slowdowns,
    by_size_bin,
    counts,
    slowdowns,
    spread,
    throughput_per_h,
)
from .rows import RunRows
from .runs import read_run
from .utilisation import Utilisation, leased_per_work, mean_utilisation


@dataclass(frozen=True, slots=True)
class Fairness:
    """Jain's index over slowdowns; None where no time alone was given."""

    tenants: float | None
    queries: float | None


@dataclass(frozen=True, slots=True)
class Attempts:
    """Launches by their end; `retries` are tasks launched again, whatever ended them before."""

    launches: int
    finished: int
    failed: int
    killed: int
    lost: int
    running: int
    retries: int


@dataclass(frozen=True, slots=True)
class Summary:
    """One run in numbers. A value that does not exist is None, never NaN or infinite."""

    counts: Counts
    duplicates: int
    unfinished: tuple[str, ...]
    makespan_s: float | None
    throughput_per_h: float | None
    response_s: Spread
    wait_s: Spread
    slowdown: Spread
    bounded_slowdown: Spread
    fairness: Fairness
    deadlines: Deadlines
    utilisation: Utilisation
    leased_per_work: float | None
    attempts: Attempts
    locality: Locality
    scanned: Scanned
    online: tuple[Reduction, ...]
    cost: Cost
    size_bins: tuple[BinRow, ...]
    tenants: tuple[TenantRow, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data for `json.dumps`, keys named as the fields."""
        return {field.name: _plain(getattr(self, field.name)) for field in _FIELDS}


_FIELDS = dataclasses.fields(Summary)


def summarise(
    run: Journal | RunRows,
    *,
    alone_s: Mapping[str, float] | None = None,
    size_bins: Mapping[str, str] | None = None,
    work_s: Mapping[str, float] | None = None,
    min_e_s: float = MIN_E_S,
    error_reductions: Iterable[float] = REDUCTIONS,
    lease_unit_s: float = HOUR_S,
) -> Summary:
    """All metrics of a run.

    `alone_s` gives what each query takes alone on the idle cluster, `size_bins` the name of its
    size bin, `work_s` its core-seconds; without them slowdowns, bins and `leased_per_work` are
    empty.
    """
    if isinstance(run, Journal):
        run = read_run(run)
    rows = run.queries.values()
    slowdown = slowdowns(run, alone_s or {})
    bounded = bounded_slowdowns(run, min_e_s)
    return Summary(
        counts=counts(rows),
        duplicates=run.duplicates,
        unfinished=tuple(row.query.id for row in rows if row.outcome == "unfinished"),
        makespan_s=run.makespan_s,
        throughput_per_h=throughput_per_h(run),
        response_s=spread(row.response_s for row in rows),
        wait_s=spread(row.wait_s for row in rows),
        slowdown=spread(slowdown.values()),
        bounded_slowdown=spread(bounded.values()),
        fairness=Fairness(tenant_fairness(run, slowdown), jain(slowdown.values())),
        deadlines=deadlines(rows, run.closed_s),
        utilisation=mean_utilisation(run),
        leased_per_work=leased_per_work(run, work_s or {}),
        attempts=_attempts(run),
        locality=locality(run),
        scanned=scanned(run),
        online=reductions(run, error_reductions),
        cost=cost(run, lease_unit_s),
        size_bins=by_size_bin(run, size_bins, slowdown, bounded) if size_bins else (),
        tenants=by_tenant(run, slowdown),
    )


def _attempts(run: RunRows) -> Attempts:
    found = {"finished": 0, "failed": 0, "killed": 0, "lost": 0, "running": 0}
    for launch in run.launches:
        found[launch.outcome] += 1
    retries = sum(row.retries for row in run.queries.values())
    return Attempts(launches=len(run.launches), retries=retries, **found)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
