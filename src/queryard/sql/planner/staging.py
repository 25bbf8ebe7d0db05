"""The way from SQL to a staged plan, step by step."""

from __future__ import annotations

from typing import Any, NamedTuple

import duckdb
from sqlglot import exp

from .algebra import Aggregate, Node, Project, inputs
from .binder import QueryBinder
from .builder import Builder
from .cardinality import Cardinality
from .contract import CatalogLike, find_table
from .costs import Sizing
from .distinct import DistinctInTwo
from .errors import NotStageable
from .expressions import column
from .oracle import Field, Oracle
from .physical import Physical
from .plan import StagedPlan
from .prune import pruned
from .pushdown import Pushdown
from .reading import read_statement
from .sideways import Sideways

_BROADCAST_BYTES = 128e6


class Asked(NamedTuple):
    """A statement with the values of its parameters."""

    sql: str
    parameters: Any


def plan_staged(
    sql: str,
    catalog: CatalogLike,
    target_bytes: float | None = None,
    broadcast_bytes: float = _BROADCAST_BYTES,
    partitions: int | None = None,
    split_bytes: float | None = None,
    asked: Asked | None = None,
) -> StagedPlan:
    """Split a query into jobs, or say why not (`NotStageable`).

    By itself the planner sizes tasks for 0.2 to 2 s from statistics. `target_bytes` fixes the size
    of splits of this plan alone, `partitions` the number of reduce tasks, and tables above
    `broadcast_bytes` are never shared whole with every task. `split_bytes` is the size of the
    canonical splits of text files, and must be the same for all plans that are to share scans.
    `asked` is the statement with parameters that was written out as `sql`.
    """
    if partitions is not None and not 1 <= partitions <= 65535:
        raise ValueError(f"partitions must be from 1 to 65535, got {partitions!r}")
    try:
        return _planned(
            sql, catalog, Sizing(target_bytes, broadcast_bytes, partitions, split_bytes), asked
        )
    except RecursionError as error:
        raise NotStageable("the statement is nested too deeply") from error
    except duckdb.Error as error:
        # The statement is valid, so a part of it has lost something it depends on.
        raise NotStageable(f"a part alone is no SQL: {str(error).splitlines()[0]}") from error


def _planned(
    sql: str, catalog: CatalogLike, sizing: Sizing, asked: Asked | None = None
) -> StagedPlan:
    with Oracle() as oracle:
        builder = Builder(oracle)
        root, expected = bound_query(sql, catalog, builder)
        _check_partial_forms(root)
        cardinality = Cardinality(catalog, oracle)
        root = DistinctInTwo(builder).run(root)
        root = Pushdown(builder, cardinality).run(root)
        root = Sideways(builder, cardinality).run(root)
        root = pruned(root)
        check_types(root, expected)
        if asked is not None:
            expected = _as_asked(asked, expected, oracle)
        physical = Physical(catalog, builder, cardinality, sizing)
        jobs = physical.finish(root, expected)
    text = sql if asked is None else asked.sql
    return StagedPlan(text, jobs, expected, physical.assembly.frames)


def _as_asked(asked: Asked, expected: tuple[Field, ...], oracle: Oracle) -> tuple[Field, ...]:
    """The columns of a statement with parameters, which name these; its types must be the same."""
    try:
        found = oracle.describe(asked.sql.strip().rstrip(";"), asked.parameters)
    except duckdb.Error as error:
        raise NotStageable(f"DuckDB says: {str(error).splitlines()[0]}") from error
    if [field.type for field in found] != [field.type for field in expected]:
        raise NotStageable("its parameters have other types than literals")
    return found


def _check_partial_forms(node: Node) -> None:
    for call in node.calls if isinstance(node, Aggregate) else ():
        if call.share is not None:
            raise NotStageable("a quantile has no exact partial form here")
    for child in inputs(node):
        _check_partial_forms(child)


def bound_query(sql: str, catalog: CatalogLike, builder: Builder) -> tuple[Node, tuple[Field, ...]]:
    """The logical plan of a query as it is written, and the names and types DuckDB gives it."""
    statement = read_statement(sql, builder.oracle)
    _declare_tables(statement, catalog, builder.oracle)
    try:
        expected = builder.oracle.describe(sql.strip().rstrip(";"))
    except duckdb.Error as error:
        raise NotStageable(f"DuckDB says: {str(error).splitlines()[0]}") from error
    bound = QueryBinder(builder, catalog).query(statement)
    return _only(bound.node, [name for _, name in bound.columns]), expected


def _declare_tables(statement: exp.Query, catalog: CatalogLike, oracle: Oracle) -> None:
    ctes = {cte.alias.lower() for cte in statement.find_all(exp.CTE)}
    for table in statement.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier):
            raise NotStageable("table functions are not split")
        parts = [part.name for part in table.parts]
        if len(parts) == 1 and parts[0].lower() in ctes:
            continue
        found = find_table(catalog, parts)[1]
        if found.elsewhere:
            raise NotStageable(f"{found.elsewhere} does not lie on this machine")
        oracle.declare(found)


def _only(node: Node, columns: list[str]) -> Node:
    """The node with exactly these columns in this order, which may repeat."""
    if [field.name for field in node.fields] == columns:
        return node
    types = {field.name: field.type for field in node.fields}
    items, fields = [], []
    for place, name in enumerate(columns):
        out = f"r{place}"
        items.append((out, column(name)))
        fields.append(Field(out, types[name]))
    return Project(node, tuple(items), tuple(fields))


def check_types(root: Node, expected: tuple[Field, ...]) -> None:
    """The planner's types must be DuckDB's own; if not, it has misread something."""
    for mine, wanted in zip(root.fields, expected, strict=True):
        if mine.type != wanted.type:
            raise NotStageable(
                f"column {wanted.name!r} would be {mine.type} instead of {wanted.type}"
            )
