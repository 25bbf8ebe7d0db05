"""From a request to work that answers early; not on the loop's thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from queryard.core.errors import QueryardError
from queryard.core.readable import several
from queryard.engine.settings import Settings
from queryard.sql.catalog import Catalog

from .request import QueryRequest
from .work.base import Work

if TYPE_CHECKING:
    from queryard.engine.sampling import Sample
    from queryard.sql.online import OnlinePlan

# An online query needs so many parts, groups of so many rows on average, and other tables that
# surely leave fewer rows than this share of the sampled table's: hash tables are made of them per
# statement. How many rows they really leave is seen when it runs.
LEAST_SAMPLE = 10
LEAST_GROUP = 100
LARGEST_DIMENSION = 0.4


def plan_online(
    query: str,
    request: QueryRequest,
    memory_bytes: int,
    settings: Settings,
    catalog: Catalog,
    width: int,
    want_copy: Callable[[str], None],
) -> Work:
    """The work of a query that answers early; a `QueryardError` says why it must run exactly.

    `want_copy` hears of a table that has no shuffled copy.
    """
    from queryard.engine.online.statement import OnlineStatement
    from queryard.sql.online import online_plan

    from .work.online import OnlineWork

    assert request.online is not None
    plan = online_plan(request.statements[0].sql, catalog)
    for name in (name for dimension in plan.dimensions for name in dimension.tables):
        if not catalog[name].files:
            raise QueryardError(f"{name} is a frame, which is read by its session only")
    sample = _sample(catalog, plan.table, want_copy)
    _check_worth(plan, sample)
    wish, log = request.online.wish, request.online.log
    statement = OnlineStatement(plan, sample, wish, log, memory_bytes, settings)
    return OnlineWork(query, statement, width, len(sample.parts), memory_bytes)


def _sample(catalog: Catalog, key: str, want_copy: Callable[[str], None]) -> Sample:
    """What an online query over a table reads: a shuffled copy, or random blocks of the table."""
    from queryard.engine.sampling import copy_places, find_copy, random_blocks

    table = catalog[key]
    copy = find_copy(table, copy_places(catalog, table))
    if copy is not None:
        if not copy.parts:
            raise QueryardError(f"{table.name} has no rows")
        return copy
    want_copy(key)
    found = random_blocks(table)
    if found is None:
        raise QueryardError(
            f"{table.name} has no shuffled copy, and no blocks that could be read instead; "
            f"queryard shuffle {table.name} makes a copy"
        )
    if len(found.parts) < LEAST_SAMPLE:
        raise QueryardError(
            f"{table.name} lies in {several(len(found.parts), 'block')}, too few to estimate from; "
            f"queryard shuffle {table.name} makes a copy in more parts"
        )
    return found


def _check_worth(plan: OnlinePlan, sample: Sample) -> None:
    """Raise where an estimate would come late, or say little."""
    for dimension in plan.dimensions:
        if dimension.rows_expected > LARGEST_DIMENSION * sample.total_rows:
            raise QueryardError(
                f"it joins with about {dimension.rows_expected:,.0f} rows of "
                f"{', '.join(dimension.tables)}, which every statement would have to go through"
            )
    each = plan.rows_expected / max(1.0, plan.groups_expected)
    if each < LEAST_GROUP and plan.keys:
        raise QueryardError(f"its groups have about {each:,.0f} rows, too few to estimate from")
