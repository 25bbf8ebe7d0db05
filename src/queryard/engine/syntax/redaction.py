"""Statements and messages without the values that users wrote into them."""

from __future__ import annotations

import re

from .tokens import tokens

HIDDEN = "?"
_HEADING = re.compile(r"[A-Z][A-Za-z ]* Error(?=:)")


def without_literals(sql: str) -> str:
    """A text with `?` in the place of numbers and strings, and without comments.

    Names and the layout stay. DuckDB's tokenizer says what is what; a text that it cannot read to
    the end, such as one with an open quote, loses all that follows.

    >>> without_literals("SELECT 'Ann', a.b -- hers")
    'SELECT ?, a.b '
    >>> without_literals("SELECT x::DECIMAL(9, 2), $$secret$$, 0x1F")
    'SELECT x::DECIMAL(?, ?), ?, ?'
    """
    found = tokens(sql)
    raw = sql.encode(errors="replace")
    literals = set(found.literals)
    parts: list[bytes] = []
    follows = False  # whether this token touches a literal: the rest of 0x1F
    for place, (start, end) in enumerate(zip(found.offsets, found.ends, strict=True)):
        token = raw[start:end]
        text = token.rstrip()
        if follows and text[:1].isalpha():
            token = token[len(text) :]
        elif follows := place in literals and text != b".":
            token = HIDDEN.encode() + token[len(text) :]
            follows = end == start + len(text)
        parts.append(token)
    return b"".join(parts).decode(errors="replace")


def without_values(message: str) -> str:
    """The heading of a message of DuckDB's, which may quote values and the statement.

    >>> without_values("Conversion Error: Could not convert string 'Ann' to INT32")
    'Conversion Error: (its text is left out, as the history keeps no values)'
    """
    found = _HEADING.match(message)
    if found is None and "'" not in message and '"' not in message:
        return message
    heading = "error" if found is None else found[0]
    return f"{heading}: (its text is left out, as the history keeps no values)" if message else ""
