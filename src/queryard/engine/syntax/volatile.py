"""Whether a statement, asked twice of the same tables, may have two answers."""

from __future__ import annotations

from .classify import Classified
from .remembered import Remembered

# Functions that DuckDB calls volatile or constant within one query only, and words that stand for
# them; and ways to take a sample.
_NAMES = frozenset(
    {
        "age",
        "ago",
        "current_catalog",
        "current_connection_id",
        "current_database",
        "current_date",
        "current_localtime",
        "current_localtimestamp",
        "current_query",
        "current_query_id",
        "current_role",
        "current_schema",
        "current_schemas",
        "current_setting",
        "current_time",
        "current_timestamp",
        "current_transaction_id",
        "current_user",
        "currval",
        "error",
        "gen_random_uuid",
        "get_current_time",
        "get_current_timestamp",
        "getvariable",
        "glob",
        "in_search_path",
        "json_execute_serialized_sql",
        "localtime",
        "localtimestamp",
        "nextval",
        "now",
        "pg_conf_load_time",
        "pg_postmaster_start_time",
        "pg_sleep",
        "query",
        "query_table",
        "random",
        "sample",
        "session_user",
        "setseed",
        "setval",
        "sleep_ms",
        "stats",
        "tablesample",
        "today",
        "transaction_timestamp",
        "txid_current",
        "user",
        "uuid",
        "uuidv4",
        "uuidv7",
        "vector_type",
        "write_log",
    }
)
# Functions that read files of which the catalog knows nothing.
_READERS = ("read_", "parquet_", "sniff_", "duckdb_", "pragma_")
_ENDINGS = (
    *("_scan", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".duckdb", ".gz", ".zst"),
)


_known: Remembered[Classified, bool] = Remembered()


def forget_volatile() -> None:
    """Free what is remembered of earlier statements."""
    _known.clear()


def may_differ(statement: Classified) -> bool:
    """Whether it depends on chance, on the time, or on files that are no tables.

    >>> from queryard.engine.syntax.classify import classify
    >>> [may_differ(s) for s in classify("select 1; select random(); from 'a.csv'; select b.c")]
    [False, True, True, False]
    >>> [may_differ(s) for s in classify('from "a.csv"')]
    [True]
    """
    found = _known.get(statement)
    if found is None:
        found = _may_differ(statement)
        _known.put(statement, len(statement.sql), found)
    return found


def _may_differ(statement: Classified) -> bool:
    names = statement.names
    if not names.isdisjoint(_NAMES):
        return True
    composed = [name for name in names if "_" in name or "." in name]
    if any(name.startswith(_READERS) or name.endswith(_ENDINGS) for name in composed):
        return True
    return any("/" in text for text in statement.texts)
