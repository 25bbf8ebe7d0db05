"""Whether a session may run a statement."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import NotAllowed
from ..syntax.classify import WRITING_FUNCTIONS, Classified, classify, direction, rest, unquoted

_REMEDY = "open the session for writing (connect(write=True), --write)"
# Settings that the scheduler and the memory budget depend on, and what to use instead.
GUARDED = {
    "threads": "connect(slots=…) or --slots",
    "worker_threads": "connect(slots=…) or --slots",
    "external_threads": "connect(slots=…) or --slots",
    "scheduler_process_partial": "",
    "memory_limit": "connect(memory=…) or --memory",
    "max_memory": "connect(memory=…) or --memory",
    "temp_directory": "connect(temp=…)",
    "max_temp_directory_size": "connect(temp=…)",
    "lock_configuration": "",
    "streaming_buffer_size": "",
    "max_streaming_buffer_size": "",
    # Rows leave DuckDB as Arrow of one fixed form.
    "arrow_lossless_conversion": "",
}
# Settings that make DuckDB write files.
WRITING = frozenset(
    {
        "extension_directories",
        "extension_directory",
        "extension_repository_directory",
        "home_directory",
        "log_query_path",
        "logging_storage",
        "profile_output",
        "profiling_output",
        "secret_directory",
    }
)
_SCOPES = ("global", "session", "local", "persist")
# Databases are attached for reading, so these reach temporary tables only.
_HARMLESS = frozenset(
    {
        "ALTER",
        "ANALYZE",
        "DELETE",
        "DROP",
        "EXECUTE",
        "INSERT",
        "LOAD",
        "MERGE_INTO",
        "MULTI",
        "RELATION",
        "SELECT",
        "TRANSACTION",
        "UPDATE",
        "VACUUM",
    }
)
# What a session that only reads may make: it goes with the session.
_OWN = ("view", "macro", "function")


def check_allowed(statement: Classified, writes: bool) -> None:
    """Refuse what the session may not do, with the reason."""
    if not writes and (acting := sorted(statement.names & WRITING_FUNCTIONS)):
        raise NotAllowed(f"{acting[0]} writes files, and this session only reads; {_REMEDY}")
    if statement.kind == "SELECT":
        return
    words = statement.words
    if statement.kind == "EXPLAIN":
        if (inner := statement.explained) is not None:
            check_allowed(inner, writes)
    elif statement.kind == "PREPARE":
        for prepared in classify(rest(statement.sql, words.index("as") + 1)):
            check_allowed(prepared, writes)
    elif statement.kind in ("SET", "VARIABLE_SET", "PRAGMA", "CALL"):
        _check_setting(words, writes)
    elif not writes:
        _check_reading(statement.kind, words)


def _check_setting(words: tuple[str, ...], writes: bool) -> None:
    names = [word for word in words[1:4] if word not in _SCOPES]
    name = unquoted(names[0]) if names else ""
    if not writes and (words[0] == "import" or name == "import_database"):
        raise NotAllowed(f"IMPORT DATABASE writes, and this session only reads; {_REMEDY}")
    if name in GUARDED:
        instead = f"; use {GUARDED[name]} instead" if GUARDED[name] else ""
        raise NotAllowed(f"{name} cannot be set by a statement: Queryard relies on it{instead}")
    if name in WRITING and not writes:
        raise NotAllowed(f"{name} makes DuckDB write files, and this session only reads; {_REMEDY}")


def check_creating(words: tuple[str, ...], allowed: Sequence[str], remedy: str) -> None:
    """Refuse a CREATE of anything but these kinds of objects."""
    made = [w for w in words[1:5] if w not in ("or", "replace", "local", "persistent")]
    if made[0] not in allowed:
        what = made[0].upper()
        temp = f"CREATE TEMP {what} works in every session, or " if what == "TABLE" else ""
        raise NotAllowed(f"CREATE {what} writes, and this session only reads; {temp}{remedy}")


def _check_reading(kind: str, words: tuple[str, ...]) -> None:
    if kind == "CREATE":
        check_creating(words, ("temp", "temporary", *_OWN), _REMEDY)
    elif kind == "COPY":
        if direction(words) != "from":
            raise NotAllowed(f"COPY … TO writes a file, and this session only reads; {_REMEDY}")
    elif kind == "LOAD" and words[0] != "load":
        raise NotAllowed(f"INSTALL writes to disk, and this session only reads; {_REMEDY}")
    elif kind not in _HARMLESS and not (kind == "ATTACH" and attaches_to_read(words)):
        what = " ".join(word for word in words[:2] if word.isalpha()).upper()
        raise NotAllowed(f"{what} is not possible, as this session only reads; {_REMEDY}")


def attaches_to_read(words: tuple[str, ...]) -> bool:
    """Whether an ATTACH opens a file for reading only.

    >>> attaches_to_read(classify("ATTACH 'a.duckdb' (READ_ONLY)")[0].words)
    True
    >>> attaches_to_read(classify("ATTACH 'a.duckdb' (READ_ONLY false)")[0].words)
    False
    """
    after = [words[place + 1 :] for place, word in enumerate(words) if word == "read_only"]
    is_so = all(rest[:1] in ((",",), (")",), ("true",)) for rest in after)
    return bool(after) and is_so and "read_write" not in words
