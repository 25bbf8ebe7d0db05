"""Which statements a sealed client may put: a client of a server, which others use as well.

What is not known to be harmless is refused: kinds of statements and settings are listed here if
they are allowed, and table functions in `queryard.engine.sealing.refused`. This is the first of two
lines: a file that is named in a way not seen here is not opened either, since the instance is
sealed (`queryard.engine.sealing.access`).
"""

from __future__ import annotations

import os
from pathlib import Path

from queryard.sql.catalog.opening import STATISTICS
from queryard.sql.catalog.quoting import literal

from ..errors import NotAllowed
from ..syntax.classify import Classified, classify, direction, rest, unquoted
from ..syntax.remembered import Remembered
from .access import Access
from .allowed import check_creating
from .refused import name_of, refused_functions, refused_views

_SERVER = "a client of a server"
# Reading, and what stays within the client's own instance. Databases are attached for reading but
# for those it may write.
_KINDS = frozenset(
    {
        *("ALTER", "ANALYZE", "CREATE", "DELETE", "DROP", "EXECUTE", "EXPLAIN", "INSERT"),
        *("MERGE_INTO", "MULTI", "PREPARE", "SELECT", "TRANSACTION", "UPDATE", "VACUUM"),
        *("CALL", "COPY", "PRAGMA", "SET", "VARIABLE_SET"),
    }
)
_SETTINGS = frozenset(
    {
        *("calendar", "timezone", "search_path", "schema", "variable"),
        *("default_collation", "default_null_order", "null_order", "default_order"),
        *("enable_progress_bar", "enable_progress_bar_print", "progress_bar_time"),
        *("errors_as_json", "explain_output", "ieee_floating_point_ops", "integer_division"),
        *("lambda_syntax", "old_implicit_casting", "order_by_non_integer_literal", "pivot_limit"),
        *("preserve_identifier_case", "scalar_subquery_error_on_multiple_rows"),
    }
)
# What `current_setting` may tell besides.
_TOLD = _SETTINGS | {"threads", "memory_limit", "max_memory", "server_version"}
_PRAGMAS = frozenset(
    {"collations", "functions", "show", "show_tables", "show_tables_expanded", "table_info"}
    | {"version"}
)
_SYSTEM_SCHEMAS = frozenset({"information_schema", "pg_catalog", "system"})
# Made in memory, or as text, for the client alone.
_MADE = ("temp", "temporary", "view", "macro", "function", "type", "sequence")
# Options of COPY … TO that are parts of paths.
_FILE_NAMES = ("filename_pattern", "file_extension")
_KEPT = STATISTICS.parts[0]
_SCOPES = ("session", "local")
# FROM stands for something else within these: extract(year FROM '2024-01-01').
_FROM_INSIDE = frozenset({"extract", "trim", "ltrim", "rtrim", "substring", "overlay", "position"})


_checked: Remembered[tuple[Classified, Access], Classified] = Remembered()


def checked_sealed(statement: Classified, access: Access) -> Classified:
    """The statement as it is run for a sealed client; an error where it may not be."""
    key = statement, access
    if (known := _checked.get(key)) is not None:
        return known
    try:
        if statement.kind == "COPY":
            _check_names(statement)
            found = _copying(statement, access)
        else:
            check_sealed(statement, access)
            found = statement
    finally:
        statement.forget_words()
    _checked.put(key, len(statement.sql), found)
    return found


def check_sealed(statement: Classified, access: Access) -> None:
    """Refuse what a sealed client may not do, with the reason."""
    words, kind = statement.words, statement.kind
    if kind not in _KINDS or (kind == "COPY") or words[0] in ("install", "load", "import"):
        what = " ".join(word for word in words[:2] if word.isalpha()).upper()
        raise NotAllowed(f"{what} is nothing for {_SERVER}; it works on the tables it was granted")
    _check_names(statement)
    if kind in ("SET", "VARIABLE_SET"):
        _check_setting(words)
    elif kind == "PRAGMA" or (kind == "CALL" and words[0] != "call"):  # CHECKPOINT
        _check_pragma(words)
    elif kind == "CREATE":
        _check_create(words, access)
    elif kind == "DROP" and "secret" in words[1:4]:
        raise NotAllowed(f"DROP SECRET is nothing for {_SERVER}")
    elif kind == "EXPLAIN":
        for inner in classify(rest(statement.sql, _after_explain(words))):
            check_sealed(inner, access)
    elif kind == "PREPARE":
        for inner in classify(rest(statement.sql, words.index("as") + 1)):
            check_sealed(inner, access)


def _after_explain(words: tuple[str, ...]) -> int:
    """Where the statement begins that an EXPLAIN explains."""
    if words[1] in ("analyze", "analyse"):
        return 2
    queries = ("select", "from", "with", "values", "table", "pivot", "unpivot", "describe", "(")
    if words[1] == "(" and words[2] not in queries:
        return words.index(")") + 1
    return 1


def _check_setting(words: tuple[str, ...]) -> None:
    if words[0] == "use":
        _check_schema(words[1:])
        return
    named = [unquoted(word) for word in words[1:] if word not in _SCOPES]
    name = "timezone" if named[:2] == ["time", "zone"] else named[0]
    if name not in _SETTINGS:
        raise NotAllowed(f"{name} cannot be set by {_SERVER}: it counts for others as well")
    if name in ("search_path", "schema"):
        _check_schema(words[2:])


def _check_schema(words: tuple[str, ...]) -> None:
    if not {"(", "||"}.isdisjoint(words):
        raise NotAllowed(f"{_SERVER} writes the schemas to be searched as one text")
    named = " ".join(words).replace('"', "").replace("'", "").replace(",", " ").replace(".", " ")
    if found := sorted(_SYSTEM_SCHEMAS.intersection(named.split())):
        raise NotAllowed(f"{found[0]} cannot be searched without its name by {_SERVER}")


def _check_pragma(words: tuple[str, ...]) -> None:
    name = unquoted(words[1]) if words[0] == "pragma" else ""
    if name not in _PRAGMAS:
        what = f"PRAGMA {name}" if name else words[0].upper()
        raise NotAllowed(f"{what} is nothing for {_SERVER}")


def _check_create(words: tuple[str, ...], access: Access) -> None:
    if "secret" in words[1:6]:
        raise NotAllowed(f"CREATE SECRET is nothing for {_SERVER}")
    if not access.writes:
        check_creating(words, _MADE, "a client that writes has to be granted a database")


# --- names and functions -------------------------------------------------------------------------


def _check_names(statement: Classified) -> None:
    words = statement.words
    for name in refused_functions(words):
        raise NotAllowed(
            f"{name} is nothing for {_SERVER}: it reads the tables it was granted, by name"
        )
    for name in refused_views(words):
        raise NotAllowed(f"{name} is nothing for {_SERVER}: it tells where files lie")
    for place, word in enumerate(words):
        if name_of(word) == "current_setting" and words[place + 1 : place + 2] == ("(",):
            _check_told(words[place + 2 : place + 4])
    if _names_file(words):
        raise NotAllowed(
            f"a text where a table should stand means a file; {_SERVER} reads the tables it was "
            "granted, by their names"
        )


def _check_told(argument: tuple[str, ...]) -> None:
    name = unquoted(argument[0]).lower() if argument and argument[0][:1] == "'" else ""
    if argument[1:] != (")",) or name not in _TOLD:
        raise NotAllowed(f"current_setting tells {_SERVER} only: {', '.join(sorted(_TOLD))}")


def _names_file(words: tuple[str, ...]) -> bool:
    """Whether a text stands where a table should: FROM 'a.csv'."""
    opened: list[str] = []
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        if word == "(":
            opened.append(before)
        elif word == ")" and opened:
            opened.pop()
        elif word[:1] == "'" and before in ("from", "join", "describe", "summarize", "show"):
            inside = opened[-1] if opened else ""
            compared = before == "from" and words[max(0, place - 2)] == "distinct"
            if not (inside in _FROM_INSIDE or compared):
                return True
    return False


# --- files to write ------------------------------------------------------------------------------


def _copying(statement: Classified, access: Access) -> Classified:
    """A COPY … TO a file in the client's folder, with the whole path of it."""
    words, texts = statement.words, statement.tokens.texts
    if direction(words) != "to":
        raise NotAllowed(f"COPY … FROM reads a file, which is nothing for {_SERVER}")
    if access.output is None:
        raise NotAllowed(f"COPY … TO writes a file; {_SERVER} needs a folder for that (`output`)")
    place = _target(words)
    after = words[place + 1] if place + 1 < len(words) else ""
    if place >= len(words) or words[place][:1] != "'" or after not in ("", "(", "with"):
        raise NotAllowed("COPY … TO: write the name of the file as a text in single quotes")
    path = _within(access.output, access.private, unquoted(texts[place]))
    _check_file_names(words[place + 1 :])
    raw = statement.sql.encode()
    start = statement.tokens.offsets[place]
    end = start + len(texts[place].encode())
    sql = raw[:start].decode() + literal(str(path)) + raw[end:].decode()
    return classify(sql)[0]


def _target(words: tuple[str, ...]) -> int:
    """The place after the first TO outside of parentheses."""
    depth = 0
    for place, word in enumerate(words):
        depth += (word == "(") - (word == ")")
        if depth == 0 and word == "to":
            return place + 1
    return len(words)


def _check_file_names(options: tuple[str, ...]) -> None:
    """Refuse names of files that lead out of the target: DuckDB puts them together as they are."""
    for place, word in enumerate(options):
        if unquoted(word).lower() not in _FILE_NAMES:
            continue
        given = options[place + 1] if place + 1 < len(options) else ""
        after = options[place + 2] if place + 2 < len(options) else ""
        is_text = given[:1] == "'" and after in (",", ")")
        if not is_text or not {"/", "\\"}.isdisjoint(given):
            raise NotAllowed(
                f"COPY … TO: {unquoted(word).upper()} is one text in single quotes, without / "
                f"and \\, for {_SERVER}"
            )


def _within(folder: Path, private: frozenset[Path], name: str) -> Path:
    """The path of a file in a folder, by a name that does not lead out of it.

    Nor may it lead into folders in which Queryard keeps its own, or stand for one above them.
    """
    found = Path(os.path.realpath(folder / name))
    if ":" in name or not found.is_relative_to(folder) or found == folder:
        raise NotAllowed(f"COPY … TO {name!r}: the file must lie in the client's own folder")
    inside = [each for each in private if each.is_relative_to(folder)]
    if _KEPT in (part.lower() for part in found.relative_to(folder).parts) or any(
        found.is_relative_to(each) or each.is_relative_to(found) for each in inside
    ):
        raise NotAllowed(
            f"COPY … TO {name!r}: the server keeps files of its own there; choose another name"
        )
    return found
