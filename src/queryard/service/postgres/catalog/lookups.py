"""What the functions of the catalogs look up: names for OIDs and OIDs for names, definitions,
comments, sizes, privileges."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .answers import UnknownCatalogQuery
from .function_rows import function_rows
from .objects import OWNER, ConstraintObject, Objects
from .plain_functions import (
    formatted,
    parts_of_name,
    pretty_size,
    privileges_in,
    select_of,
    setting_of,
)
from .relations import answered, relations
from .texts import constraint_definition, index_definition, parse_ident, quote_ident, quote_literal
from .types import format_type, type_named, types_by_name


class Lookup(NamedTuple):
    """A function for DuckDB: its name, the types of its parameters and of its result."""

    name: str
    parameters: tuple[str, ...]
    result: str
    function: Callable[..., Any]


class Lookups:
    """The objects of a catalog, found by OID or by name."""

    def __init__(self, objects: Objects) -> None:
        facts = objects.facts
        self._facts = facts
        self._searched = ("pg_catalog", *facts.searched)
        self._schemas = objects.namespaces
        self._schema_names = {oid: name for name, oid in objects.namespaces.items()}
        self._relations: dict[tuple[str, str], int] = {}
        self._names: dict[int, tuple[str, str]] = {}
        self._comments: dict[tuple[int, int], str] = {}
        self._views: dict[int, str] = {}
        self._bytes: dict[int, int] = {}
        self._writable: set[int] = set()
        for relation in answered():
            self._name(relation.oid, relation.schema, relation.name)
        for table in objects.tables:
            known = table.facts
            self._name(table.oid, known.schema, known.name)
            if known.comment is not None:
                self._comments[table.oid, 0] = known.comment
            for number, column in enumerate(known.columns, 1):
                if column.comment is not None:
                    self._comments[table.oid, number] = column.comment
            if known.definition is not None:
                self._views[table.oid] = select_of(known.definition)
            self._bytes[table.oid] = int(known.bytes or 0)
            if known.writable:
                self._writable.add(table.oid)
        self._constraints = {found.oid: found for found in objects.constraints}
        self._indexes: dict[int, ConstraintObject] = {}
        for found in objects.indexed:
            self._name(found.index, found.table.facts.schema, found.index_name)
            self._indexes[found.index] = found
        self._functions = {int(row["oid"]): row for row in function_rows()}
        self._function_names: dict[str, list[int]] = {}
        for oid, row in self._functions.items():
            self._function_names.setdefault(row["proname"], []).append(oid)

    def _name(self, oid: int, schema: str, name: str) -> None:
        self._relations[schema, name] = oid
        self._names[oid] = (schema, name)

    # ---- relations

    def relation_if_any(self, text: str | None) -> int | None:
        """The OID of a relation by name, or a number that is one."""
        if text is None:
            return None
        if text.isdigit():
            return int(text)
        *schema, name = parse_ident(text) or (text,)
        if schema:
            return self._relations.get((schema[-1], name))
        return self._found(name)

    def _found(self, name: str) -> int | None:
        """The relation that a name without a schema means."""
        found = (self._relations.get((schema, name)) for schema in self._searched)
        return next((oid for oid in found if oid is not None), None)

    def relation_named(self, text: str | None) -> int | None:
        if text == "-":
            return 0
        found = self.relation_if_any(text)
        if found is None and text is not None:
            *schema, name = parse_ident(text) or ("", text)
            refused = relations().get((schema[-1] if schema else "pg_catalog", name))
            if refused is not None:
                raise UnknownCatalogQuery(f"{refused.key} is not offered by this server", "0A000")
            raise UnknownCatalogQuery(f'relation "{text}" does not exist', "42P01")
        return found

    def relation_text(self, oid: int | None) -> str | None:
        """A relation's name, with its schema unless that is searched anyway."""
        if oid is None:
            return None
        if oid == 0:
            return "-"
        if oid not in self._names:
            return str(oid)
        schema, name = self._names[oid]
        if self._found(name) == oid:
            return quote_ident(name)
        return f"{quote_ident(schema)}.{quote_ident(name)}"

    def is_visible(self, oid: int | None) -> bool | None:
        if oid is None or oid not in self._names:
            return None
        return self._found(self._names[oid][1]) == oid

    def is_writable(self, oid: int | None) -> bool:
        return oid in self._writable

    def may(self, oid: int | None, privileges: str | None) -> bool | None:
        """Whether the user has one of the privileges, as in "SELECT, UPDATE"."""
        if oid is None or privileges is None or oid not in self._names:
            return None
        asked = {text.strip().upper() for text in privileges.split(",")}
        plain = {re.sub(r"\s+WITH GRANT OPTION$", "", text) for text in asked}
        unknown = plain - _PRIVILEGES
        if unknown:
            raise UnknownCatalogQuery(f'unrecognized privilege type: "{min(unknown)}"', "22023")
        if "SELECT" in asked:
            return True
        return oid in self._writable and bool(asked & {"INSERT", "UPDATE", "DELETE", "TRUNCATE"})

    def relation_bytes(self, oid: int | None) -> int | None:
        """The size of a relation; of all together if none is named."""
        if oid is None:
            return sum(self._bytes.values())
        return self._bytes.get(oid, 0) if oid in self._names else None

    # ---- schemas, types, functions, roles

    def schema_if_any(self, text: str | None) -> int | None:
        if text is None:
            return None
        if text.isdigit():
            return int(text)
        return self._schemas.get("".join(parse_ident(text)) or text)

    def schema_named(self, text: str | None) -> int | None:
        found = self.schema_if_any(text)
        if found is None and text is not None:
            raise UnknownCatalogQuery(f'schema "{text}" does not exist', "3F000")
        return found

    def schema_text(self, oid: int | None) -> str | None:
        if oid is None:
            return None
        return quote_ident(self._schema_names[oid]) if oid in self._schema_names else str(oid)

    def type_if_any(self, text: str | None) -> int | None:
        if text is None:
            return None
        if text.isdigit():
            return int(text)
        found = type_named(text)
        return None if found is None else types_by_name()[found].oid

    def type_of_name(self, text: str | None) -> int | None:
        found = self.type_if_any(text)
        if found is None and text is not None:
            raise UnknownCatalogQuery(f'type "{text}" does not exist', "42704")
        return found

    def function_if_any(self, text: str | None) -> int | None:
        """The OID of a function by name, if the name means one only."""
        if text is None:
            return None
        if text.isdigit():
            return int(text)
        found = self._functions_named(text)
        return found[0] if len(found) == 1 else None

    def _functions_named(self, text: str) -> list[int]:
        name = text.partition("(")[0]
        return self._function_names.get((parse_ident(name) or (name,))[-1], [])

    def function_named(self, text: str | None) -> int | None:
        if text == "-":
            return 0
        found = self.function_if_any(text)
        if found is None and text is not None:
            if len(self._functions_named(text)) > 1:
                raise UnknownCatalogQuery(f'more than one function named "{text}"', "42725")
            raise UnknownCatalogQuery(f'function "{text}" does not exist', "42883")
        return found

    def function_text(self, oid: int | None) -> str | None:
        if oid is None:
            return None
        if oid == 0:
            return "-"
        return self._functions[oid]["proname"] if oid in self._functions else str(oid)

    def function_result(self, oid: int | None) -> str | None:
        return self._functions[oid]["result"] if oid in self._functions else None

    def function_arguments(self, oid: int | None) -> str | None:
        return self._functions[oid]["arguments"] if oid in self._functions else None

    def role_named(self, text: str | None) -> int | None:
        if text is None:
            return None
        if text.isdigit():
            return int(text)
        if (parse_ident(text) or (text,))[-1] == self._facts.user or text == self._facts.user:
            return OWNER
        raise UnknownCatalogQuery(f'role "{text}" does not exist', "42704")

    def role_text(self, oid: int | None) -> str | None:
        if oid is None:
            return None
        return quote_ident(self._facts.user) if oid == OWNER else str(oid)

    # ---- definitions

    def constraint_definition(self, oid: int | None, pretty: bool | None) -> str | None:
        if oid not in self._constraints:
            return None
        found = self._constraints[oid]
        target = None if found.target is None else self.relation_text(found.target.oid)
        return constraint_definition(found, target or "", bool(pretty))

    def index_definition(
        self, oid: int | None, column: int | None, pretty: bool | None
    ) -> str | None:
        """The whole definition for column 0, else the name of one of its columns."""
        if oid not in self._indexes or column is None:
            return None
        found = self._indexes[oid]
        if column == 0:
            return index_definition(
                found, self.relation_text(found.table.oid) or "" if pretty else ""
            )
        columns = found.key.columns
        return quote_ident(columns[column - 1]) if 0 < column <= len(columns) else ""

    def comment_on(self, oid: int | None, number: int | None) -> str | None:
        return None if oid is None or number is None else self._comments.get((oid, number))

    def functions(self) -> Sequence[Lookup]:
        """All of them, for DuckDB."""
        one, oid, text = ("VARCHAR",), ("BIGINT",), "VARCHAR"
        return (
            Lookup("relation_if_any", one, "BIGINT", self.relation_if_any),
            Lookup("relation_named", one, "BIGINT", self.relation_named),
            Lookup("relation_text", oid, text, self.relation_text),
            Lookup("relation_bytes", oid, "BIGINT", self.relation_bytes),
            Lookup("is_visible", oid, "BOOLEAN", self.is_visible),
            Lookup("is_writable", oid, "BOOLEAN", self.is_writable),
            Lookup("may", ("BIGINT", "VARCHAR"), "BOOLEAN", self.may),
            Lookup("schema_if_any", one, "BIGINT", self.schema_if_any),
            Lookup("schema_named", one, "BIGINT", self.schema_named),
            Lookup("schema_text", oid, text, self.schema_text),
            Lookup("type_if_any", one, "BIGINT", self.type_if_any),
            Lookup("type_named", one, "BIGINT", self.type_of_name),
            Lookup("type_text", ("BIGINT", "INTEGER"), text, format_type),
            Lookup("function_if_any", one, "BIGINT", self.function_if_any),
            Lookup("function_named", one, "BIGINT", self.function_named),
            Lookup("function_text", oid, text, self.function_text),
            Lookup("function_result", oid, text, self.function_result),
            Lookup("function_arguments", oid, text, self.function_arguments),
            Lookup("role_named", one, "BIGINT", self.role_named),
            Lookup("role_text", oid, text, self.role_text),
            Lookup("view_definition", oid, text, self._views.get),
            Lookup(
                "constraint_definition",
                ("BIGINT", "BOOLEAN"),
                text,
                self.constraint_definition,
            ),
            Lookup(
                "index_definition",
                ("BIGINT", "INTEGER", "BOOLEAN"),
                text,
                self.index_definition,
            ),
            Lookup("comment_on", ("BIGINT", "INTEGER"), text, self.comment_on),
            Lookup("privileges_in", ("VARCHAR[]",), "VARCHAR[]", privileges_in),
            Lookup("quoted_name", one, text, _unless_none(quote_ident)),
            Lookup("quoted_text", one, text, _unless_none(quote_literal)),
            Lookup("parts_of_name", one, "VARCHAR[]", parts_of_name),
            Lookup("pretty_size", oid, text, _unless_none(pretty_size)),
            Lookup("formatted", ("VARCHAR", "VARCHAR[]"), text, formatted),
            Lookup(
                "setting_of", ("VARCHAR[]", "VARCHAR[]", "VARCHAR", "BOOLEAN"), text, setting_of
            ),
        )


_PRIVILEGES = frozenset(
    ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"]
)


def _unless_none(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else function(value)
