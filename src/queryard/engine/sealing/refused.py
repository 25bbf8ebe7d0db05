"""Functions and views of DuckDB that tell of the machine, which a sealed client may not use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from functools import cache
from itertools import pairwise

import duckdb

from ..syntax.classify import unquoted
from ..syntax.tokens import tokens

# Table functions are refused unless they are known to be harmless.
_TABLE_FUNCTIONS = frozenset(
    {
        *("generate_series", "histogram", "histogram_values", "icu_calendar_names", "json_each"),
        *("json_tree", "pg_timezone_names", "range", "repeat", "repeat_row", "summary", "unnest"),
        *("test_all_types", "duckdb_columns", "duckdb_constraints", "duckdb_dependencies"),
        *("duckdb_indexes", "duckdb_keywords", "duckdb_schemas", "duckdb_sequences"),
        *("duckdb_tables", "duckdb_types", "duckdb_variables"),
        *("pragma_collations", "pragma_show", "pragma_table_info", "pragma_version"),
    }
)
# Pragmas whose names may well be those of columns or functions.
_NAMES = frozenset({"show", "functions", "version", "platform"})
# Scalar functions that tell of the machine, write to its logs, or only hold a slot. A plan names
# the files of views.
_SCALARS = frozenset({"getenv", "json_serialize_plan", "sleep_ms", "write_log"})
# Views of the system that tell where files lie (those of functions have macros), or what is set.
_SYSTEM_VIEWS = frozenset(
    {
        *("duckdb_databases", "duckdb_logs", "duckdb_views", "pragma_database_list", "pg_proc"),
        *(
            "pg_settings",
            "pg_views",
            "pg_tablespace",
            "sqlite_master",
            "sqlite_schema",
            "sqlite_temp_master",
        ),
        "sqlite_temp_schema",
    }
)


def name_of(word: str) -> str:
    """A word as the name that it may be; a text stays in its quotes."""
    return unquoted(word) if word[:1] == '"' else word


def refused_functions(words: Sequence[str]) -> Iterator[str]:
    """The functions called in a text, given by its words, that are refused."""
    return _called(words, _refused())


def refused_views(words: Sequence[str]) -> Iterator[str]:
    """The views named in a text that are refused."""
    before = ["", "", *(name_of(word) for word in words)]
    for schema, dot, name in zip(before, before[1:], before[2:], strict=False):
        if name in _SYSTEM_VIEWS:
            yield name
        elif (schema, dot, name) == ("information_schema", ".", "views"):
            yield "information_schema.views"


def is_refused(function: str) -> bool:
    """Whether a function, by its name in lower case, is refused."""
    return function in _refused()


def _called(words: Sequence[str], refused: Set[str]) -> Iterator[str]:
    for word, after in pairwise(words):
        if after == "(" and (name := name_of(word)) in refused:
            yield name


@cache
def _refused() -> frozenset[str]:
    """All refused functions of the installed DuckDB, macros that call one of them included."""
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        functions = connection.execute(
            "SELECT lower(function_name) FROM duckdb_functions() "
            "WHERE function_type IN ('table', 'table_macro', 'pragma')"
        ).fetchall()
        macros = connection.execute(
            "SELECT lower(function_name), macro_definition FROM duckdb_functions() "
            "WHERE function_type = 'macro'"
        ).fetchall()
    refused = {name for (name,) in functions} - _TABLE_FUNCTIONS - _NAMES | _SCALARS
    left = [(name, tokens(definition).words) for name, definition in macros]
    while found := {name for name, words in left if _tells(words, refused)} - refused:
        refused |= found
    return frozenset(refused)


def _tells(definition: Sequence[str], refused: Set[str]) -> bool:
    return any(_called(definition, refused)) or any(refused_views(definition))
