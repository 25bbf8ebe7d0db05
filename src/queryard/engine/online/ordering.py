"""Which groups are in the answer by their estimates, and in which order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from .evaluating import evaluated_rows

if TYPE_CHECKING:
    from queryard.sql.online import OnlinePlan


def ordered(plan: OnlinePlan, told: pa.Table, columns: Mapping[str, Any]) -> pa.Table:
    """The groups that HAVING keeps first, each by ORDER BY, with `kept` and `place`.

    `told` has their measures; `columns` are what formulas are made of.
    """
    kept = pa.repeat(pa.scalar(True), told.num_rows)
    for condition in plan.kept:
        held = evaluated_rows(condition, columns, told.num_rows)
        kept = pc.and_(kept, pc.fill_null(held, False))
    told = told.append_column("kept", kept)
    by: dict[str, Any] = {"kept": told["kept"].cast(pa.int8())}
    ways = [("kept", "descending")]
    for i, key in enumerate(plan.sorting):
        if key.rank is not None:
            by[f"s{i}"] = told[f"r{key.rank}"]
            ways.append((f"s{i}", "ascending"))
            continue
        values = told[f"m{key.measure}"]
        by[f"n{i}"] = pc.is_null(values).cast(pa.int8())
        ways.append((f"n{i}", "descending" if key.nulls_first else "ascending"))
        by[f"s{i}"] = pc.fill_null(values, 0.0)
        ways.append((f"s{i}", "descending" if key.descending else "ascending"))
    told = told.take(pc.sort_indices(pa.table(by), sort_keys=ways))
    first = pc.sum(told["kept"]).as_py() or 0
    places = [*range(1, first + 1), *range(1, told.num_rows - first + 1)]
    return told.append_column("place", pa.array(places, pa.int64()))


def shown(plan: OnlinePlan, told: pa.Table) -> pa.Table:
    """Those of the ordered groups that LIMIT leaves."""
    kept = told.filter(told["kept"])
    order = plan.ordering
    return kept if order is None else kept.slice(order.offset, order.limit)
