"""The words of a statement, as DuckDB's tokenizer sees them."""

from __future__ import annotations

from typing import NamedTuple

import duckdb

_COMMENT = duckdb.token_type.comment
_LITERALS = (duckdb.token_type.numeric_const, duckdb.token_type.string_const)


class Token(NamedTuple):
    """A word, where it stands in the encoded text, and whether it is a number or a text."""

    offset: int
    text: str
    is_literal: bool


def tokens(sql: str) -> list[Token]:
    """All that are no comments.

    >>> [token.text for token in tokens("SELECT 1 -- one")]
    ['SELECT', '1']
    """
    raw = sql.encode()
    found = duckdb.tokenize(sql)
    ends = [offset for offset, _ in found[1:]] + [len(raw)]
    kept = []
    for (offset, kind), end in zip(found, ends, strict=True):
        if kind != _COMMENT:
            text = raw[offset:end].decode("utf-8", "replace").strip()
            # The dot of a.b is a number to DuckDB.
            kept.append(Token(offset, text, kind in _LITERALS and text != "."))
    return kept
