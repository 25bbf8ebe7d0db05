"""Values, columns, casts, choices, arrays and records in expressions."""

from __future__ import annotations

from sqlglot import exp

from .answers import UnknownCatalogQuery
from .rewriting import Handler, Rewriting, folded, type_text
from .scopes import Scope
from .typed import NULL, VECTORS, Typed, array_type, known_type, quoted, record_fields
from .types import element_of

_WITHOUT_PARENTHESES = frozenset({"user", "current_role", "current_user", "session_user"})


def _literal(on: Rewriting, node: exp.Literal, scope: Scope) -> Typed:
    text = str(node.this)
    if node.is_string:
        return Typed(quoted(text), text=text)
    if not text.isdigit():
        return Typed(text, "numeric")
    return Typed(text, "int4" if int(text) < 2**31 else "int8")


def _bytes(on: Rewriting, node: exp.ByteString, scope: Scope) -> Typed:
    """E'…': sqlglot has read the escapes."""
    text = str(node.this)
    return Typed(quoted(text), text=text)


def _adjacent(on: Rewriting, node: exp.Concat, scope: Scope) -> Typed:
    """Strings that stand one after the other are one."""
    parts = node.expressions
    if not all(isinstance(part, exp.Literal) and part.is_string for part in parts):
        raise UnknownCatalogQuery("two expressions without an operator between them", "42601")
    text = "".join(str(part.this) for part in parts)
    return Typed(quoted(text), text=text)


def _null(on: Rewriting, node: exp.Expr, scope: Scope) -> Typed:
    return NULL


def _boolean(on: Rewriting, node: exp.Boolean, scope: Scope) -> Typed:
    return Typed("true" if node.this else "false", "bool")


def _parameter(on: Rewriting, node: exp.Parameter, scope: Scope) -> Typed:
    if not node.name.isdigit() or not 0 < int(node.name) < 65536:
        raise UnknownCatalogQuery(f"there is no parameter ${node.name}", "42P02")
    return on.making.parameter(int(node.name))


def _column(on: Rewriting, node: exp.Column, scope: Scope) -> Typed:
    name, table = folded(node.this), folded(node.args.get("table"))
    found = scope.column(name, table, folded(node.args.get("db")))
    if found is not None:
        return found
    if not table and name in _WITHOUT_PARENTHESES:
        return on.calls.call(name, ())
    if table:
        raise UnknownCatalogQuery(f'missing FROM-clause entry for table "{table}"', "42P01")
    raise UnknownCatalogQuery(f'column "{name}" does not exist', "42703")


def _paren(on: Rewriting, node: exp.Expr, scope: Scope) -> Typed:
    return on.of(node.this, scope)


def _collate(on: Rewriting, node: exp.Collate, scope: Scope) -> Typed:
    """All collations here compare bytes, as "C" does."""
    return on.of(node.this, scope)


def _cast(on: Rewriting, node: exp.Cast, scope: Scope) -> Typed:
    wanted = known_type(type_text(node.args["to"]))
    return on.making.cast(on.of(node.this, scope), wanted)


def _interval(on: Rewriting, node: exp.Interval, scope: Scope) -> Typed:
    unit = node.args.get("unit")
    text = f"{node.name} {unit.name if unit else ''}".strip()
    return Typed(f"CAST({quoted(text)} AS INTERVAL)", "interval")


def _now(on: Rewriting, node: exp.Expr, scope: Scope) -> Typed:
    return Typed("now()", "timestamptz")


def _case(on: Rewriting, node: exp.Case, scope: Scope) -> Typed:
    subject = None if node.this is None else on.settled(node.this, scope)
    default = node.args.get("default")
    # The type of ELSE comes first, as in PostgreSQL.
    nodes = [default] if default is not None else []
    nodes += [branch.args["true"] for branch in node.args["ifs"]]
    made, type_ = on.calls.unified([on.of(part, scope) for part in nodes])
    otherwise = made.pop(0) if default is not None else None
    parts = ["(CASE"]
    if subject is not None:
        parts.append(subject.sql)
    for branch, result in zip(node.args["ifs"], made, strict=True):
        if subject is None:
            when = on.condition(branch.this, scope)
        else:
            when = on.making.beside(on.of(branch.this, scope), subject)[0].sql
        parts.append(f"WHEN {when} THEN {result.sql}")
    if otherwise is not None:
        parts.append(f"ELSE {otherwise.sql}")
    return Typed(" ".join((*parts, "END)")), type_)


def _array(on: Rewriting, node: exp.Array, scope: Scope) -> Typed:
    made, type_ = on.calls.unified([on.of(part, scope) for part in node.expressions])
    return Typed(f"[{', '.join(one.sql for one in made)}]", array_type(type_))


def _subscript(on: Rewriting, node: exp.Bracket, scope: Scope) -> Typed:
    array = on.of(node.this, scope)
    if array.is_open:
        array = on.making.as_type(array, "_text")
    if len(node.expressions) != 1:
        raise UnknownCatalogQuery("arrays of catalog queries have one dimension")
    place = node.expressions[0]
    if isinstance(place, exp.Slice):
        low, high = (
            "" if part is None else on.settled(part, scope).sql
            for part in (place.this, place.expression)
        )
        return Typed(f"{array.sql}[{low}:{high}]", array.type)
    number = on.making.as_type(on.of(place, scope), "int4").sql
    if array.type in VECTORS:  # counted from 0
        number = f"{number} + 1"
    return Typed(f"list_extract({array.sql}, {number})", element_of(array.type))


def _dot(on: Rewriting, node: exp.Dot, scope: Scope) -> Typed:
    """`pg_catalog.f(x)`, or a field of a record as in `(r.keys).x`."""
    if isinstance(node.expression, exp.Func):
        schema = folded(node.this)
        if schema not in ("pg_catalog", "information_schema"):
            raise UnknownCatalogQuery(f'schema "{schema}" does not exist', "3F000")
        return on.of(node.expression, scope)
    record, name = on.of(node.this, scope), folded(node.expression)
    fields = record_fields(record.type)
    if name not in fields:
        raise UnknownCatalogQuery(f'column "{name}" not found in the record', "42703")
    return Typed(f"struct_extract({record.sql}, {quoted(name)})", fields[name])


def _tuple(on: Rewriting, node: exp.Tuple, scope: Scope) -> Typed:
    parts = (on.settled(part, scope).sql for part in node.expressions)
    return Typed(f"({', '.join(parts)})")


HANDLERS: dict[type[exp.Expr], Handler] = {
    exp.Array: _array,
    exp.Boolean: _boolean,
    exp.Bracket: _subscript,
    exp.ByteString: _bytes,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.Collate: _collate,
    exp.Column: _column,
    exp.Concat: _adjacent,
    exp.CurrentTimestamp: _now,
    exp.Dot: _dot,
    exp.Interval: _interval,
    exp.Literal: _literal,
    exp.Null: _null,
    exp.Parameter: _parameter,
    exp.Paren: _paren,
    exp.Tuple: _tuple,
}
