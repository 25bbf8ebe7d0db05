"""What is computed of groups: the columns of the answer, HAVING and ORDER BY over one grouping.

Everything above the grouping becomes expressions over its columns (and those of dimensions that
are joined with groups), so that the same expressions can be evaluated with any file left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from queryard.sql.planner.algebra import Filter, Join, Node, Project, Sort, names
from queryard.sql.planner.expressions import (
    Expr,
    bare,
    cast,
    column,
    conjuncts,
    references,
    substituted,
    text,
)
from queryard.sql.planner.oracle import Field

from .calls import OnlineCall
from .errors import NotOnline
from .formulas import Formula, Formulas
from .path import SampledPath
from .plan import ColumnKind, Condition, Ordering, OutputColumn, SortKey

_NUMBER = re.compile(r"^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|U?INTEGER|DOUBLE|FLOAT|DECIMAL\(.*\))$")
_ABOVE = (exp.GT, exp.GTE)
_BELOW = (exp.LT, exp.LTE)


@dataclass(slots=True)
class Groups:
    """Expressions over the columns of the grouping."""

    calls: Mapping[str, OnlineCall]
    items: list[tuple[Field, Expr]] = field(default_factory=list)
    conditions: list[Expr] = field(default_factory=list)
    joins: list[tuple[Node, list[Expr]]] = field(default_factory=list)
    sort: Sort | None = None
    sort_keys: list[tuple[Expr, str]] = field(default_factory=list)
    measures: list[Formula] = field(default_factory=list)
    rank_sql: list[str] = field(default_factory=list)
    formulas: Formulas = field(init=False)

    def __post_init__(self) -> None:
        self.formulas = Formulas(
            frozenset(name for name, call in self.calls.items() if call.kind == "additive")
        )

    # ------------------------------------------------------------------ what is what

    def kind_of(self, expression: Expr, what: str) -> ColumnKind:
        """What is known of an expression before all rows are read."""
        kinds = {self.calls[name].kind for name in references(expression) if name in self.calls}
        if not kinds:
            return "key"
        if kinds == {"additive"}:
            return "estimated"
        if kinds == {"bound"}:
            return "bound"
        if kinds == {"quantile"} and isinstance(bare(expression), exp.Column):
            return "quantile"
        if "quantile" in kinds:
            raise NotOnline(f"{what} is computed of a quantile, of which only itself is estimated")
        raise NotOnline(
            f"{what} mixes an estimate with a minimum, maximum or count of distinct values"
        )

    def measure(self, expression: Expr) -> int:
        """The place of an estimated number; equal ones are measured once."""
        found = self.formulas.number(expression)
        if found not in self.measures:
            self.measures.append(found)
        return self.measures.index(found)

    # ------------------------------------------------------------------ parts of the answer

    def outputs(self, expected: Sequence[Field]) -> tuple[OutputColumn, ...]:
        found = []
        for (_, expression), wanted in zip(self.items, expected, strict=True):
            what = f"the column {wanted.name!r}"
            kind = self.kind_of(expression, what)
            if kind == "estimated":
                if not _NUMBER.match(wanted.type):
                    raise NotOnline(f"{what} is made of estimates, but is no number: {wanted.type}")
                measure = self.measure(expression)
                found.append(OutputColumn(wanted.name, wanted.type, kind, measure))
                continue
            plain = bare(expression)
            call = self.calls.get(plain.name) if isinstance(plain, exp.Column) else None
            direction = call.direction if call is not None else ""
            share = call.call.share if call is not None else None
            found.append(OutputColumn(wanted.name, wanted.type, kind, None, direction, share))
        return tuple(found)

    def having(self) -> tuple[Condition, ...]:
        found = []
        for condition in (bare(c) for whole in self.conditions for c in conjuncts(whole)):
            kind = self.kind_of(condition, "HAVING")
            if kind in ("bound", "quantile"):
                raise NotOnline(
                    "HAVING asks for a quantile, minimum, maximum or count of distinct values"
                )
            if kind == "key":
                found.append(Condition(None, exact=True))
            elif isinstance(condition, (*_ABOVE, *_BELOW)):
                difference = exp.Sub(
                    this=cast(condition.this.copy(), "DOUBLE"),
                    expression=cast(condition.expression.copy(), "DOUBLE"),
                )
                side = "above" if isinstance(condition, _ABOVE) else "below"
                found.append(Condition(self.measure(difference), side))  # type: ignore[arg-type]
            else:
                found.append(Condition(None))
        return tuple(found)

    def ordering(self) -> Ordering | None:
        if self.sort is None:
            return None
        kinds = [self.kind_of(key, "ORDER BY") for key, _ in self.sort_keys]
        if "bound" in kinds or "quantile" in kinds:
            raise NotOnline("ORDER BY a quantile, minimum, maximum or count of distinct values")
        measure = None
        if kinds and kinds[0] == "estimated":
            measure = self.measure(self.sort_keys[0][0])
        descending = bool(self.sort_keys) and self.sort_keys[0][1].startswith("DESC")
        return Ordering(measure, descending, self.sort.limit, self.sort.offset)

    def kept(self) -> tuple[Formula, ...]:
        """The conditions of HAVING on the estimates."""
        return tuple(self.formulas.condition(condition) for condition in self.conditions)

    def sorting(self) -> tuple[SortKey, ...]:
        """ORDER BY: measures, and between them ranks of keys, which DuckDB gives."""
        found, ranked = list[SortKey](), list[str]()

        def end_rank() -> None:
            if ranked:
                found.append(SortKey(rank=len(self.rank_sql)))
                self.rank_sql.append(", ".join(ranked))
                ranked.clear()

        for key, way in self.sort_keys:
            if self.kind_of(key, "ORDER BY") == "key":
                ranked.append(f"{text(key)} {way}".rstrip())
                continue
            end_rank()
            first = "NULLS FIRST" in way
            found.append(SortKey(self.measure(key), None, way.startswith("DESC"), first))
        end_rank()
        return tuple(found)


def groups_of(path: SampledPath, calls: Sequence[OnlineCall]) -> Groups:
    """Everything above the grouping, as expressions over its columns."""
    groups = Groups({call.out: call for call in calls})
    known: dict[str, Expr] = {f.name: column(f.name) for f in path.aggregate.fields}
    fields = path.aggregate.fields
    below: Node = path.aggregate
    for node in reversed(path.above):
        if isinstance(node, Filter):
            groups.conditions += [substituted(c, known) for c in node.conditions]
        elif isinstance(node, Join):
            other = node.right if node.left is below else node.left
            known |= {name: column(name) for name in names(other)}
            on = [substituted(c, known) for c in node.conditions]
            of_keys = [c for c in on if not references(c) & groups.calls.keys()]
            groups.joins.append((other, of_keys))
            groups.conditions += [c for c in on if c not in of_keys]
        elif isinstance(node, Project):
            known = {name: _kept_type(e, node, name, known) for name, e in node.items}
        elif isinstance(node, Sort):
            groups.sort = node
            groups.sort_keys = [(known[key.name].copy(), key.direction) for key in node.keys]
        fields = node.fields
        below = node
    groups.items = [(f, known[f.name]) for f in fields]
    return groups


def _kept_type(expression: Expr, node: Project, name: str, known: Mapping[str, Expr]) -> Expr:
    """The expression over the grouping; a literal keeps the type that it has by itself."""
    found = substituted(expression, known)
    if isinstance(bare(found), exp.Column):
        return found
    types = {f.name: f.type for f in node.fields}
    return cast(found, types[name])
