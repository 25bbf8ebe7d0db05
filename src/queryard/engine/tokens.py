"""The words of a statement, as DuckDB's tokenizer sees them.

Every submission passes here, so all tokens of a text are made at once, in lists: an object per
token would cost more than DuckDB's tokenizer.
"""

from __future__ import annotations

from typing import NamedTuple

import duckdb

_COMMENT = duckdb.token_type.comment
_NUMBER = duckdb.token_type.numeric_const
_TEXT = duckdb.token_type.string_const


class Tokens(NamedTuple):
    """All tokens of a text that are no comments, in lists of one length.

    `offsets` say where they stand in the encoded text, `texts` what they are, `words` the same in
    lower case, and `literals` whether they are a number or a string.
    """

    offsets: list[int]
    texts: list[str]
    words: list[str]
    literals: list[bool]


def tokens(sql: str) -> Tokens:
    """All that are no comments.

    >>> tokens("SELECT 1 -- one").texts
    ['SELECT', '1']
    >>> tokens("SELECT 'É', a.b").literals
    [False, True, False, False, False, False]
    """
    found = duckdb.tokenize(sql)
    offsets = [offset for offset, _ in found]
    kinds = [kind for _, kind in found]
    if sql.isascii():
        lower = sql.lower()
        spans = list(zip(offsets, [*offsets[1:], len(sql)], strict=False))
        texts = [sql[a:b].strip() for a, b in spans]
        words = [lower[a:b].strip() for a, b in spans]
    else:
        raw = sql.encode()
        spans = list(zip(offsets, [*offsets[1:], len(raw)], strict=False))
        texts = [raw[a:b].decode("utf-8", "replace").strip() for a, b in spans]
        words = [text.lower() for text in texts]
    # The dot of a.b is a number to DuckDB.
    literals = [
        (kind is _NUMBER or kind is _TEXT) and word != "."
        for kind, word in zip(kinds, words, strict=True)
    ]
    if _COMMENT in kinds:
        kept = [place for place, kind in enumerate(kinds) if kind is not _COMMENT]
        columns = (offsets, texts, words, literals)
        return Tokens(*([column[place] for place in kept] for column in columns))  # type: ignore[arg-type]
    return Tokens(offsets, texts, words, literals)
