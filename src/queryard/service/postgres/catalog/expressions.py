"""Expressions of PostgreSQL turned into those of DuckDB, with their types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from sqlglot import exp

from .answers import UnknownCatalogQuery
from .calls import Calls
from .scopes import Output, Scope
from .typed import (
    NULL,
    VECTORS,
    Making,
    Typed,
    array_type,
    known_type,
    quoted,
    record_fields,
    text_of,
)
from .types import INTEGERS, element_of


class Queries(Protocol):
    """What rewrites a query within an expression."""

    def __call__(self, query: exp.Expr, around: Scope) -> tuple[str, tuple[Output, ...]]: ...


def folded(identifier: exp.Expr | str | None) -> str:
    """A name as PostgreSQL understands it: in lower case unless it is quoted."""
    if identifier is None:
        return ""
    if isinstance(identifier, str):
        return identifier.lower()
    if isinstance(identifier, exp.Identifier):
        name = str(identifier.this)
        return name if identifier.args.get("quoted") else name.lower()
    return identifier.name.lower()


_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Mod: "%",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
}
_SESSION: dict[type[exp.Expr], str] = {
    exp.CurrentCatalog: "current_catalog",
    exp.CurrentRole: "current_role",
    exp.CurrentSchema: "current_schema",
    exp.CurrentUser: "current_user",
    exp.SessionUser: "session_user",
}
_WITHOUT_PARENTHESES = frozenset({"user", "current_role", "current_user", "session_user"})
_OPERATORS: dict[str, Callable[[exp.Expr, exp.Expr], exp.Expr]] = {
    "=": lambda left, right: exp.EQ(this=left, expression=right),
    "<>": lambda left, right: exp.NEQ(this=left, expression=right),
    "!=": lambda left, right: exp.NEQ(this=left, expression=right),
    "~": lambda left, right: exp.RegexpLike(this=left, expression=right),
    "!~": lambda left, right: exp.Not(this=exp.RegexpLike(this=left, expression=right)),
    "~*": lambda left, right: exp.RegexpILike(this=left, expression=right),
    "!~*": lambda left, right: exp.Not(this=exp.RegexpILike(this=left, expression=right)),
    "~~": lambda left, right: exp.Like(this=left, expression=right),
    "!~~": lambda left, right: exp.Not(this=exp.Like(this=left, expression=right)),
    "||": lambda left, right: exp.DPipe(this=left, expression=right),
}


class Expressions:
    """Rewrites expressions; queries within them are given to `queries`."""

    def __init__(self, making: Making, queries: Queries) -> None:
        self._making = making
        self._queries = queries
        self.calls = Calls(making)

    def of(self, node: exp.Expr, scope: Scope) -> Typed:
        """An expression, with its type; its text stands for itself in any place."""
        kind = type(node)
        if kind in _COMPARISONS:
            return self._comparison(node, scope)
        if kind in _ARITHMETIC:
            return self._arithmetic(node, scope)
        if kind in _SESSION:
            return self.calls.call(_SESSION[kind], ())
        method = _METHODS.get(kind)
        if method is None:
            raise UnknownCatalogQuery(f"{kind.__name__} is not understood in catalog queries")
        return method(self, node, scope)

    def settled(self, node: exp.Expr, scope: Scope) -> Typed:
        """An expression whose type nothing else decides."""
        return self._making.settled(self.of(node, scope))

    def condition(self, node: exp.Expr, scope: Scope) -> str:
        """An expression that is true or false."""
        return self._making.as_type(self.of(node, scope), "bool").sql

    # ---- values and names

    def _literal(self, node: exp.Literal, scope: Scope) -> Typed:
        text = str(node.this)
        if node.is_string:
            return Typed(quoted(text), text=text)
        if not text.isdigit():
            return Typed(text, "numeric")
        return Typed(text, "int4" if int(text) < 2**31 else "int8")

    def _bytes(self, node: exp.ByteString, scope: Scope) -> Typed:
        """E'…': sqlglot has read the escapes."""
        text = str(node.this)
        return Typed(quoted(text), text=text)

    def _adjacent(self, node: exp.Concat, scope: Scope) -> Typed:
        """Strings that stand one after the other are one."""
        parts = node.expressions
        if not all(isinstance(part, exp.Literal) and part.is_string for part in parts):
            raise UnknownCatalogQuery("two expressions without an operator between them", "42601")
        text = "".join(str(part.this) for part in parts)
        return Typed(quoted(text), text=text)

    def _null(self, node: exp.Expr, scope: Scope) -> Typed:
        return NULL

    def _boolean(self, node: exp.Boolean, scope: Scope) -> Typed:
        return Typed("true" if node.this else "false", "bool")

    def _parameter(self, node: exp.Parameter, scope: Scope) -> Typed:
        if not node.name.isdigit() or not 0 < int(node.name) < 65536:
            raise UnknownCatalogQuery(f"there is no parameter ${node.name}", "42P02")
        return self._making.parameter(int(node.name))

    def _column(self, node: exp.Column, scope: Scope) -> Typed:
        name, table = folded(node.this), folded(node.args.get("table"))
        found = scope.column(name, table, folded(node.args.get("db")))
        if found is not None:
            return found
        if not table and name in _WITHOUT_PARENTHESES:
            return self.calls.call(name, ())
        if table:
            raise UnknownCatalogQuery(f'missing FROM-clause entry for table "{table}"', "42P01")
        raise UnknownCatalogQuery(f'column "{name}" does not exist', "42703")

    def _paren(self, node: exp.Expr, scope: Scope) -> Typed:
        return self.of(node.this, scope)

    def _collate(self, node: exp.Collate, scope: Scope) -> Typed:
        """All collations here compare bytes, as "C" does."""
        return self.of(node.this, scope)

    def _cast(self, node: exp.Cast, scope: Scope) -> Typed:
        wanted = known_type(type_text(node.args["to"]))
        return self._making.cast(self.of(node.this, scope), wanted)

    def _interval(self, node: exp.Interval, scope: Scope) -> Typed:
        unit = node.args.get("unit")
        text = f"{node.name} {unit.name if unit else ''}".strip()
        return Typed(f"CAST({quoted(text)} AS INTERVAL)", "interval")

    def _now(self, node: exp.Expr, scope: Scope) -> Typed:
        return Typed("now()", "timestamptz")

    # ---- operators

    def _comparison(self, node: exp.Expr, scope: Scope) -> Typed:
        operator = _COMPARISONS[type(node)]
        right = node.expression
        if isinstance(right, exp.Any | exp.All) or _is_all(right):
            return self._any_of(node.this, operator, right, scope)
        left, other = self._making.beside(self.of(node.this, scope), self.of(right, scope))
        return Typed(f"({left.sql} {operator} {other.sql})", "bool")

    def _any_of(self, left_node: exp.Expr, operator: str, right: exp.Expr, scope: Scope) -> Typed:
        """`x = ANY (…)` and `x <> ALL (…)`, of an array or of a query."""
        is_any = isinstance(right, exp.Any)
        inner = right.expressions[0] if _is_all(right) else right.this
        while isinstance(inner, exp.Paren):
            inner = inner.this
        left = self.of(left_node, scope)
        if isinstance(inner, exp.Subquery | exp.Query):
            sql, outputs = self._queries(inner, scope)
            left = self._beside_outputs(left, outputs)
            return Typed(f"({left.sql} {operator} {'ANY' if is_any else 'ALL'} ({sql}))", "bool")
        array = self.of(inner, scope)
        if array.is_open:
            array = self._making.as_type(array, array_type(left.type) or "_text")
        element = element_of(array.type)
        if left.is_open:
            left = self._making.as_type(left, element or "text")
        if (operator, is_any) == ("=", True):
            return Typed(f"list_contains({array.sql}, {left.sql})", "bool")
        if (operator, is_any) == ("<>", False):
            return Typed(f"(NOT list_contains({array.sql}, {left.sql}))", "bool")
        each = f"list_transform({array.sql}, lambda e: {left.sql} {operator} e)"
        return Typed(f"list_{'bool_or' if is_any else 'bool_and'}({each})", "bool")

    def _beside_outputs(self, left: Typed, outputs: tuple[Output, ...]) -> Typed:
        if not outputs:
            raise UnknownCatalogQuery("subquery has too few columns", "42601")
        return self._making.as_type(left, outputs[0].type or "text") if left.is_open else left

    def _arithmetic(self, node: exp.Expr, scope: Scope) -> Typed:
        left, right = self._making.beside(
            self.of(node.this, scope), self.of(node.expression, scope)
        )
        type_ = left.type if left.type == right.type else None
        if left.type in INTEGERS and right.type in INTEGERS:
            type_ = "int8" if {"int8", "oid"} & {left.type, right.type} else "int4"
        return Typed(f"({left.sql} {_ARITHMETIC[type(node)]} {right.sql})", type_)

    def _div(self, node: exp.Div, scope: Scope) -> Typed:
        left, right = self._making.beside(
            self.of(node.this, scope), self.of(node.expression, scope)
        )
        whole = left.type in INTEGERS and right.type in INTEGERS
        type_ = "int4" if whole and left.type != "int8" else left.type
        return Typed(f"({left.sql} {'//' if whole else '/'} {right.sql})", type_)

    def _neg(self, node: exp.Neg, scope: Scope) -> Typed:
        found = self.of(node.this, scope)
        return Typed(f"(-{found.sql})", found.type)

    def _and(self, node: exp.Expr, scope: Scope) -> Typed:
        word = "AND" if isinstance(node, exp.And) else "OR"
        parts = (self.condition(part, scope) for part in node.flatten())
        return Typed(f"({f' {word} '.join(parts)})", "bool")

    def _not(self, node: exp.Not, scope: Scope) -> Typed:
        return Typed(f"(NOT {self.condition(node.this, scope)})", "bool")

    def _is(self, node: exp.Is, scope: Scope) -> Typed:
        word = "IS NOT" if node.args.get("negate") else "IS"
        left = self.settled(node.this, scope)
        right = self.of(node.expression, scope)
        return Typed(f"({left.sql} {word} {right.sql})", "bool")

    def _in(self, node: exp.In, scope: Scope) -> Typed:
        word = "NOT IN" if node.args.get("negate") else "IN"
        left = self.of(node.this, scope)
        query = node.args.get("query")
        if query is not None:
            sql, outputs = self._queries(query, scope)
            left = self._beside_outputs(left, outputs)
            return Typed(f"({left.sql} {word} ({sql}))", "bool")
        given = [self.of(part, scope) for part in node.expressions]
        if left.is_open:
            left = self._making.as_type(left, self.calls.unified(given)[1] or "text")
        made = (self._making.as_type(one, left.type or "text").sql for one in given)
        return Typed(f"({left.sql} {word} ({', '.join(made)}))", "bool")

    def _between(self, node: exp.Between, scope: Scope) -> Typed:
        value = self.settled(node.this, scope)
        low = self._making.as_type(self.of(node.args["low"], scope), value.type or "text")
        high = self._making.as_type(self.of(node.args["high"], scope), value.type or "text")
        return Typed(f"({value.sql} BETWEEN {low.sql} AND {high.sql})", "bool")

    def _text(self, node: exp.Expr, scope: Scope) -> str:
        return text_of(self._making.as_type(self.of(node, scope), "text"))

    def _like(self, node: exp.Expr, scope: Scope, escape: str = "'\\'") -> Typed:
        """LIKE; PostgreSQL escapes with a backslash unless it is told otherwise."""
        word = "ILIKE" if isinstance(node, exp.ILike) else "LIKE"
        if node.args.get("negate"):
            word = f"NOT {word}"
        left, pattern = self._text(node.this, scope), node.expression
        if isinstance(pattern, exp.Any | exp.All) or _is_all(pattern):
            raise UnknownCatalogQuery("LIKE with ANY or ALL is not understood in catalog queries")
        return Typed(f"({left} {word} {self._text(pattern, scope)} ESCAPE {escape})", "bool")

    def _escape(self, node: exp.Escape, scope: Scope) -> Typed:
        inner, negated = node.this, False
        if isinstance(inner, exp.Not):
            inner, negated = inner.this, True
        found = self._like(inner, scope, self._text(node.expression, scope))
        return Typed(f"(NOT {found.sql})", "bool") if negated else found

    def _regexp(self, node: exp.Expr, scope: Scope) -> Typed:
        options = ", 'i'" if isinstance(node, exp.RegexpILike) else ""
        left, right = self._text(node.this, scope), self._text(node.expression, scope)
        return Typed(f"regexp_matches({left}, {right}{options})", "bool")

    def _operator(self, node: exp.Operator, scope: Scope) -> Typed:
        """`OPERATOR(pg_catalog.~)` is the operator itself."""
        name = str(node.args["operator"]).removeprefix("pg_catalog.")
        make = _OPERATORS.get(name)
        if make is None:
            raise UnknownCatalogQuery(f"operator {name} is not understood in catalog queries")
        return self.of(make(node.this, node.expression), scope)

    def _joined(self, node: exp.DPipe, scope: Scope) -> Typed:
        """`||` joins texts, and arrays."""
        left, right = self.of(node.this, scope), self.of(node.expression, scope)
        array = next((one.type for one in (left, right) if element_of(one.type)), None)
        if array is not None:
            left, right = self._making.as_type(left, array), self._making.as_type(right, array)
            return Typed(f"list_concat({left.sql}, {right.sql})", array)
        texts = (text_of(self._making.settled(one)) for one in (left, right))
        return Typed(f"({' || '.join(texts)})", "text")

    def _contains(self, node: exp.Expr, scope: Scope) -> Typed:
        name = "list_has_any" if isinstance(node, exp.ArrayOverlaps) else "list_has_all"
        left, right = self._making.beside(
            self.of(node.this, scope), self.of(node.expression, scope)
        )
        return Typed(f"{name}({left.sql}, {right.sql})", "bool")

    # ---- choices, arrays, records

    def _case(self, node: exp.Case, scope: Scope) -> Typed:
        subject = None if node.this is None else self.settled(node.this, scope)
        default = node.args.get("default")
        # The type of ELSE comes first, as in PostgreSQL.
        nodes = [default] if default is not None else []
        nodes += [branch.args["true"] for branch in node.args["ifs"]]
        made, type_ = self.calls.unified([self.of(part, scope) for part in nodes])
        otherwise = made.pop(0) if default is not None else None
        parts = ["(CASE"]
        if subject is not None:
            parts.append(subject.sql)
        for branch, result in zip(node.args["ifs"], made, strict=True):
            if subject is None:
                when = self.condition(branch.this, scope)
            else:
                when = self._making.beside(self.of(branch.this, scope), subject)[0].sql
            parts.append(f"WHEN {when} THEN {result.sql}")
        if otherwise is not None:
            parts.append(f"ELSE {otherwise.sql}")
        return Typed(" ".join((*parts, "END)")), type_)

    def _array(self, node: exp.Array, scope: Scope) -> Typed:
        made, type_ = self.calls.unified([self.of(part, scope) for part in node.expressions])
        return Typed(f"[{', '.join(one.sql for one in made)}]", array_type(type_))

    def _subscript(self, node: exp.Bracket, scope: Scope) -> Typed:
        array = self.of(node.this, scope)
        if array.is_open:
            array = self._making.as_type(array, "_text")
        if len(node.expressions) != 1:
            raise UnknownCatalogQuery("arrays of catalog queries have one dimension")
        place = node.expressions[0]
        if isinstance(place, exp.Slice):
            low, high = (
                "" if part is None else self.settled(part, scope).sql
                for part in (place.this, place.expression)
            )
            return Typed(f"{array.sql}[{low}:{high}]", array.type)
        number = self._making.as_type(self.of(place, scope), "int4").sql
        if array.type in VECTORS:  # counted from 0
            number = f"{number} + 1"
        return Typed(f"list_extract({array.sql}, {number})", element_of(array.type))

    def _dot(self, node: exp.Dot, scope: Scope) -> Typed:
        """`pg_catalog.f(x)`, or a field of a record as in `(r.keys).x`."""
        if isinstance(node.expression, exp.Func):
            schema = folded(node.this)
            if schema not in ("pg_catalog", "information_schema"):
                raise UnknownCatalogQuery(f'schema "{schema}" does not exist', "3F000")
            return self.of(node.expression, scope)
        record, name = self.of(node.this, scope), folded(node.expression)
        fields = record_fields(record.type)
        if name not in fields:
            raise UnknownCatalogQuery(f'column "{name}" not found in the record', "42703")
        return Typed(f"struct_extract({record.sql}, {quoted(name)})", fields[name])

    def _tuple(self, node: exp.Tuple, scope: Scope) -> Typed:
        parts = (self.settled(part, scope).sql for part in node.expressions)
        return Typed(f"({', '.join(parts)})")

    # ---- queries within

    def _subquery(self, node: exp.Expr, scope: Scope) -> Typed:
        sql, outputs = self._queries(node, scope)
        if len(outputs) != 1:
            raise UnknownCatalogQuery("subquery must return only one column", "42601")
        return Typed(f"({sql})", outputs[0].type)

    def _exists(self, node: exp.Exists, scope: Scope) -> Typed:
        sql, _ = self._queries(node.this, scope)
        return Typed(f"(EXISTS ({sql}))", "bool")

    # ---- calls

    def _call(self, node: exp.Anonymous, scope: Scope, after: str = "") -> Typed:
        name = str(node.this).lower()
        parts = list(node.expressions)
        if name == "array" and len(parts) == 1 and isinstance(parts[0], exp.Query | exp.Subquery):
            found = self._subquery(parts[0], scope)
            return Typed(f"ARRAY{found.sql}", array_type(found.type))
        order = ""
        distinct = False
        if parts and isinstance(parts[-1], exp.Order):
            order = self.order(parts[-1].expressions, scope)
            parts[-1] = parts[-1].this
        if parts and isinstance(parts[0], exp.Distinct):
            distinct = True
            parts[:1] = parts[0].expressions
        given = [
            Typed("*", "int4") if isinstance(part, exp.Star) else self.of(part, scope)
            for part in parts
        ]
        return self.calls.call(name, given, distinct=distinct, order=order, after=after)

    def order(self, parts: Sequence[exp.Expr], scope: Scope) -> str:
        """The keys of an ORDER BY. Absent values come last, or first where it goes down."""
        return ", ".join(self.ordered(part, self.settled(part.this, scope).sql) for part in parts)

    @staticmethod
    def ordered(part: exp.Expr, key: str) -> str:
        direction = "DESC" if part.args.get("desc") else "ASC"
        nulls = "FIRST" if part.args.get("nulls_first") else "LAST"
        return f"{key} {direction} NULLS {nulls}"

    def _filtered(self, node: exp.Filter, scope: Scope) -> Typed:
        condition = self.condition(node.expression.this, scope)
        return self._call(_plain_call(node.this), scope, f" FILTER (WHERE {condition})")

    def _window(self, node: exp.Window, scope: Scope) -> Typed:
        parts = []
        by = node.args.get("partition_by")
        if by:
            keys = ", ".join(self.settled(part, scope).sql for part in by)
            parts.append(f"PARTITION BY {keys}")
        order = node.args.get("order")
        if order is not None:
            parts.append(f"ORDER BY {self.order(order.expressions, scope)}")
        if node.args.get("spec") is not None or node.args.get("alias") is not None:
            raise UnknownCatalogQuery("frames of windows are not understood in catalog queries")
        return self._call(_plain_call(node.this), scope, f" OVER ({' '.join(parts)})")

    def _trim(self, node: exp.Trim, scope: Scope) -> Typed:
        position = str(node.args.get("position") or "BOTH").upper()
        name = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[position]
        parts = [node.this] if node.expression is None else [node.this, node.expression]
        return Typed(f"{name}({', '.join(self._text(part, scope) for part in parts)})", "text")

    def _substring(self, node: exp.Substring, scope: Scope) -> Typed:
        parts = [self._text(node.this, scope)]
        parts += (
            self._making.as_type(self.of(node.args[name], scope), "int4").sql
            for name in ("start", "length")
            if node.args.get(name) is not None
        )
        return Typed(f"substring({', '.join(parts)})", "text")

    def _position(self, node: exp.StrPosition, scope: Scope) -> Typed:
        text, part = self._text(node.this, scope), self._text(node.args["substr"], scope)
        return Typed(f"strpos({text}, {part})::INTEGER", "int4")

    def _extract(self, node: exp.Extract, scope: Scope) -> Typed:
        value = self.settled(node.expression, scope)
        return Typed(f"date_part({quoted(node.this.name.lower())}, {value.sql})", "numeric")


def _is_all(node: exp.Expr) -> bool:
    """`ALL (array)`: sqlglot takes it for a call."""
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == "all"


def _plain_call(node: exp.Expr) -> exp.Anonymous:
    if isinstance(node, exp.Dot):
        node = node.expression
    if not isinstance(node, exp.Anonymous):
        raise UnknownCatalogQuery(f"{node.sql()} is no aggregate function", "42809")
    return node


def type_text(to: exp.Expr) -> str:
    """The name of a type as it was written."""
    if isinstance(to, exp.ObjectIdentifier | exp.PseudoType):
        return str(to.this)
    return to.sql(dialect="postgres")


_METHODS: dict[type[exp.Expr], Callable[..., Typed]] = {
    exp.And: Expressions._and,
    exp.Anonymous: Expressions._call,
    exp.Array: Expressions._array,
    exp.ArrayContainsAll: Expressions._contains,
    exp.ArrayOverlaps: Expressions._contains,
    exp.Between: Expressions._between,
    exp.Boolean: Expressions._boolean,
    exp.Bracket: Expressions._subscript,
    exp.ByteString: Expressions._bytes,
    exp.Case: Expressions._case,
    exp.Cast: Expressions._cast,
    exp.Collate: Expressions._collate,
    exp.Column: Expressions._column,
    exp.Concat: Expressions._adjacent,
    exp.CurrentTimestamp: Expressions._now,
    exp.DPipe: Expressions._joined,
    exp.Div: Expressions._div,
    exp.Dot: Expressions._dot,
    exp.Escape: Expressions._escape,
    exp.Exists: Expressions._exists,
    exp.Extract: Expressions._extract,
    exp.Filter: Expressions._filtered,
    exp.ILike: Expressions._like,
    exp.In: Expressions._in,
    exp.Interval: Expressions._interval,
    exp.Is: Expressions._is,
    exp.Like: Expressions._like,
    exp.Literal: Expressions._literal,
    exp.Neg: Expressions._neg,
    exp.Not: Expressions._not,
    exp.Null: Expressions._null,
    exp.Operator: Expressions._operator,
    exp.Or: Expressions._and,
    exp.Parameter: Expressions._parameter,
    exp.Paren: Expressions._paren,
    exp.RegexpILike: Expressions._regexp,
    exp.RegexpLike: Expressions._regexp,
    exp.Select: Expressions._subquery,
    exp.StrPosition: Expressions._position,
    exp.Subquery: Expressions._subquery,
    exp.Substring: Expressions._substring,
    exp.Trim: Expressions._trim,
    exp.Tuple: Expressions._tuple,
    exp.Union: Expressions._subquery,
    exp.Window: Expressions._window,
}
