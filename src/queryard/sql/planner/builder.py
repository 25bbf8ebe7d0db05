"""Makes nodes of the logical plan: fresh names, types asked of DuckDB, and no loose ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count

from sqlglot import exp

from .aggregates import Call, checked
from .algebra import Aggregate, Filter, Join, JoinKind, Node, Project, Scan, UnionAll, names
from .contract import TableLike
from .errors import NotStageable
from .expressions import Expr, bare, cast, column, references, text
from .oracle import Field, Oracle


class Builder:
    """A factory of nodes for one plan."""

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self._numbers = count(1)

    def fresh(self) -> str:
        """A column name that is not used yet."""
        return f"c{next(self._numbers)}"

    def scan(self, key: str, table: TableLike) -> Scan:
        fields = tuple(Field(self.fresh(), column.type) for column in table.columns)
        columns = {f.name: c.name for f, c in zip(fields, table.columns, strict=True)}
        return Scan(key, columns, fields)

    def filter(self, child: Node, conditions: Iterable[Expr]) -> Node:
        conditions = tuple(conditions)
        self._check(conditions, names(child))
        return Filter(child, conditions) if conditions else child

    def project(self, child: Node, items: Sequence[tuple[str, Expr]]) -> Project:
        """New columns under the given names."""
        self._check((expression for _, expression in items), names(child))
        types = self.types([expression for _, expression in items], child.fields)
        fields = tuple(Field(name, t) for (name, _), t in zip(items, types, strict=True))
        return Project(child, tuple(items), fields)

    def extended(self, child: Node, expressions: Sequence[Expr]) -> tuple[Node, list[str]]:
        """The child with more columns; bare columns are not copied. Names in order."""
        found, new = [], []
        for expression in expressions:
            plain = bare(expression)
            if isinstance(plain, exp.Column):
                found.append(plain.name)
            else:
                name = self.fresh()
                new.append((name, expression))
                found.append(name)
        if not new:
            return child, found
        kept = [(field.name, column(field.name)) for field in child.fields]
        return self.project(child, [*kept, *new]), found

    def join(self, kind: JoinKind, left: Node, right: Node, conditions: Iterable[Expr]) -> Join:
        conditions = tuple(conditions)
        self._check(conditions, names(left) | names(right))
        return Join(kind, left, right, conditions)

    def aggregate(
        self, child: Node, keys: Sequence[tuple[str, str]], calls: Sequence[Call]
    ) -> Aggregate:
        """Groups and aggregates over columns of the child."""
        self._check((column(source) for _, source in keys), names(child))
        types = {field.name: field.type for field in child.fields}
        sound = [
            checked(call, "" if call.argument is None else types[call.argument]) for call in calls
        ]
        found = self.oracle.types([call.text() for call in sound], child.fields)
        fields = [Field(name, types[source]) for name, source in keys]
        fields += [Field(call.out, t) for call, t in zip(sound, found, strict=True)]
        return Aggregate(child, tuple(keys), tuple(sound), tuple(fields))

    def union_all(self, inputs: Sequence[Node]) -> UnionAll:
        """All rows of nodes with equally many columns, brought to the types DuckDB would use."""
        widths = {len(node.fields) for node in inputs}
        if len(widths) != 1:
            raise NotStageable("the sides of a set operation differ in width")
        sides = [
            "SELECT " + ", ".join(f"CAST(NULL AS {f.type}) AS x{i}" for i, f in enumerate(n.fields))
            for n in inputs
        ]
        types = [field.type for field in self.oracle.describe(" UNION ALL ".join(sides))]
        fields = tuple(Field(self.fresh(), found) for found in types)
        return UnionAll(tuple(self._as_types(node, types) for node in inputs), fields)

    def _as_types(self, node: Node, types: Sequence[str]) -> Node:
        if [field.type for field in node.fields] == list(types):
            return node
        items = [
            (self.fresh(), column(f.name) if f.type == t else cast(column(f.name), t))
            for f, t in zip(node.fields, types, strict=True)
        ]
        return self.project(node, items)

    def renamed(self, node: Node) -> Project:
        """The same rows under fresh names."""
        return self.project(node, [(self.fresh(), column(field.name)) for field in node.fields])

    def types(self, expressions: Sequence[Expr], fields: Iterable[Field]) -> tuple[str, ...]:
        """The types of expressions over these fields; only the needed ones are asked for."""
        known = {field.name: field for field in fields}
        plain = [bare(expression) for expression in expressions]
        asked = [e for e in plain if not isinstance(e, exp.Column)]
        used = {name for e in asked for name in references(e)}
        wanted = [field for name, field in known.items() if name in used]
        answers = iter(self.oracle.types([text(e) for e in asked], wanted))
        return tuple(
            known[e.name].type if isinstance(e, exp.Column) else next(answers) for e in plain
        )

    def _check(self, expressions: Iterable[Expr], available: frozenset[str]) -> None:
        for expression in expressions:
            if references(expression) - available:
                raise NotStageable(
                    "a subquery refers to the outer query in a way that is not taken apart"
                )
