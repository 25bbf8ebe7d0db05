"""SQL types by name, as DESCRIBE writes them."""

from __future__ import annotations

import ctypes as c
from typing import Any

from queryard.sql.catalog.quoting import literal

from .capi import Handle, library, take_text

# duckdb_type
_NAMES = {
    1: "BOOLEAN",
    2: "TINYINT",
    3: "SMALLINT",
    4: "INTEGER",
    5: "BIGINT",
    6: "UTINYINT",
    7: "USMALLINT",
    8: "UINTEGER",
    9: "UBIGINT",
    10: "FLOAT",
    11: "DOUBLE",
    12: "TIMESTAMP",
    13: "DATE",
    14: "TIME",
    15: "INTERVAL",
    16: "HUGEINT",
    17: "VARCHAR",
    18: "BLOB",
    20: "TIMESTAMP_S",
    21: "TIMESTAMP_MS",
    22: "TIMESTAMP_NS",
    27: "UUID",
    29: "BIT",
    30: "TIME WITH TIME ZONE",
    31: "TIMESTAMP WITH TIME ZONE",
    32: "UHUGEINT",
    35: "BIGNUM",
    36: "NULL",
    39: "TIME_NS",
    40: "GEOMETRY",
    41: "VARIANT",
    42: "TIMESTAMPTZ_NS",
}
_DECIMAL, _ENUM, _LIST, _STRUCT, _MAP, _UNION, _ARRAY = 19, 23, 24, 25, 26, 28, 33


def type_name(handle: Any) -> str:
    """The name of a `duckdb_logical_type`, which is freed."""
    duck = library()
    try:
        if alias := take_text(duck.logical_type_get_alias(handle)):
            return alias  # JSON is a VARCHAR by another name
        kind = duck.get_type_id(handle)
        if kind == _DECIMAL:
            return f"DECIMAL({duck.decimal_width(handle)},{duck.decimal_scale(handle)})"
        if kind == _LIST:
            return f"{type_name(duck.list_type_child_type(handle))}[]"
        if kind == _ARRAY:
            size = duck.array_type_array_size(handle)
            return f"{type_name(duck.array_type_child_type(handle))}[{size}]"
        if kind == _MAP:
            key = type_name(duck.map_type_key_type(handle))
            return f"MAP({key}, {type_name(duck.map_type_value_type(handle))})"
        if kind == _STRUCT:
            return f"STRUCT({_members(handle, 'struct_type_child')})"
        if kind == _UNION:
            return f"UNION({_members(handle, 'union_type_member')})"
        if kind == _ENUM:
            size = duck.enum_dictionary_size(handle)
            values = (take_text(duck.enum_dictionary_value(handle, i)) for i in range(size))
            return f"ENUM({', '.join(map(literal, values))})"
        return _NAMES.get(kind, f"TYPE {kind}")
    finally:
        duck.destroy_logical_type(c.byref(Handle(handle)))


def _members(handle: Any, function: str) -> str:
    duck = library()
    count = getattr(duck, f"{function}_count")(handle)
    return ", ".join(
        f"{_quoted(take_text(getattr(duck, f'{function}_name')(handle, i)))} "
        f"{type_name(getattr(duck, f'{function}_type')(handle, i))}"
        for i in range(count)
    )


def _quoted(name: str) -> str:
    plain = name.isidentifier() and name == name.lower()
    return name if plain else '"' + name.replace('"', '""') + '"'
