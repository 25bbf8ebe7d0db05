"""`search_path`: the schemas that names without one are looked for in."""

from __future__ import annotations

import re
from collections.abc import Sequence

from queryard.engine.syntax.classify import unquoted
from queryard.sql.catalog import Catalog
from queryard.sql.catalog.database import DatabaseTable
from queryard.sql.catalog.quoting import identifier, literal

from .errors import not_supported

MAIN = "main"
"""The schema of tables without one. Clients that know PostgreSQL only call it `public`."""
MEMORY = "memory"
_PART = re.compile(r'(?:"(?:[^"]|"")*"|[^,"])+')


def named(value: str, user: str) -> list[str]:
    """The schemas that a value of the setting names, in lower case.

    >>> named('"$user", Sales,memory.main, public', "ann")
    ['ann', 'sales', 'main', 'public']
    """
    found = [unquoted(part.strip()).lower() for part in _PART.findall(value)]
    return [user.lower() if name == "$user" else _short(name) for name in found if name]


def _short(name: str) -> str:
    """A name in DuckDB's words as it is shown: `memory.main` is `main`, `shop.main` is `shop`."""
    parts = name.removeprefix("memory.").split(".")
    if parts == ["memory"]:
        return MAIN
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == MAIN else parts)


class Schemas:
    """The schemas of a client's tables, as long as the catalog has not changed."""

    def __init__(self, catalog: Catalog) -> None:
        # By names in lower case: how they are shown, and the places that DuckDB has for them.
        self._shown = {MAIN: MAIN}
        self._found: dict[str, set[str]] = {MAIN: set()}
        for table in catalog.tables.values():
            if isinstance(table, DatabaseTable):
                place = _place(table.database.alias, table.inner_schema)
                self._add(table.schema or MAIN, place)
            elif table.schema:
                self._add(table.schema, _place(MEMORY, table.schema))
        # Tables of a single database file are shown in `main`.
        self._bare = sorted(self._found[MAIN])
        self._databases = {database.alias.lower() for database in catalog.databases}
        for database in catalog.databases:  # one without tables, too
            place = _place(database.alias, MAIN)
            if place not in self._bare:
                self._add(database.alias, place)

    def _add(self, name: str, place: str) -> None:
        self._shown.setdefault(name.lower(), name)
        self._found.setdefault(name.lower(), set()).add(place)

    def __contains__(self, name: str) -> bool:
        return self._named(_short(name.lower())) is not None

    def _named(self, name: str) -> str | None:
        """A schema by its name in lower case; one of a database may have no tables yet."""
        if _place(name, MAIN) in (place.lower() for place in self._bare):
            return MAIN
        of_database = name.split(".")[0] in self._databases
        return self._shown.get(name, name if of_database else None)

    def searched(self, value: str, user: str) -> tuple[str, ...]:
        """Those that a value of the setting names; others are passed over, as by PostgreSQL."""
        found = []
        for name in named(value, user):
            shown = self._named(name)
            if shown is None and name == "public":
                shown = MAIN
            if shown is not None and shown not in found:
                found.append(shown)
        return tuple(found)

    def statement(self, searched: Sequence[str]) -> str:
        """What lets DuckDB look for names in these schemas."""
        if tuple(searched) == (MAIN,) and not self._bare:
            return "RESET search_path"
        places = self._places(searched)
        # DuckDB looks into `main` of the first database as well, at last.
        if not places or (places[0].startswith(f"{identifier(MEMORY)}.") and MAIN not in searched):
            places.insert(0, _place("temp", MAIN))
        return f"SET search_path = {literal(','.join(places))}"

    def check(self, searched: Sequence[str], words: Sequence[str]) -> None:
        """Refuse `main.orders` where it would be that of another database to DuckDB."""
        mains = [
            place for place in self._places(searched) if place.endswith(f".{identifier(MAIN)}")
        ]
        if mains and mains[0] in (*self._bare, _place(MEMORY, MAIN)):
            return
        for before, word, after in zip(("", *words), words, words[1:], strict=False):
            if after == "." and before != "." and unquoted(word) == MAIN:
                raise not_supported(
                    "main in front of a table is not possible while search_path has another schema "
                    "before it, since DuckDB would take the main schema of that one's database",
                    hint="write memory.main",
                )

    def _places(self, searched: Sequence[str]) -> list[str]:
        return [place for name in searched for place in self._places_of(name)]

    def _places_of(self, name: str) -> list[str]:
        if name == MAIN:
            return [*self._bare, _place(MEMORY, MAIN)]
        database, _, schema = name.partition(".")
        return sorted(self._found.get(name.lower(), {_place(database, schema or MAIN)}))


def _place(database: str, schema: str) -> str:
    return f"{identifier(database)}.{identifier(schema)}"
