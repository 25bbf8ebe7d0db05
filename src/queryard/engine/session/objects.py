"""What users have made in the session's instance, by name, and which connections see it."""

from __future__ import annotations

from collections.abc import Set

from ..instances.instance import Connection

_OBJECTS = """
SELECT database_name AS base, table_name AS name, 'table' AS kind
FROM duckdb_tables() WHERE NOT internal
UNION SELECT database_name, view_name, 'view' FROM duckdb_views() WHERE NOT internal
UNION SELECT database_name, schema_name, 'schema' FROM duckdb_schemas() WHERE NOT internal
UNION SELECT database_name, database_name, 'database' FROM duckdb_databases()
      WHERE NOT internal AND database_name <> 'memory'
UNION SELECT database_name, type_name, 'type' FROM duckdb_types() WHERE NOT internal
UNION SELECT database_name, sequence_name, 'sequence' FROM duckdb_sequences()
"""
_FUNCTIONS = "SELECT DISTINCT function_name AS name FROM duckdb_functions() WHERE NOT internal"
# What lies in these belongs to the session, not to a file.
_NO_FILES = ("memory", "temp")
# The schema that every database has.
_EVERYWHERE = frozenset({"main"})
_NONE: frozenset[str] = frozenset()


class SessionObjects:
    """Names, in lower case, as of the last look."""

    def __init__(self) -> None:
        self.made = _NONE
        """All of them, but for tables of the catalog (unless they hide one)."""
        self.in_files = _NONE
        """Those in attached database files, which every connection sees."""
        self.views_in_files = _NONE
        self.private = _NONE
        """Those that only the session's connection sees, or that mean something else on others."""
        self._functions = _NONE

    def add_functions(self, names: Set[str]) -> None:
        """Macros, and functions of Python's: they may read anything, by whatever name."""
        self._functions |= names
        self.made |= self._functions
        self.private |= self._functions

    def look_for_functions(self, connection: Connection) -> None:
        """See which macros and functions are there by now."""
        self.add_functions({str(row["name"]).lower() for row in connection.rows(_FUNCTIONS)})

    def look(self, connection: Connection, own: Set[str]) -> None:
        """See what is there; `own` are the tables of the catalog."""
        rows = connection.rows(_OBJECTS)
        found = [(row["base"], str(row["name"]).lower(), row["kind"]) for row in rows]
        found = [item for item in found if item[1] not in _EVERYWHERE]
        # A temporary table or a view of the user's may bear the name of a table of files.
        temporary = frozenset(name for base, name, _ in found if base == "temp")
        in_memory = frozenset(name for base, name, _ in found if base in _NO_FILES)
        in_files = [(name, kind) for base, name, kind in found if base not in _NO_FILES]
        self.in_files = frozenset(name for name, _ in in_files)
        self.views_in_files = frozenset(name for name, kind in in_files if kind == "view")
        # A view in a file may read a temporary table, which other connections do not see.
        hidden = self.views_in_files if temporary else _NONE
        self.private = (in_memory - own) | temporary | hidden | self._functions
        self.made = ((in_memory | self.in_files) - own) | temporary | self._functions
