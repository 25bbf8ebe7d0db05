"""Aggregates over distinct values, as two groupings: first by the value too, then by the keys."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from .aggregates import Call
from .algebra import Aggregate, Join, Node, OneRow, Scan, Shared, UnionAll
from .builder import Builder
from .expressions import Expr, cast, column

# These can be computed from their own results over smaller groups.
_NESTS = {
    "count": "sum",
    "count_if": "sum",
    "sum": "sum",
    "min": "min",
    "max": "max",
    "bool_and": "bool_and",
    "bool_or": "bool_or",
}


class DistinctInTwo:
    """Rewrites every grouping where all DISTINCT aggregates read the same column."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._shared: dict[int, Shared] = {}

    def run(self, node: Node) -> Node:
        if isinstance(node, Scan | OneRow):
            return node
        if isinstance(node, Join):
            return replace(node, left=self.run(node.left), right=self.run(node.right))
        if isinstance(node, UnionAll):
            return replace(node, inputs=tuple(self.run(child) for child in node.inputs))
        if isinstance(node, Shared):
            if id(node) not in self._shared:
                self._shared[id(node)] = Shared(self.run(node.child))
            return self._shared[id(node)]
        if isinstance(node, Aggregate):
            return self._aggregate(replace(node, child=self.run(node.child)))
        return replace(node, child=self.run(node.child))

    def _aggregate(self, node: Aggregate) -> Node:
        values = {(call.argument, call.condition) for call in node.calls if call.distinct}
        others = [call for call in node.calls if not call.distinct]
        if len(values) != 1 or any(call.function not in _NESTS for call in others):
            return node
        ((argument, condition),) = values
        assert argument is not None
        child, value = node.child, argument
        if condition is not None:
            # Aggregates of distinct values skip NULL, so what FILTER drops may become NULL.
            kept = exp.Case(ifs=[exp.If(this=column(condition), true=column(argument))])
            child, (value,) = self._builder.extended(child, [kept])
        fresh = self._builder.fresh
        keys = [(fresh(), source) for _, source in node.keys]
        inner_value = fresh()
        parts = {call.out: replace(call, out=fresh()) for call in others}
        inner = self._builder.aggregate(child, [*keys, (inner_value, value)], list(parts.values()))
        outer_calls, items = [], list[tuple[str, Expr]]()
        types = {field.name: field.type for field in node.fields}
        for call in node.calls:
            out = fresh()
            if call.distinct:
                outer_calls.append(Call(out, call.function, inner_value))
            else:
                outer_calls.append(Call(out, _NESTS[call.function], parts[call.out].out))
            items.append((call.out, self._result(call, out, types[call.out])))
        outs = [(fresh(), name) for name, _ in keys]
        outer = self._builder.aggregate(inner, outs, outer_calls)
        names = [(name, column(out)) for (name, _), (out, _) in zip(node.keys, outs, strict=True)]
        return self._builder.project(outer, [*names, *items])

    def _result(self, call: Call, out: str, found_type: str) -> Expr:
        result: Expr = column(out)
        if not call.distinct and call.on_empty == "0":
            result = exp.Coalesce(this=result, expressions=[exp.Literal.number(0)])
        return cast(result, found_type)
