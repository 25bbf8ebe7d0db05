"""Expressions of DuckDB that know their type in PostgreSQL, and the casts between such types.

PostgreSQL's types matter in three places: a string or parameter of no type takes the type of what
it is compared with, `regclass` and its kin mean a name as text and a number else, and clients are
told the types of columns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from .answers import UnknownCatalogQuery
from .relations import Relation
from .types import (
    INTEGERS,
    REGISTERED,
    array_elements,
    array_of,
    element_of,
    held_as,
    type_named,
    types_by_oid,
)

VECTORS: Final = ("int2vector", "oidvector")

# What the lookups are called by which the names of a type are found.
_LOOKUPS = {
    "regclass": "relation",
    "regtype": "type",
    "regproc": "function",
    "regprocedure": "function",
    "regnamespace": "schema",
    "regrole": "role",
}


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression. `type` is None if only DuckDB knows it.

    `text` is that of a string without a type, `parameter` the number of a parameter without one.
    """

    sql: str
    type: str | None = None
    text: str | None = None
    parameter: int = 0

    @property
    def is_open(self) -> bool:
        """Whether its type is still to be decided by what stands beside it."""
        return self.text is not None or self.parameter > 0


class Statement(NamedTuple):
    """A text for DuckDB with the parameters that it needs, by name: `$p1`, `$s_user`."""

    sql: str
    needs: frozenset[str] = frozenset()


NULL: Final = Typed("NULL")
_MARK = re.compile("\x01(\\w+)\x02")  # the place of a parameter, until all types are known
_SESSION_VALUES = {
    "names": "VARCHAR[]",
    "values": "VARCHAR[]",
    "schemas": "VARCHAR[]",
    "pid": "INTEGER",
}


class Making:
    """What comes up while a query is rewritten: parameters, values of the session, relations."""

    def __init__(self, given: dict[int, str]) -> None:
        self.parameters: dict[int, str | None] = dict(given)
        self.relations: dict[str, Relation] = {}
        self.settings: list[tuple[Typed, Typed, Typed]] = []
        """The arguments of each `set_config`."""

    def parameter(self, number: int) -> Typed:
        type_ = self.parameters.setdefault(number, None)
        return Typed(f"\x01{number}\x02", type_, parameter=0 if type_ else number)

    def value(self, name: str) -> str:
        """A value of the session, given when the query is run."""
        return f"\x01{name}\x02"

    def as_type(self, found: Typed, name: str) -> Typed:
        """An expression of no type in a place where a type is wanted; others stay as they are."""
        if found.parameter:
            self.parameters[found.parameter] = name
            return replace(found, type=name, parameter=0)
        if found.text is not None:
            return literal(found.text, name)
        return found

    def settled(self, found: Typed) -> Typed:
        """What has no type by now is text."""
        return self.as_type(found, "text") if found.is_open else found

    def beside(self, left: Typed, right: Typed) -> tuple[Typed, Typed]:
        """Two expressions that are compared: one without a type takes the other's."""
        if left.is_open and right.type is not None:
            left = self.as_type(left, right.type)
        if right.is_open and left.type is not None:
            right = self.as_type(right, left.type)
        return self.settled(left), self.settled(right)

    def cast(self, found: Typed, name: str) -> Typed:
        """An expression cast to a type, as in `x::name`."""
        if found.is_open:
            return self.as_type(found, name)
        return _cast(found, name)

    def finished(self, sql: str) -> Statement:
        """The text with its parameters as DuckDB wants them: by name, with their types."""
        used: set[str] = set()

        def given(found: re.Match[str]) -> str:
            used.add(f"p{found[1]}" if found[1].isdigit() else f"s_{found[1]}")
            return self._given(found[1])

        return Statement(_MARK.sub(given, sql), frozenset(used))

    def _given(self, mark: str) -> str:
        if not mark.isdigit():
            return f"CAST($s_{mark} AS {_SESSION_VALUES.get(mark, 'VARCHAR')})"
        name = self.parameters[int(mark)] or "text"
        given = f"$p{mark}"
        if name in REGISTERED:
            return f"{_LOOKUPS[name]}_named(CAST({given} AS VARCHAR))"
        return f"CAST({given} AS {held_as(name)})"


def quoted(text: str) -> str:
    """
    >>> quoted("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def named(name: str) -> str:
    """A name in quotes."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str, name: str) -> Typed:
    """A string as a value of a type.

    >>> literal("{1,2}", "_oid").sql, literal("pg_class", "regclass").sql
    ("[CAST('1' AS BIGINT), CAST('2' AS BIGINT)]::BIGINT[]", "relation_named('pg_class')")
    """
    if name in REGISTERED:
        return Typed(f"{_LOOKUPS[name]}_named({quoted(text)})", name)
    element = element_of(name)
    if element is not None:
        parts = text.split() if name in VECTORS else elements(text)
        made = ("NULL" if part is None else literal(part, element).sql for part in parts)
        return Typed(f"[{', '.join(made)}]::{held_as(name)}", name)
    if held_as(name) == "VARCHAR":
        return Typed(quoted(text), name)
    return Typed(f"CAST({quoted(text)} AS {held_as(name)})", name)


def elements(text: str) -> list[str | None]:
    """The elements of an array in PostgreSQL's text form, or the error that says it is none."""
    try:
        return array_elements(text)
    except ValueError as error:
        raise UnknownCatalogQuery(str(error), "22P02") from None


def text_of(found: Typed) -> str:
    """An expression as text, as PostgreSQL shows it.

    >>> text_of(Typed("c.oid", "regclass")), text_of(Typed("k", "int2vector"))
    ('relation_text(c.oid)', "array_to_string(k, ' ')")
    """
    name = found.type
    if name in REGISTERED:
        arguments = f"{found.sql}, NULL" if name == "regtype" else found.sql
        return f"{_LOOKUPS[name]}_text({arguments})"
    if name in VECTORS:
        return f"array_to_string({found.sql}, ' ')"
    if element_of(name) is not None:
        return f"('{{' || array_to_string({found.sql}, ',') || '}}')"
    if name is not None and held_as(name) == "VARCHAR":
        return found.sql
    return f"CAST({found.sql} AS VARCHAR)"


def _cast(found: Typed, name: str) -> Typed:
    source = found.type
    if source == name:
        return found
    if name in REGISTERED:
        if source in REGISTERED or source in INTEGERS:
            return Typed(found.sql, name)
        return Typed(f"{_LOOKUPS[name]}_named(CAST({found.sql} AS VARCHAR))", name)
    if name == "char":
        return Typed(f"left({text_of(found)}, 1)", name)
    if held_as(name) == "VARCHAR":
        return Typed(text_of(found), name)
    if source is not None and held_as(source) == held_as(name):
        return Typed(found.sql, name)
    return Typed(f"CAST({found.sql} AS {held_as(name)})", name)


def common_type(found: list[Typed]) -> str | None:
    """The type of a COALESCE or CASE: that of the first, unless it gives way to a later one.

    >>> common_type([Typed("a", "name"), Typed("b", "text")]), common_type([Typed("NULL")])
    ('text', None)
    """
    common = None
    for one in found:
        if common is None or one.type in _WIDER.get(common, ()):
            common = one.type or common
    return common


_NUMBERS = ("int2", "int4", "int8", "numeric", "float4", "float8")
_WIDER: Final = {
    "name": ("text", "varchar", "bpchar"),
    "char": ("text", "varchar", "bpchar"),
} | {name: (*_NUMBERS[place + 1 :], "oid") for place, name in enumerate(_NUMBERS)}
"""The types to which a type gives way."""


def known_type(text: str) -> str:
    """The type of a cast; an error if there is none of the name."""
    name = type_named(text)
    if name is None:
        raise UnknownCatalogQuery(f'type "{text}" does not exist', "42704")
    return name


def array_type(name: str | None) -> str | None:
    return None if name is None else array_of(name)


def type_by_oid(oid: int) -> str | None:
    """The type that a client gave for a parameter; `unknown` is as good as none."""
    found = types_by_oid().get(oid)
    return None if found is None or found.name == "unknown" else found.name


def python_value(value: Any, name: str) -> Any:
    """A parameter's value as DuckDB is to get it: texts of arrays become lists."""
    if isinstance(value, str) and element_of(name) is not None:
        return value.split() if name in VECTORS else elements(value)
    return value


def record_fields(name: str | None) -> dict[str, str]:
    """The fields of a type that stands for a record, with their types; none of any other.

    >>> record_fields("record(x int2,n int4)"), record_fields("int4")
    ({'x': 'int2', 'n': 'int4'}, {})
    """
    if name is None or not name.startswith("record("):
        return {}
    return dict(re.findall(r"(\w+) (\w+)[,)]", name.removeprefix("record(")))
