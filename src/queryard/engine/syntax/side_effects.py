"""Which later statements the side effects of a statement may concern.

A statement that makes a table concerns every statement that names the table; one that changes a
setting concerns all. Where the words leave it open, all statements are concerned.
"""

from __future__ import annotations

import os
import re

from queryard.sql.catalog import Catalog
from queryard.sql.catalog.locations import scheme_of

from .classify import Classified, copies_to, target_words

# Words that name nothing, unless they are in quotes.
_NO_NAMES = frozenset(
    {
        *("create", "or", "replace", "temp", "temporary", "local", "persistent", "recursive"),
        *("table", "view", "macro", "function", "type", "sequence", "schema", "index", "unique"),
        *("if", "not", "exists", "on", "using", "drop", "alter"),
        *("insert", "into", "update", "delete", "from", "merge", "truncate", "copy"),
    }
)
# Texts and names that may be those of files: a folder, a pattern, an ending.
_PATH = re.compile(r"[/\\*]|\.[a-z]\w*$")
# What these read stands in a text.
BY_TEXT = frozenset({"query", "query_table"})
_CHANGES_ROWS = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE_INTO", "COPY"})
_CHANGES_NAMES = frozenset({"DROP", "ALTER"})
_OF_A_CLIENT = frozenset(
    {"TRANSACTION", "SET", "VARIABLE_SET", "PREPARE", "EXECUTE", "LOAD", "ATTACH", "DETACH"}
)


def concerns(left: Classified, later: Classified, catalog: Catalog) -> bool:
    """Whether the side effects of a statement may change what a later read-only one sees."""
    if left.reads or left.only_looks:
        return False
    if not later.names.isdisjoint(BY_TEXT):
        return True  # what it reads stands in a text
    words = left.words
    if left.kind == "COPY" and copies_to(left):
        return _may_read(later, left.texts, catalog)
    if left.kind == "CREATE" and "secret" not in words[:5]:
        named = words[: words.index("as")] if "as" in words else words
    elif left.kind in _CHANGES_ROWS:
        named = words[: target_words(words)]
    elif left.kind in _CHANGES_NAMES:
        named = words
    else:
        return True
    return not later.names.isdisjoint(_names(named))


def _names(words: tuple[str, ...]) -> frozenset[str]:
    """What may be a name; a word in quotes is one, whatever it says."""
    return frozenset(
        word.strip('"').replace('""', '"')
        for word in words
        if word not in _NO_NAMES and (word[0].isalnum() or word[0] in '"_')
    )


def _may_read(later: Classified, texts: tuple[str, ...], catalog: Catalog) -> bool:
    """Whether a statement may read a file that is being written: by its path, or as a table's."""
    if any(_PATH.search(name) for name in later.names if len(name) > 1):
        return True
    read = [table for table in catalog.tables.values() if table.name.lower() in later.names]
    uris = [file.uri for table in read for file in table.files]
    if not read:
        return False
    if not texts or any(scheme_of(place) for place in (*texts, *uris)):
        return True  # where that lies is not plain
    written = [os.path.dirname(os.path.abspath(text)) for text in texts]
    return any(
        os.path.commonpath((place, folder)) in (place, folder)
        for place in written
        for folder in {_folder(uri) for uri in uris}
    )


def _folder(uri: str) -> str:
    """Where the files of a table lie, above folders such as region=EU."""
    folder = os.path.dirname(uri)
    while "=" in os.path.basename(folder):
        folder = os.path.dirname(folder)
    return folder


def state_left(statement: Classified) -> str:
    """What a later statement of the same client may rely on, in a word or two; empty if nothing.

    What is made outside of a database file goes with the client.

    >>> from .classify import classify
    >>> [state_left(s) for s in classify("BEGIN; CREATE TEMP VIEW v AS SELECT 1; SELECT 1")]
    ['BEGIN', 'CREATE TEMP', '']
    """
    words, kind = statement.words, statement.kind
    ends = [place for place, word in enumerate(words) if word in ("as", "(")]
    head = words[: min(ends, default=len(words))]
    makes = kind == "CREATE" and ("." not in head or not {"temp", "temporary"}.isdisjoint(head))
    sets = kind == "PRAGMA" and "=" in words
    if kind in _OF_A_CLIENT or makes or sets or words[0] == "deallocate":
        return " ".join(words[: 2 if makes else 1]).upper()
    return ""
