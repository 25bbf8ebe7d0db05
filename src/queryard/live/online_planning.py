"""From a request to work that answers early; not on the loop's thread."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from queryard.core.errors import QueryardError
from queryard.core.readable import several
from queryard.engine.instances.settings import Settings
from queryard.engine.online.measure import Measure
from queryard.engine.sealing.access import Access, Reach
from queryard.sql.catalog import Catalog, Table
from queryard.sql.catalog.quoting import written_name

from .request import QueryRequest
from .work.base import Work

if TYPE_CHECKING:
    from queryard.engine.sampling import Sample
    from queryard.sql.online import OnlinePlan

# An online query needs so many parts, groups surely larger than this, and other tables that
# surely leave fewer rows than this share of the sampled table's, since hash tables are made of them
# per statement. Without statistics these are guesses: how it really is, is seen when it runs.
PLANS_KEPT = 256
LEAST_SAMPLE = 10
LEAST_GROUP = 5
LARGEST_DIMENSION = 0.4


def has_copies(catalog: Catalog) -> bool:
    """Whether there are shuffled copies beside the data: then online queries are likely."""
    statistics = catalog.statistics_folder
    return statistics is not None and (statistics.parent / "shuffled").is_dir()


def load_planner(catalog: Catalog) -> None:
    """Import and fill what the first online query would wait for half a second."""
    import queryard.engine.sampling  # noqa: F401
    from queryard.sql.online import online_plan

    for table in catalog.tables.values():
        with contextlib.suppress(QueryardError):
            online_plan(f"SELECT count(*) AS n FROM {written_name(table.key)}", catalog)
            return


class OnlinePlans:
    """Plans of online queries by their texts, as long as their tables are what they were."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, Access], tuple[OnlinePlan, Mapping[str, Table]]] = (
            OrderedDict()
        )

    def plan(self, sql: str, reach: Reach) -> OnlinePlan:
        """The plan of a query; `NotOnline` says why there is none."""
        from queryard.sql.online import online_plan

        with self._lock:
            found = self._kept.get((sql, reach.access))
        # The catalog makes a new object of a table when a file has changed.
        if found is not None and all(
            reach.catalog.tables.get(name) is table for name, table in found[1].items()
        ):
            return found[0]
        plan = online_plan(sql, reach.catalog)
        with self._lock:
            self._kept[sql, reach.access] = plan, _tables(plan, reach.catalog)
            if len(self._kept) > PLANS_KEPT:
                self._kept.popitem(last=False)
        return plan


def _tables(plan: OnlinePlan, catalog: Catalog) -> dict[str, Table]:
    named = [plan.table, *(name for each in plan.dimensions for name in each.tables)]
    return {name: catalog[name] for name in named if name in catalog}


def plan_online(
    query: str,
    request: QueryRequest,
    memory_bytes: int,
    settings: Settings,
    reach: Reach,
    plans: OnlinePlans,
    width: int,
    want_copy: Callable[[str], None],
) -> Work:
    """The work of a query that answers early; a `QueryardError` says why it must run exactly.

    A `WrongMeasure` is an error of the user's. `want_copy` hears of a table without a shuffled
    copy.
    """
    from queryard.engine.online.statement import OnlineStatement

    from .work.online import OnlineWork

    assert request.online is not None
    catalog = reach.catalog
    plan = plans.plan(request.statements[0].sql, reach)
    for name in (name for dimension in plan.dimensions for name in dimension.tables):
        if not catalog[name].files:
            raise QueryardError(f"{name} is a frame, which is read by its session only")
    wish, log = request.online.wish, request.online.log
    Measure(plan.fields, wish)  # raises if that is not in the answer
    sample = _sample(catalog, plan.table, want_copy)
    _check_worth(plan, sample)
    statement = OnlineStatement(plan, sample, wish, log, memory_bytes, reach, settings)
    return OnlineWork(query, statement, width, len(sample.parts), memory_bytes, sample)


def _sample(catalog: Catalog, key: str, want_copy: Callable[[str], None]) -> Sample:
    """What an online query over a table reads: a shuffled copy, or random blocks of the table."""
    from queryard.engine.sampling import copy_places, find_copy, random_blocks

    table = catalog[key]
    if not table.files:
        raise QueryardError(
            f"{table.name} is a frame in memory, which is read as a whole; write it to a Parquet "
            "file for early answers"
        )
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
            f"{_remedy(table)}"
        )
    if len(found.parts) < LEAST_SAMPLE:
        raise QueryardError(
            f"{table.name} lies in {several(len(found.parts), 'block')}, too few to estimate from; "
            f"{_remedy(table)}"
        )
    return found


def _remedy(table: Table) -> str:
    if table.elsewhere:
        return f"bring it here from {table.elsewhere}: only tables on this machine are copied"
    return f"queryard shuffle {table.name} makes a copy in about 100 parts"


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
