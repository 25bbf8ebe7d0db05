"""From a request to staged work; not on the loop's thread."""

from __future__ import annotations

from pathlib import Path

from queryard.engine.pool import InstancePool
from queryard.sql.catalog import Catalog

from .request import QueryRequest
from .work.base import Work


def plan_work(
    query: str,
    request: QueryRequest,
    memory_bytes: int,
    catalog: Catalog,
    pool: InstancePool,
    temp: Path,
) -> Work:
    """The jobs and tasks of a query; a `QueryardError` says why it cannot be split."""
    # The planner takes half a second to import, and most sessions never need it.
    from queryard.sql.planner import plan_staged

    from .work.staged import StagedWork

    plan = plan_staged(request.statements[0].sql, catalog)
    return StagedWork(query, plan, memory_bytes, pool, temp)
