"""From the names of types, as DESCRIBE writes them, to types as they are sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pyarrow as pa

from ..errors import CannotSend
from .types import VARIANT, Id, LogicalType, array_of, list_of, map_of, union_of, with_crs

_TOKEN = re.compile(
    r"""\s*(?:"((?:[^"]|"")*)"|'((?:[^']|'')*)'|(\d+)|([^\s"'(),\[\]]+)|([(),\[\]]))"""
)
_NAMES: dict[str, LogicalType] = {
    **{
        kind.name: LogicalType(kind)
        for kind in Id
        if kind.value < Id.STRUCT and kind is not Id.DECIMAL
    },
    "TIME WITH TIME ZONE": LogicalType(Id.TIMETZ),
    "TIMESTAMP WITH TIME ZONE": LogicalType(Id.TIMESTAMPTZ),
    "JSON": LogicalType(Id.VARCHAR, alias="JSON"),
    "VARIANT": VARIANT,
    # A column of nothing but NULL has no type; DuckDB's server sends it as integers.
    "NULL": LogicalType(Id.INTEGER),
}
_ZONE = ["WITH", "TIME", "ZONE"]
_EXTENSION_METADATA = b"ARROW:extension:metadata"
# Types of DuckDB 2 that DuckDB 1.5 does not have.
_LATER = ("TIMESTAMPTZ_NS", "TUPLE")
# Names of types may have megabytes; longer ones are not remembered.
_SHORT = 500


def type_of(name: str, arrow: Any = None) -> LogicalType:
    """The type of a column by its name; `arrow` tells what a type of a user's own is made of.

    >>> type_of("DECIMAL(10,2)[]").child
    LogicalType(id=<Id.DECIMAL: 21>, width=10, scale=2, children=(), values=(), size=0, alias='', \
collation='')
    """
    found = _type_of if len(name) <= _SHORT else _type_of.__wrapped__
    return found(name, arrow)


@lru_cache(maxsize=4096)
def _type_of(name: str, arrow: Any) -> LogicalType:
    if name in _NAMES:
        return _NAMES[name]
    try:
        return _Parser(name).all(arrow)
    except _Unknown:
        if arrow is None:
            raise CannotSend(f"type {name} is not known to clients of DuckDB 1.5") from None
        return from_arrow(arrow)


class _Unknown(Exception):
    """A word that is no type of DuckDB's own: the name of a type that a user has made."""


class _Parser:
    def __init__(self, name: str) -> None:
        self._tokens = list(_tokens(name))
        self._place = 0
        self._name = name

    def all(self, arrow: Any) -> LogicalType:
        found = self._type(arrow)
        if self._place != len(self._tokens):
            raise _Unknown
        return found

    def _next(self, *wanted: str) -> tuple[str, str]:
        if self._place >= len(self._tokens):
            raise _Unknown
        kind, value = self._tokens[self._place]
        if wanted and (kind, value) not in [("sign", each) for each in wanted]:
            raise _Unknown
        self._place += 1
        return kind, value

    def _is_sign(self, sign: str) -> bool:
        if self._place < len(self._tokens) and self._tokens[self._place] == ("sign", sign):
            self._place += 1
            return True
        return False

    def _type(self, arrow: Any) -> LogicalType:
        # What an outer list is made of is known only once the suffixes are.
        start = self._place
        self._skip_base()
        sizes = []
        while self._is_sign("["):
            sizes.append(0 if self._is_sign("]") else self._number())
            if sizes[-1]:
                self._next("]")
        after, self._place = self._place, start
        for size in reversed(sizes):
            arrow = _child(arrow, size)
        found = self._base(arrow)
        for size in sizes:
            found = array_of(found, size) if size else list_of(found)
        self._place = after
        return found

    def _skip_base(self) -> None:
        kind, _ = self._next()
        if kind not in ("word", "quoted"):
            raise _Unknown
        if self._words(3) == _ZONE:
            self._place += 3
        depth = 0
        while self._place < len(self._tokens):
            token = self._tokens[self._place]
            depth += (token == ("sign", "(")) - (token == ("sign", ")"))
            if depth <= 0 and token not in (("sign", "("), ("sign", ")")):
                return
            if depth < 0:
                return
            self._place += 1

    def _words(self, count: int) -> list[str]:
        return [value for _, value in self._tokens[self._place : self._place + count]]

    def _number(self) -> int:
        kind, value = self._next()
        if kind != "number" or not int(value):
            raise _Unknown
        return int(value)

    def _base(self, arrow: Any) -> LogicalType:
        kind, word = self._next()
        if kind == "word" and self._words(3) == _ZONE:
            word = f"{word} WITH TIME ZONE"
            self._place += 3
        if word in _LATER:
            raise CannotSend(
                f"type {word} is not known to clients of DuckDB 1.5; cast the column to another"
            )
        if word == "GEOMETRY" and self._is_sign("("):
            raise with_crs()
        if kind == "word" and word in _NAMES:
            return _NAMES[word]
        if kind == "word" and self._is_sign("("):
            return self._made_of_parts(word, arrow)
        if arrow is None:
            raise _Unknown
        return from_arrow(arrow)

    def _made_of_parts(self, word: str, arrow: Any) -> LogicalType:
        match word:
            case "DECIMAL":
                width = self._number()
                self._next(",")
                scale = int(self._next()[1])
                found = LogicalType(Id.DECIMAL, width=width, scale=scale)
            case "ENUM":
                values = [self._text()]
                while self._is_sign(","):
                    values.append(self._text())
                found = LogicalType(Id.ENUM, values=tuple(values))
            case "MAP":
                key = self._type(getattr(arrow, "key_type", None))
                self._next(",")
                found = map_of(key, self._type(getattr(arrow, "item_type", None)))
            case "STRUCT" | "UNION":
                found = self._members(word, arrow)
            case _:
                raise _Unknown
        self._next(")")
        return found

    def _members(self, word: str, arrow: Any) -> LogicalType:
        if self._tokens[self._place] == ("sign", ")"):
            raise CannotSend(f"{self._name} is not known to clients of DuckDB 1.5")
        members: list[tuple[str, LogicalType]] = []
        while not members or self._is_sign(","):
            kind, name = self._next()
            if kind not in ("word", "quoted", "number"):
                raise _Unknown
            own = None if arrow is None else arrow.field(len(members)).type
            members.append((name, self._type(own)))
        if word == "UNION":
            return union_of(*members)
        return LogicalType(Id.STRUCT, children=tuple(members))

    def _text(self) -> str:
        kind, value = self._next()
        if kind != "text":
            raise _Unknown
        return value


def _tokens(name: str) -> Iterator[tuple[str, str]]:
    place = 0
    while place < len(name.rstrip()):
        found = _TOKEN.match(name, place)
        if found is None:
            raise _Unknown
        quoted, text, number, word, sign = found.groups()
        if quoted is not None:
            yield "quoted", quoted.replace('""', '"')
        elif text is not None:
            yield "text", text.replace("''", "'")
        elif number is not None:
            yield "number", number
        else:
            yield ("word", word) if word is not None else ("sign", sign)
        place = found.end()


def _child(arrow: Any, size: int) -> Any:
    """What a list or an array is made of, where that is known."""
    is_list = arrow is not None and (
        pa.types.is_fixed_size_list(arrow)
        if size
        else pa.types.is_list(arrow) or pa.types.is_large_list(arrow)
    )
    return arrow.value_type if is_list else None


def has_crs(field: Any) -> bool:
    """Whether a column of Arrow has geometries with a coordinate system, however deep."""
    told = (field.metadata or {}).get(_EXTENSION_METADATA, b"")
    kind = field.type
    inner = (kind.field(number) for number in range(kind.num_fields))
    return b'"crs"' in told or any(map(has_crs, inner))


# --- types of Arrow ------------------------------------------------------------------------------

_PLAIN: dict[Any, LogicalType] = {
    pa.bool_(): LogicalType(Id.BOOLEAN),
    pa.int8(): LogicalType(Id.TINYINT),
    pa.int16(): LogicalType(Id.SMALLINT),
    pa.int32(): LogicalType(Id.INTEGER),
    pa.int64(): LogicalType(Id.BIGINT),
    pa.uint8(): LogicalType(Id.UTINYINT),
    pa.uint16(): LogicalType(Id.USMALLINT),
    pa.uint32(): LogicalType(Id.UINTEGER),
    pa.uint64(): LogicalType(Id.UBIGINT),
    pa.float32(): LogicalType(Id.FLOAT),
    pa.float64(): LogicalType(Id.DOUBLE),
    pa.date32(): LogicalType(Id.DATE),
    pa.time64("us"): LogicalType(Id.TIME),
    pa.time64("ns"): LogicalType(Id.TIME_NS),
    pa.timestamp("s"): LogicalType(Id.TIMESTAMP_S),
    pa.timestamp("ms"): LogicalType(Id.TIMESTAMP_MS),
    pa.timestamp("us"): LogicalType(Id.TIMESTAMP),
    pa.timestamp("ns"): LogicalType(Id.TIMESTAMP_NS),
    pa.string(): LogicalType(Id.VARCHAR),
    pa.binary(): LogicalType(Id.BLOB),
    pa.month_day_nano_interval(): LogicalType(Id.INTERVAL),
    pa.null(): LogicalType(Id.INTEGER),
}


def from_arrow(kind: Any) -> LogicalType:
    """The type of a column of which only the Arrow type is known; an ENUM is sent as its texts.

    >>> from_arrow(pa.list_(pa.int32())).child.id.name
    'INTEGER'
    """
    if kind in _PLAIN:
        return _PLAIN[kind]
    if pa.types.is_dictionary(kind):
        return LogicalType(Id.VARCHAR)
    if pa.types.is_decimal(kind):
        return LogicalType(Id.DECIMAL, width=kind.precision, scale=kind.scale)
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        return LogicalType(Id.TIMESTAMPTZ)
    if pa.types.is_map(kind):
        return map_of(from_arrow(kind.key_type), from_arrow(kind.item_type))
    if pa.types.is_fixed_size_list(kind):
        return array_of(from_arrow(kind.value_type), kind.list_size)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return list_of(from_arrow(kind.value_type))
    if pa.types.is_struct(kind) and kind.num_fields:
        return LogicalType(Id.STRUCT, children=_fields(kind))
    if pa.types.is_union(kind):
        return union_of(*_fields(kind))
    raise CannotSend(f"a column of type {kind} has no form in Quack; cast it to another type")


def _fields(kind: Any) -> tuple[tuple[str, LogicalType], ...]:
    fields = (kind.field(place) for place in range(kind.num_fields))
    return tuple((each.name, from_arrow(each.type)) for each in fields)
