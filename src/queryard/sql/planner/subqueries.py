"""Turns subqueries in expressions into joins.

- EXISTS and IN as a condition of WHERE become semi joins, NOT EXISTS an anti join.
- NOT IN minds NULLs: with any NULL in the subquery nothing qualifies, unless it is empty.
- A correlated aggregate becomes a left join to one row per key of the correlation, so it never
  multiplies rows; counts of nothing are 0.
- Any other scalar subquery becomes a join to a single row, which a job of its own makes: more
  than one row is DuckDB's error, whether or not the outer query has rows to join with it.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from .aggregates import Call
from .algebra import Aggregate, JoinKind, Node, Shared, Sort, names
from .context import Selecting
from .errors import NotStageable
from .expressions import Expr, bare, cast, column, references, substituted
from .types import equal_as_groups

Bind = Callable[[Expr], Expr]
_MORE_THAN_ONE = (
    "More than one row returned by a subquery used as an expression - "
    "scalar subqueries can only return a single row."
)


def condition(binder: Selecting, node: Expr, bind: Bind) -> None:
    """Keep the rows of `binder` for which a condition with subqueries is true."""
    node = bare(node)
    negated = isinstance(node, exp.Not)
    inner = bare(node.this) if negated else node
    if isinstance(inner, exp.Exists):
        _exists_condition(binder, inner, negated)
    elif isinstance(inner, exp.In) and inner.args.get("query") is not None:
        _in_condition(binder, inner, negated, bind)
    else:
        binder.keep([bind(node)])


def value(binder: Selecting, node: Expr, bind: Bind) -> Expr:
    """Join what a subquery needs to the rows of `binder`; the expression that stands for it."""
    if isinstance(node, exp.Exists):
        return _exists_value(binder, node)
    if isinstance(node, exp.In):
        return _in_value(binder, node, bind)
    return _scalar_value(binder, node)


# ---------------------------------------------------------------------- EXISTS


def _exists_condition(binder: Selecting, node: exp.Exists, negated: bool) -> None:
    inner = _inner(binder, node.this)
    if inner is not None and inner.correlated:
        if not inner.is_plain:
            raise NotStageable("a correlated EXISTS over groups or with LIMIT")
        kind: JoinKind = "anti" if negated else "semi"
        binder.node = binder.builder.join(kind, binder.node, inner.node, inner.correlated)
        return
    found = _exists_value(binder, node)
    binder.keep([exp.Not(this=found) if negated else found])


def _exists_value(binder: Selecting, node: exp.Exists) -> Expr:
    builder = binder.builder
    inner = _inner(binder, node.this)
    if inner is None or not inner.correlated:
        rows = inner.finish().node if inner is not None else binder.context.query(node.this).node
        counted = Call(builder.fresh(), "count")
        any_row = builder.aggregate(Sort(rows, (), 1), (), [counted])
        binder.node = builder.join("inner", binder.node, any_row, ())
        return exp.GT(this=column(counted.out), expression=exp.Literal.number(0))
    if not inner.is_plain:
        raise NotStageable("a correlated EXISTS over groups or with LIMIT")
    pairs = _equalities(inner)
    right, keys = _keyed(inner, [mine for _, mine in pairs])
    groups = [(builder.fresh(), key) for key in keys]
    _left_join(binder, builder.aggregate(right, groups, ()), pairs, [name for name, _ in groups])
    return _is_not_null(column(groups[0][0]))


# ---------------------------------------------------------------------- IN


def _in_condition(binder: Selecting, node: exp.In, negated: bool, bind: Bind) -> None:
    wanted = bind(node.this)
    rows, candidate, pairs = _candidates(binder, node, wanted)
    if not negated:
        conditions = [exp.EQ(this=o, expression=m) for o, m in pairs]
        conditions.append(exp.EQ(this=wanted, expression=column(candidate)))
        binder.node = binder.builder.join("semi", binder.node, rows, conditions)
        return
    wanted, values, counts = _in_parts(binder, wanted, rows, candidate, pairs)
    keys, found = values[0], values[1]
    conditions = [
        exp.EQ(this=outer, expression=column(key))
        for (outer, _), key in zip(pairs, keys, strict=True)
    ]
    conditions.append(exp.EQ(this=wanted, expression=column(found)))
    binder.node = binder.builder.join("anti", binder.node, values[2], conditions)
    total, known = counts
    whole = exp.And(
        this=_is_not_null(wanted), expression=exp.EQ(this=column(total), expression=column(known))
    )
    binder.keep([exp.Or(this=_is_zero(total), expression=whole)])


def _in_value(binder: Selecting, node: exp.In, bind: Bind) -> Expr:
    wanted = bind(node.this)
    rows, candidate, pairs = _candidates(binder, node, wanted)
    wanted, (keys, found, distinct), (total, known) = _in_parts(
        binder, wanted, rows, candidate, pairs
    )
    binder.node = binder.builder.join(
        "left",
        binder.node,
        distinct,
        [
            *(exp.EQ(this=o, expression=column(k)) for (o, _), k in zip(pairs, keys, strict=True)),
            exp.EQ(this=wanted, expression=column(found)),
        ],
    )
    some_unknown = exp.LT(this=column(known), expression=column(total))
    unknown = cast(exp.Null(), "BOOLEAN")
    return exp.Case(
        ifs=[
            exp.If(this=_is_zero(total), true=exp.false()),
            exp.If(this=exp.Is(this=wanted.copy(), expression=exp.Null()), true=unknown),
            exp.If(this=_is_not_null(column(found)), true=exp.true()),
            exp.If(this=some_unknown, true=unknown.copy()),
        ],
        default=exp.false(),
    )


def _candidates(
    binder: Selecting, node: exp.In, wanted: Expr
) -> tuple[Node, str, list[tuple[Expr, Expr]]]:
    """The rows of an IN subquery, the column compared, and the correlation as pairs."""
    builder = binder.builder
    if isinstance(bare(wanted), exp.Tuple):
        raise NotStageable("IN with several columns is not taken apart")
    query = node.args["query"]
    inner = _inner(binder, query)
    if inner is None or not inner.correlated:
        bound = inner.finish() if inner is not None else binder.context.query(query)
        if len(bound.columns) != 1:
            raise NotStageable("IN with several columns is not taken apart")
        rows, candidate = bound.node, bound.columns[0][1]
        pairs: list[tuple[Expr, Expr]] = []
    else:
        if inner.is_grouped or any(
            inner.select.args.get(name) for name in ("limit", "offset", "having")
        ):
            raise NotStageable("a correlated IN over groups or with LIMIT")
        if len(inner.items) != 1:
            raise NotStageable("IN with several columns is not taken apart")
        item = inner.scalar(inner.items[0][1])
        pairs = _equalities(inner)
        rows, (candidate,) = builder.extended(inner.node, [item])
    (mine,) = builder.types([wanted], binder.node.fields)
    other = next(field.type for field in rows.fields if field.name == candidate)
    if not equal_as_groups(mine, other):
        raise NotStageable(f"IN compares {mine} with {other}")
    return rows, candidate, pairs


def _in_parts(
    binder: Selecting,
    wanted: Expr,
    rows: Node,
    candidate: str,
    pairs: list[tuple[Expr, Expr]],
) -> tuple[Expr, tuple[list[str], str, Node], tuple[str, str]]:
    """Join the counts of the candidates per key; the distinct candidates for a further join."""
    builder = binder.builder
    rows, keys = builder.extended(rows, [mine for _, mine in pairs])
    kept = [(builder.fresh(), column(name)) for name in [*keys, candidate]]
    shared = Shared(builder.project(rows, kept))
    first, second = builder.renamed(shared), builder.renamed(shared)
    *first_keys, value_one = [field.name for field in first.fields]
    total, known = Call(builder.fresh(), "count"), Call(builder.fresh(), "count", value_one)
    groups = [(builder.fresh(), key) for key in first_keys]
    counts = builder.aggregate(first, groups, [total, known])
    if pairs:
        _left_join(binder, counts, pairs, [name for name, _ in groups])
    else:
        binder.node = builder.join("inner", binder.node, counts, ())
    outs = [(builder.fresh(), field.name) for field in second.fields]
    distinct = builder.aggregate(second, outs, ())
    *distinct_keys, found = [name for name, _ in outs]
    return wanted, (distinct_keys, found, distinct), (total.out, known.out)


# ---------------------------------------------------------------------- scalar subqueries


def _scalar_value(binder: Selecting, node: Expr) -> Expr:
    query = node.this if isinstance(node, exp.Subquery) else node
    if isinstance(node, exp.Subquery) and any(
        bool(value) for name, value in node.args.items() if name not in ("this", "alias")
    ):
        raise NotStageable("a subquery with clauses outside its parentheses")
    inner = _inner(binder, query)
    if inner is not None and inner.correlated:
        return _correlated_scalar(binder, inner)
    bound = inner.finish() if inner is not None else binder.context.query(query)
    if len(bound.columns) != 1:
        raise NotStageable("a scalar subquery with several columns")
    found = bound.columns[0][1]
    always_one = (
        inner is not None
        and inner.is_grouped
        and not any(inner.select.args.get(n) for n in ("group", "having", "limit", "offset"))
    )
    if always_one:
        binder.node = binder.builder.join("inner", binder.node, bound.node, ())
        return column(found)
    _check_never_folded(query)
    checked = _checked(binder, bound.node, found)
    binder.node = binder.builder.join("inner", binder.node, checked, ())
    return column(checked.fields[0].name)


def _correlated_scalar(binder: Selecting, inner: Selecting) -> Expr:
    clauses = ("group", "having", "limit", "offset", "order", "distinct")
    if any(inner.select.args.get(name) for name in clauses):
        raise NotStageable("a correlated scalar subquery with GROUP BY, ORDER BY or LIMIT")
    if len(inner.items) != 1:
        raise NotStageable("a scalar subquery with several columns")
    item = inner.items[0][1]
    pairs = _equalities(inner)
    if not inner.is_grouped:
        # DuckDB looks for a second row only for those outer rows that its own plan leaves over.
        raise NotStageable("a correlated scalar subquery that may return more than one row")
    keys = inner.group([mine for _, mine in pairs])
    if not isinstance(inner.node, Aggregate):
        raise NotStageable("a correlated scalar subquery with a subquery of its own")
    calls = inner.node.calls
    result = inner.grouped(item)
    if references(result) & set(keys) or references(result) - names(inner.node):
        raise NotStageable("a correlated scalar subquery that returns its key")
    _left_join(binder, inner.node, pairs, keys)
    # Where there is no group, counts are 0 and the rest is NULL, as for no rows at all.
    empty = {
        call.out: exp.Coalesce(this=column(call.out), expressions=[exp.Literal.number(0)])
        for call in calls
        if call.on_empty == "0"
    }
    return exp.Paren(this=substituted(result, empty))


def _checked(binder: Selecting, rows: Node, found: str) -> Node:
    """The only value of a column as a single row; an error if there are more."""
    builder = binder.builder
    counted, only = Call(builder.fresh(), "count"), Call(builder.fresh(), "min", found)
    single = builder.aggregate(rows, (), [counted, only])
    type_ = next(field.type for field in single.fields if field.name == only.out)
    error = exp.Anonymous(this="error", expressions=[exp.Literal.string(_MORE_THAN_ONE)])
    too_many = exp.GT(this=column(counted.out), expression=exp.Literal.number(1))
    value = exp.Case(ifs=[exp.If(this=too_many, true=cast(error, type_))], default=column(only.out))
    # Within the SQL of the outer query DuckDB would not compute it for a side without rows.
    return builder.renamed(Shared(builder.project(single, [(builder.fresh(), value)])))


def _check_never_folded(query: Expr) -> None:
    """Refuse where DuckDB drops parts of the statement unseen, maybe this subquery with its error.

    Those are parts that a constant decides about: `WHERE false`, `… OR true`, LIMIT 0.
    """
    for node in query.root().walk():
        decided_by: list[Expr] = []
        if isinstance(node, exp.Where | exp.Having | exp.Not | exp.If | exp.Coalesce):
            decided_by = [node.this]
        elif isinstance(node, exp.And | exp.Or):
            decided_by = [node.this, node.expression]
        elif isinstance(node, exp.Join) and node.args.get("on") is not None:
            decided_by = [node.args["on"]]
        elif isinstance(node, exp.Limit):
            if node.expression.name == "0":
                raise NotStageable("a scalar subquery of maybe several rows beside LIMIT 0")
            continue
        if any(_is_constant(found) for found in decided_by):
            raise NotStageable(
                "a scalar subquery of maybe several rows beside a constant condition"
            )


def _is_constant(node: Expr) -> bool:
    return not any(isinstance(n, exp.Column | exp.Query | exp.Exists) for n in node.walk())


# ---------------------------------------------------------------------- common ground


def _inner(binder: Selecting, query: Expr) -> Selecting | None:
    """The subquery bound up to WHERE, if it is a SELECT; set operations are bound as a whole."""
    while isinstance(query, exp.Subquery) and not any(
        bool(v) for k, v in query.args.items() if k not in ("this", "alias")
    ):
        query = query.this
    if not isinstance(query, exp.Select):
        return None
    return binder.inner(query)


def _equalities(inner: Selecting) -> list[tuple[Expr, Expr]]:
    """The correlation as pairs (outer expression, inner expression) that must be equal."""
    mine = names(inner.node)
    pairs = []
    for found in inner.correlated:
        found = bare(found)
        if not isinstance(found, exp.EQ):
            raise NotStageable("a subquery correlated by something else than equality")
        left, right = bare(found.this), bare(found.expression)
        if references(left) <= mine and references(left):
            left, right = right, left
        if references(left) & mine or not references(left):
            raise NotStageable("a correlation that mixes columns of both queries")
        if not references(right) <= mine or not references(right):
            raise NotStageable("a correlation that mixes columns of both queries")
        pairs.append((left, right))
    return pairs


def _keyed(inner: Selecting, expressions: list[Expr]) -> tuple[Node, list[str]]:
    return inner.builder.extended(inner.node, expressions)


def _left_join(
    binder: Selecting, right: Node, pairs: list[tuple[Expr, Expr]], keys: list[str]
) -> None:
    """Join one row per key; equality must be the same relation as grouping, or rows multiply."""
    fields = {field.name: field.type for field in right.fields}
    outer = [expression for expression, _ in pairs]
    if any(references(expression) - names(binder.node) for expression in outer):
        raise NotStageable("a correlated subquery over groups")
    types = binder.builder.types(outer, binder.node.fields)
    for key, found in zip(keys, types, strict=True):
        if not equal_as_groups(found, fields[key]):
            raise NotStageable(f"a correlation that compares {found} with {fields[key]}")
    conditions = [
        exp.EQ(this=expression.copy(), expression=column(key))
        for expression, key in zip(outer, keys, strict=True)
    ]
    binder.node = binder.builder.join("left", binder.node, right, conditions)


def _is_not_null(expression: Expr) -> Expr:
    return exp.Not(this=exp.Is(this=expression.copy(), expression=exp.Null()))


def _is_zero(name: str) -> Expr:
    zero = exp.Literal.number(0)
    return exp.EQ(this=exp.Coalesce(this=column(name), expressions=[zero]), expression=zero.copy())
