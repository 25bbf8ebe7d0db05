"""What the planner must know of DuckDB's types: how values compare, hash, and travel as Arrow."""

from __future__ import annotations

from queryard.sql.statistics.arrow_types import PLAIN, is_decimal, travels
from queryard.sql.statistics.positions import fixed_width_bytes

from .errors import NotStageable

_INTEGERS = frozenset(
    [
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "HUGEINT",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
        "UBIGINT",
    ]
)
# An INTERVAL of Arrow has nanoseconds, so that its time ends at 292 years.
_AS_TEXT = frozenset({"UUID", "BIT", "UHUGEINT", "TIME WITH TIME ZONE", "JSON", "INTERVAL"})
_WIDTHS = {"HUGEINT": 16.0, "VARCHAR": 24.0, "BLOB": 32.0}


def equal_as_groups(one: str, other: str) -> bool:
    """Whether values of the types are equal exactly if they are one group: exact, one to one."""
    return one == other or (one in _INTEGERS and other in _INTEGERS)


def hash_type(one: str, other: str) -> str | None:
    """The type to hash keys of two sides in, so that equal keys meet; None if there is none.

    >>> hash_type("INTEGER", "BIGINT"), hash_type("FLOAT", "DOUBLE"), hash_type("DATE", "VARCHAR")
    ('HUGEINT', 'DOUBLE', None)
    """
    if one == other:
        return one
    if one in _INTEGERS and other in _INTEGERS:
        return "HUGEINT"
    if {one, other} == {"FLOAT", "DOUBLE"}:
        return "DOUBLE"
    if {one, other} == {"DATE", "TIMESTAMP"}:
        return "TIMESTAMP"
    return None


def packed(name: str, found: str) -> str:
    """The column as it is written to Arrow.

    >>> packed("c1", "BIGINT"), packed("c1", "UUID")
    ('c1', 'CAST(c1 AS VARCHAR) AS c1')
    """
    if travels(found) or found == "HUGEINT":
        return name
    if found in _AS_TEXT or found.startswith("ENUM("):
        return f"CAST({name} AS VARCHAR) AS {name}"
    raise NotStageable(f"columns of type {found} do not travel between tasks")


def unpacked(name: str, found: str) -> str:
    """The column as it is read back from Arrow."""
    return name if travels(found) else f"CAST({name} AS {found}) AS {name}"


def width_bytes(found: str) -> float:
    """About how many bytes a value takes, where nothing is known of the column."""
    if found in _WIDTHS:
        return _WIDTHS[found]
    if is_decimal(found):
        return 16.0  # as Arrow carries it
    if found not in PLAIN:
        return 40.0
    return fixed_width_bytes(found) or 8.0
