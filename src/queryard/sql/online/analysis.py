"""From SQL to an online plan, or to the reason why the query must run exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import duckdb
from sqlglot import exp

from queryard.sql.planner.algebra import Aggregate, Filter, Join, Node, Project, Shared, Sort
from queryard.sql.planner.builder import Builder
from queryard.sql.planner.cardinality import Cardinality
from queryard.sql.planner.contract import CatalogLike
from queryard.sql.planner.errors import NotStageable
from queryard.sql.planner.expressions import bare, column
from queryard.sql.planner.oracle import Field, Oracle, quoted
from queryard.sql.planner.prune import pruned
from queryard.sql.planner.pushdown import Pushdown
from queryard.sql.planner.staging import bound_query, check_types

from .apart import Apart
from .calls import OnlineCall, online_call
from .dimensions import Dimensions
from .errors import NotOnline
from .gathering import additives, gathered_texts
from .groups import groups_of
from .narrowing import Narrowing
from .path import SampledPath, sampled_path
from .plan import OnlinePlan, Partial, PartialKind
from .rendering import Rendering, order_text

_FILE = "file"
_ROWS = "n"
# Distinct values are kept until the end; more than this many are not.
_MOST_DISTINCT = 1e6
_HOLE = "\0"


def online_plan(sql: str, catalog: CatalogLike, prefix: str = "online_") -> OnlinePlan:
    """How a SELECT is answered from some files of its largest table; `NotOnline` says why not.

    Names of the temporary tables begin with `prefix`.
    """
    try:
        with Oracle() as oracle:
            return _planned(sql, catalog, Builder(oracle), prefix)
    except NotStageable as error:
        raise NotOnline(error.reason) from error
    except RecursionError as error:
        raise NotOnline("the statement is nested too deeply") from error
    except duckdb.Error as error:
        raise NotOnline(f"a part alone is no SQL: {str(error).splitlines()[0]}") from error


def _planned(sql: str, catalog: CatalogLike, builder: Builder, prefix: str) -> OnlinePlan:
    root, expected = bound_query(sql, catalog, builder)
    cardinality = Cardinality(catalog, builder.oracle)
    root = pruned(Pushdown(builder, cardinality).run(root))
    check_types(root, expected)
    path = sampled_path(root, catalog)
    root = Apart(cardinality, path.scan).run(root)
    root = Narrowing(sampled_path(root, catalog).nodes).run(root)
    path = sampled_path(root, catalog)
    calls = tuple(online_call(call) for call in path.aggregate.calls)
    rows, groups_expected = cardinality.rows(path.aggregate.child), cardinality.rows(path.aggregate)
    _check_distinct(path.aggregate, calls, cardinality, groups_expected)
    dimensions = Dimensions(catalog, cardinality, prefix)
    dimensions.beside(path.nodes)
    groups = groups_of(path, calls)
    outputs = groups.outputs(expected)
    having, ordering = groups.having(), groups.ordering()
    kept, sorting = groups.kept(), groups.sorting()
    keys = path.aggregate.fields[: len(path.aggregate.keys)]
    return OnlinePlan(
        sql=sql,
        table=path.scan.table,
        columns=tuple(path.scan.columns.values()),
        dimensions=tuple(dimensions.found),
        keys=keys,
        partials=tuple(_partials(calls)),
        fields=outputs,
        having=having,
        ordering=ordering,
        rows_expected=rows,
        groups_expected=groups_expected,
        partial_texts=_partial_texts(path, calls, catalog, dimensions, tails=True),
        tailless_texts=_partial_texts(path, calls, catalog, dimensions, tails=False),
        final_texts=_final_texts(root, path, calls, catalog, dimensions, expected),
        gathered_texts=gathered_texts(keys, calls, groups, outputs, dimensions.placed),
        additives=additives(calls),
        formulas=tuple(groups.measures),
        kept=kept,
        sorting=sorting,
        merges=all(call.kind != "quantile" for call in calls),
    )


def _check_distinct(
    node: Aggregate, calls: Sequence[OnlineCall], cardinality: Cardinality, groups: float
) -> None:
    child = cardinality.of(node.child)
    for call in calls:
        argument = call.call.argument
        if call.call.distinct and argument is not None:
            kept = min(child.columns[argument].distinct * groups, child.rows)
            if kept > _MOST_DISTINCT:
                raise NotOnline(f"count(DISTINCT …) would keep about {kept:,.0f} values to the end")


def _partials(calls: Sequence[OnlineCall]) -> list[Partial]:
    found = []
    for call in calls:
        kind: PartialKind = "additive"
        if call.call.distinct:
            kind = "distinct"
        elif call.call.function in ("min", "max"):
            kind = "min" if call.call.function == "min" else "max"
        elif call.kind == "bound":
            kind = "flag"
        elif call.kind == "quantile":
            kind = "quantile"
        elif len(call.partial()) == 3:
            kind = "moments"
        found += [Partial(name, kind) for name, _ in call.partial()]
        ends: tuple[PartialKind, PartialKind] = ("min", "max")
        pairs = zip(call.extremes(), ends, strict=False)
        found += [Partial(name, end) for (name, _), end in pairs]
    return found


# ---------------------------------------------------------------------- partial rows


def _partial_texts(
    path: SampledPath,
    calls: Sequence[OnlineCall],
    catalog: CatalogLike,
    dimensions: Dimensions,
    *,
    tails: bool,
) -> tuple[str, str, str]:
    """Rows of the sampled table up to the grouping, which is by file, too."""
    columns = "".join(f"t.{quoted(c)} AS {name}, " for name, c in path.scan.columns.items())
    file = Field(_FILE, "VARCHAR")
    scan = replace(path.scan, fields=(*path.scan.fields, file))
    placed = dict(dimensions.placed)
    placed[id(scan)] = f"SELECT {columns}{_HOLE} AS {_FILE} FROM {_HOLE} AS t"
    before: Node = path.scan
    node: Node = scan
    for original in reversed(path.below):
        node = _carrying(original, before, node, file)
        before = original
    child = Rendering(catalog, placed).sql(node)
    items = [_FILE, *(f"{source} AS {name}" for name, source in path.aggregate.keys)]
    items.append(f"count(*) AS {_ROWS}")
    items += [f"{sql} AS {name}" for call in calls for name, sql in call.partial()]
    items += [
        f"{sql if tails or call.needs_extremes else 'CAST(NULL AS DOUBLE)'} AS {name}"
        for call in calls
        for name, sql in call.extremes()
    ]
    grouped = ", ".join([_FILE, *(source for _, source in path.aggregate.keys)])
    sql = f"SELECT {', '.join(items)} FROM ({child}) GROUP BY {grouped}"
    first, second, third = sql.split(_HOLE)
    return first, second, third


def _carrying(node: Node, before: Node, child: Node, file: Field) -> Node:
    """The node over a child that tells the file of its rows, which the node hands on."""
    if isinstance(node, Project):
        items = (*node.items, (file.name, column(file.name)))
        return Project(child, items, (*node.fields, file))
    if isinstance(node, Join):
        if node.left is before:
            return replace(node, left=child)
        return replace(node, right=child)
    if isinstance(node, Shared):
        return child
    assert isinstance(node, Filter)
    return replace(node, child=child)


# ---------------------------------------------------------------------- the exact answer


def _final_texts(
    root: Node,
    path: SampledPath,
    calls: Sequence[OnlineCall],
    catalog: CatalogLike,
    dimensions: Dimensions,
    expected: Sequence[Field],
) -> tuple[str, str]:
    """All partial rows merged, and everything above the grouping."""
    types = {field.name: field.type for field in path.aggregate.fields}
    keys = [name for name, _ in path.aggregate.keys]
    items = [*keys, *(f"CAST({c.merge()} AS {types[c.out]}) AS {c.out}" for c in calls)]
    centres = [c for call in calls if (c := call.centre(", ".join(keys))) is not None]
    wide = "".join(f", {sql} AS {name}" for name, sql in centres)
    grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
    merged = f"SELECT {', '.join(items)} FROM (SELECT *{wide} FROM {_HOLE}){grouped}"
    rendering = Rendering(catalog, {**dimensions.placed, id(path.aggregate): merged})
    outputs = [field.name for field in root.fields]
    tail = ""
    if isinstance(root, Project) and isinstance(root.child, Sort):
        # A sort within is no order of the result: it goes to the end.
        sources = {name: bare(e) for name, e in root.items}
        if all(isinstance(e, exp.Column) for e in sources.values()):
            outputs, root = [sources[name].name for name in outputs], root.child
    if isinstance(root, Sort):
        tail, root = order_text(root), root.child
    chosen = ", ".join(
        f"CAST(q.{name} AS {field.type}) AS {quoted(field.name)}"
        for name, field in zip(outputs, expected, strict=True)
    )
    first, second = f"SELECT {chosen} FROM ({rendering.sql(root)}) AS q{tail}".split(_HOLE)
    return first, second
