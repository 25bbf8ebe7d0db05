"""Which types the parameters of a statement have, where the client leaves that open.

DuckDB does not say. In order: the type that the client named; an explicit cast; LIMIT and OFFSET;
the column that the parameter is compared with, or put into; a number beside it. Else it is a text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from . import oids
from .texts import Text
from .types import wire_type

_NAMES = {
    **dict.fromkeys(("int", "integer", "int4", "signed"), oids.INT4),
    **dict.fromkeys(("bigint", "int8", "long"), oids.INT8),
    **dict.fromkeys(("smallint", "int2", "short", "tinyint"), oids.INT2),
    **dict.fromkeys(("text", "varchar", "string", "bpchar", "char", "character"), oids.TEXT),
    **dict.fromkeys(("double", "float8"), oids.FLOAT8),
    **dict.fromkeys(("real", "float4", "float"), oids.FLOAT4),
    **dict.fromkeys(("numeric", "decimal", "hugeint", "ubigint"), oids.NUMERIC),
    **dict.fromkeys(("bool", "boolean", "logical"), oids.BOOL),
    **dict.fromkeys(("bytea", "blob", "binary", "varbinary"), oids.BYTEA),
    "date": oids.DATE,
    "time": oids.TIME,
    "timetz": oids.TIMETZ,
    "timestamp": oids.TIMESTAMP,
    "datetime": oids.TIMESTAMP,
    "timestamptz": oids.TIMESTAMPTZ,
    "interval": oids.INTERVAL,
    "uuid": oids.UUID,
    "json": oids.JSON,
    "oid": oids.OID,
}
_COMPARES = frozenset({"=", "<>", "!=", "<", ">", "<=", ">="})
_ADDS = frozenset({"+", "-", "*", "/", "%"})


# The types of the columns of all tables that a statement may name, by column name.
ColumnTypes = Callable[[Text], Mapping[str, str]]


def infer(text: Text, given: Sequence[int], columns: ColumnTypes) -> tuple[int, ...]:
    """The types of $1, $2 …; 0 is a text that may become anything.

    >>> infer(Text("SELECT $1::int, $2 LIMIT $3"), (), lambda text: {})
    (23, 0, 20)
    >>> infer(Text("SELECT * FROM t WHERE a = $1"), (), lambda text: {"a": "DATE"})
    (1082,)
    """
    count = max(text.parameters, len(given))
    types = [*given, *[0] * (count - len(given))]
    if all(types):
        return tuple(types)
    known: Mapping[str, str] | None = None
    for place, number in text.places:
        if types[number - 1] not in (0, oids.UNKNOWN):
            continue
        found = _cast(text, place) or _limit(text, place)
        if not found:
            known = columns(text) if known is None else known
            found = _compared(text, place, known) or _inserted(text, place, known)
        types[number - 1] = found or _beside(text, place)
    return tuple(types)


def _cast(text: Text, place: int) -> int:
    words = text.words
    after = words[place + 2 : place + 8]
    if after[:1] == ("::",):
        return _named(after[1:])
    called = words[max(place - 2, 0) : place] in (("cast", "("), ("try_cast", "("))
    if called and after[:1] == ("as",):
        return _named(after[1:])
    return 0


def _named(words: tuple[str, ...]) -> int:
    if words[:1] and len(words) > 2 and words[1] == "." and words[0] in ("pg_catalog",):
        words = words[2:]
    if not words:
        return 0
    found = _NAMES.get(words[0].strip('"'), 0)
    if words[1:4] == ("with", "time", "zone"):
        found = {oids.TIMESTAMP: oids.TIMESTAMPTZ, oids.TIME: oids.TIMETZ}.get(found, found)
    rest = words[2:] if words[1:2] == ("precision",) else words[1:]
    if rest[:2] == ("[", "]"):
        return oids.ARRAYS.get(found, 0)
    return found


def _limit(text: Text, place: int) -> int:
    before = text.words[place - 1] if place else ""
    return oids.INT8 if before in ("limit", "offset") else 0


def _compared(text: Text, place: int, known: Mapping[str, str]) -> int:
    """The column before or after a comparison; `BETWEEN` and `IN` compare, too."""
    words = text.words
    before = words[place - 1] if place else ""
    after = words[place + 2] if place + 2 < len(words) else ""
    if before in _COMPARES or before in ("between", "like", "ilike"):
        return _column(text, place - 2, known, before)
    if before == "and" and "between" in words[max(place - 5, 0) : place]:
        at = place - 1 - words[:place][::-1].index("between")
        return _column(text, at - 1, known, "=")
    if before == "(" and words[max(place - 3, 0) : place - 1] == ("=", "any"):
        return oids.ARRAYS.get(_column(text, place - 4, known, "="), 0)
    if before in ("(", ",") and "in" in words[:place]:
        opened = _opening(words, place)
        if opened is not None and words[opened - 1] == "in":
            skip = 1 if words[opened - 2] == "not" else 0
            return _column(text, opened - 2 - skip, known, "=")
    if after in _COMPARES and place + 3 < len(words):
        at = place + 3
        while words[at + 1 : at + 2] == (".",) and at + 2 < len(words):
            at += 2
        return _column(text, at, known, after)
    return 0


def _opening(words: tuple[str, ...], place: int) -> int | None:
    depth = 0
    for at in range(place - 1, -1, -1):
        depth += (words[at] == ")") - (words[at] == "(")
        if depth < 0:
            return at
    return None


def _column(text: Text, place: int, known: Mapping[str, str], operator: str) -> int:
    if place < 0:
        return 0
    name = known.get(text.words[place].strip('"'))
    if name is None:
        return 0
    if operator in ("like", "ilike"):
        return oids.TEXT
    found = wire_type(name)
    return 0 if found.cast and found.oid == oids.JSON else found.oid


def _inserted(text: Text, place: int, known: Mapping[str, str]) -> int:
    """The column of INSERT INTO t (a, b) VALUES ($1, $2)."""
    words = text.words
    if text.first != "insert" or "values" not in words:
        return 0
    values = words.index("values")
    if place < values or "(" not in words[:values]:
        return 0
    opened = _opening(words, place)
    if opened is None:
        return 0
    begin = words.index("(")
    names = [word.strip('"') for word in words[begin + 1 : values] if word not in (",", ")")]
    column = words[opened + 1 : place].count(",")
    if column >= len(names) or names[column] not in known:
        return 0
    return wire_type(known[names[column]]).oid


def _beside(text: Text, place: int) -> int:
    """A number on the other side of an operator."""
    words = text.words
    before = words[place - 2 : place] if place > 1 else ()
    after = words[place + 2 : place + 4]
    for other, operator in (
        (before[0] if before else "", before[1] if before else ""),
        (after[1] if len(after) > 1 else "", after[0] if after else ""),
    ):
        if operator in _COMPARES | _ADDS and other.replace(".", "", 1).isdigit():
            if "." in other:
                return oids.NUMERIC
            return oids.INT4 if len(other) < 10 else oids.INT8
    return 0
