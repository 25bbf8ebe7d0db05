"""Types of columns as they are sent: an id, and what some kinds need besides."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from ..errors import CannotSend, Malformed
from ..wire import END, Reader, field, text, unsigned


class Id(IntEnum):
    """DuckDB's numbers of types that a client of DuckDB 1.5 knows."""

    BOOLEAN = 10
    TINYINT = 11
    SMALLINT = 12
    INTEGER = 13
    BIGINT = 14
    DATE = 15
    TIME = 16
    TIMESTAMP_S = 17
    TIMESTAMP_MS = 18
    TIMESTAMP = 19
    TIMESTAMP_NS = 20
    DECIMAL = 21
    FLOAT = 22
    DOUBLE = 23
    VARCHAR = 25
    BLOB = 26
    INTERVAL = 27
    UTINYINT = 28
    USMALLINT = 29
    UINTEGER = 30
    UBIGINT = 31
    TIMESTAMPTZ = 32
    TIMETZ = 34
    TIME_NS = 35
    BIT = 36
    BIGNUM = 39
    UHUGEINT = 49
    HUGEINT = 50
    UUID = 54
    GEOMETRY = 60
    STRUCT = 100
    LIST = 101
    MAP = 102
    ENUM = 104
    UNION = 107
    ARRAY = 108
    VARIANT = 109


# Bytes of one value, where that is the same for all values of all columns of the type.
WIDTHS: dict[Id, int] = {
    Id.BOOLEAN: 1,
    Id.TINYINT: 1,
    Id.SMALLINT: 2,
    Id.INTEGER: 4,
    Id.BIGINT: 8,
    Id.DATE: 4,
    Id.TIME: 8,
    Id.TIMESTAMP_S: 8,
    Id.TIMESTAMP_MS: 8,
    Id.TIMESTAMP: 8,
    Id.TIMESTAMP_NS: 8,
    Id.FLOAT: 4,
    Id.DOUBLE: 8,
    Id.INTERVAL: 16,
    Id.UTINYINT: 1,
    Id.USMALLINT: 2,
    Id.UINTEGER: 4,
    Id.UBIGINT: 8,
    Id.TIMESTAMPTZ: 8,
    Id.TIMETZ: 8,
    Id.TIME_NS: 8,
    Id.UHUGEINT: 16,
    Id.HUGEINT: 16,
    Id.UUID: 16,
}
TEXTS = frozenset({Id.VARCHAR, Id.BLOB, Id.BIT, Id.BIGNUM, Id.GEOMETRY})
STRUCTS = frozenset({Id.STRUCT, Id.UNION, Id.VARIANT})
LISTS = frozenset({Id.LIST, Id.MAP})

# Kinds of what is said of a type besides its id.
_ALIAS, _DECIMAL, _COLLATION, _CHILD, _MEMBERS, _VALUES, _ARRAY, _CRS = 1, 2, 3, 4, 5, 6, 9, 13
_MOST_DIGITS = 38


@dataclass(frozen=True, slots=True)
class LogicalType:
    """A type; what does not belong to its kind is left empty.

    Lists, maps and arrays have one child without a name; that of a map is a struct of `key` and
    `value`. The first member of a union is its tag.
    """

    id: Id
    width: int = 0
    scale: int = 0
    children: tuple[tuple[str, LogicalType], ...] = ()
    values: tuple[str, ...] = ()
    size: int = 0
    alias: str = ""
    collation: str = ""

    @property
    def child(self) -> LogicalType:
        """That of a list, map or array."""
        return self.children[0][1]

    @property
    def value_bytes(self) -> int:
        """Bytes of one value; 0 if values differ in size, or have parts."""
        if self.id == Id.DECIMAL:
            return decimal_bytes(self.width)
        if self.id == Id.ENUM:
            return index_bytes(len(self.values))
        return WIDTHS.get(self.id, 0)


def decimal_bytes(width: int) -> int:
    """Bytes of a decimal with so many digits.

    >>> [decimal_bytes(width) for width in (4, 9, 18, 38)]
    [2, 4, 8, 16]
    """
    return 2 if width <= 4 else 4 if width <= 9 else 8 if width <= 18 else 16


def index_bytes(values: int) -> int:
    """Bytes of the place of a value among so many values of an ENUM."""
    return 1 if values <= 1 << 8 else 2 if values <= 1 << 16 else 4


def with_crs(name: str = "") -> CannotSend:
    """Why a geometry is not taken: its coordinate system would be lost."""
    which = f" ({name})" if name else ""
    return CannotSend(
        f"a GEOMETRY with a coordinate system{which} has no form here; cast it to GEOMETRY"
    )


# --- made of parts -------------------------------------------------------------------------------


def list_of(child: LogicalType) -> LogicalType:
    return LogicalType(Id.LIST, children=(("", child),))


def map_of(key: LogicalType, value: LogicalType) -> LogicalType:
    entry = LogicalType(Id.STRUCT, children=(("key", key), ("value", value)))
    return LogicalType(Id.MAP, children=(("", entry),))


def array_of(child: LogicalType, size: int) -> LogicalType:
    return LogicalType(Id.ARRAY, children=(("", child),), size=size)


def union_of(*members: tuple[str, LogicalType]) -> LogicalType:
    return LogicalType(Id.UNION, children=(("", LogicalType(Id.UTINYINT)), *members))


def _variant() -> LogicalType:
    """A VARIANT is sent as the struct that DuckDB keeps it in."""
    number = LogicalType(Id.UINTEGER)
    children = LogicalType(Id.STRUCT, children=(("keys_index", number), ("values_index", number)))
    values = LogicalType(
        Id.STRUCT, children=(("type_id", LogicalType(Id.UTINYINT)), ("byte_offset", number))
    )
    return LogicalType(
        Id.VARIANT,
        children=(
            ("keys", list_of(LogicalType(Id.VARCHAR))),
            ("children", list_of(children)),
            ("values", list_of(values)),
            ("data", LogicalType(Id.BLOB)),
        ),
    )


VARIANT = _variant()


# --- as bytes ------------------------------------------------------------------------------------


def write_type(kind: LogicalType) -> bytes:
    """A type as an object."""
    head = field(100) + unsigned(kind.id)
    info = _info(kind)
    return head + END if info is None else head + field(101) + b"\x01" + info + END + END


def _info(kind: LogicalType) -> bytes | None:
    alias = field(101) + text(kind.alias) if kind.alias else b""

    def said(number: int, rest: bytes = b"") -> bytes:
        return field(100) + unsigned(number) + alias + rest

    match kind.id:
        case Id.DECIMAL:
            scale = field(201) + unsigned(kind.scale) if kind.scale else b""
            return said(_DECIMAL, field(200) + unsigned(kind.width) + scale)
        case Id.LIST | Id.MAP:
            return said(_CHILD, field(200) + write_type(kind.child))
        case Id.ARRAY:
            size = field(201) + unsigned(kind.size)
            return said(_ARRAY, field(200) + write_type(kind.child) + size)
        case Id.STRUCT | Id.UNION | Id.VARIANT:
            members = b"".join(
                field(0) + text(name) + field(1) + write_type(child) + END
                for name, child in kind.children
            )
            return said(_MEMBERS, field(200) + unsigned(len(kind.children)) + members)
        case Id.ENUM:
            count = unsigned(len(kind.values))
            texts = b"".join(map(text, kind.values))
            return said(_VALUES, field(200) + count + field(201) + count + texts)
    if kind.collation:
        return said(_COLLATION, field(200) + text(kind.collation))
    return said(_ALIAS) if alias else None


def read_type(reader: Reader) -> LogicalType:
    """A type from an object; one that has no form here is an error."""
    reader.deeper()
    reader.expect(100)
    number = reader.unsigned()
    try:
        kind = Id(number)
    except ValueError:
        raise CannotSend(
            f"type {number} is not known here; cast the column to another type"
        ) from None
    found = LogicalType(kind)
    if reader.has(101) and reader.flag():
        found = _read_info(reader, kind)
    reader.end()
    reader.back()
    _check(found)
    return found


def _read_info(reader: Reader, kind: Id) -> LogicalType:
    reader.expect(100)
    number = reader.unsigned()
    alias = reader.text() if reader.has(101) else ""
    width = scale = size = 0
    collation = ""
    children: tuple[tuple[str, LogicalType], ...] = ()
    values: tuple[str, ...] = ()
    if number == _DECIMAL:
        width = reader.unsigned() if reader.has(200) else 0
        scale = reader.unsigned() if reader.has(201) else 0
    elif number == _COLLATION:
        collation = reader.text() if reader.has(200) else ""
    elif number in (_CHILD, _ARRAY):
        reader.expect(200)
        children = (("", read_type(reader)),)
        if number == _ARRAY and reader.has(201):
            size = reader.unsigned()
    elif number == _MEMBERS:
        if reader.has(200):
            children = tuple(_read_member(reader) for _ in range(reader.count()))
    elif number == _VALUES:
        reader.expect(200)
        count = reader.unsigned()
        if reader.has(201):
            values = tuple(reader.text() for _ in range(reader.count()))
        if count != len(values):
            raise Malformed(f"an ENUM of {count} values has {len(values)}")
    elif number == _CRS:
        if reader.has(200):
            reader.expect(100)
            raise with_crs(reader.text())
    elif number != _ALIAS:
        raise CannotSend(f"a type with information of kind {number} is not known here")
    reader.end()
    return LogicalType(kind, width, scale, children, values, size, alias, collation)


def _read_member(reader: Reader) -> tuple[str, LogicalType]:
    reader.expect(0)
    name = reader.text()
    reader.expect(1)
    found = read_type(reader)
    reader.end()
    return name, found


def _check(kind: LogicalType) -> None:
    """What a type needs must be there."""
    names = [name for name, _ in kind.children]
    match kind.id:
        case Id.DECIMAL:
            right = 1 <= kind.width <= _MOST_DIGITS and kind.scale <= kind.width
        case Id.LIST:
            right = names == [""]
        case Id.ARRAY:
            right = names == [""] and kind.size >= 1
        case Id.MAP:
            right = names == [""] and [name for name, _ in kind.child.children] == ["key", "value"]
        case Id.STRUCT:
            right = len(names) >= 1
        case Id.UNION:
            right = len(names) >= 2 and kind.children[0][1].id == Id.UTINYINT
        case Id.VARIANT:
            right = kind.children == VARIANT.children
        case _:
            right = not kind.children
    if not right:
        raise Malformed(f"a type {kind.id.name} with parts that do not belong to it")
