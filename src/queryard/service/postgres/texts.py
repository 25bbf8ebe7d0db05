"""Statements as texts: where each of a series ends, and where its parameters stand.

DuckDB's tokenizer says what is a string, a quoted name or a comment; nothing here guesses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from queryard.engine.classify import unquoted
from queryard.engine.tokens import Tokens, tokens

from .errors import PostgresError


@dataclass(frozen=True)
class Text:
    """One statement of a client, without the semicolon behind it."""

    sql: str

    @cached_property
    def tokens(self) -> Tokens:
        return tokens(self.sql)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Its tokens in lower case."""
        return tuple(self.tokens.words)

    @property
    def first(self) -> str:
        return self.words[0] if self.words else ""

    def name(self, place: int) -> str:
        """The name at a place: in lower case, unless it is quoted."""
        if place >= len(self.words):
            raise PostgresError("42601", "syntax error at end of input")
        word = self.tokens.texts[place]
        return unquoted(word) if word[0] in "\"'" else word.lower()

    def rest(self, place: int) -> str:
        """The text from a token on."""
        offsets = self.tokens.offsets
        if place >= len(offsets):
            return ""
        return self.sql.encode()[offsets[place] :].decode()

    def between(self, start: int, end: int) -> str:
        """The text from a token up to another."""
        offsets, raw = self.tokens.offsets, self.sql.encode()
        return raw[offsets[start] : offsets[end] if end < len(offsets) else None].decode().strip()

    @cached_property
    def places(self) -> tuple[tuple[int, int], ...]:
        """Where its parameters stand: the place of each among the tokens, and its number."""
        words, offsets = self.words, self.tokens.offsets
        return tuple(
            (place, int(words[place + 1]))
            for place in range(len(words) - 1)
            if words[place] == "$"
            and words[place + 1].isdigit()
            and offsets[place + 1] == offsets[place] + 1
        )

    @property
    def parameters(self) -> int:
        """The highest number of a parameter.

        >>> Text("SELECT $2, '$3' -- $4").parameters
        2
        """
        return max((number for _, number in self.places), default=0)

    def filled(self, value: Callable[[int], str]) -> str:
        """The statement with SQL in the places of its parameters.

        >>> Text("SELECT $1::INT, '$1', $12").filled(lambda number: f"<{number}>")
        "SELECT <1>::INT, '$1', <12>"
        """
        if not self.places:
            return self.sql
        raw, offsets = self.sql.encode(), self.tokens.offsets
        parts, at = [], 0
        for place, number in self.places:
            parts += [raw[at : offsets[place]].decode(), value(number)]
            at = offsets[place + 1] + len(self.words[place + 1])
        return "".join([*parts, raw[at:].decode()])


def statements_of(sql: str) -> list[Text]:
    """The statements of a text; empty ones between semicolons are left out.

    >>> [text.sql for text in statements_of("SELECT ';'; ; SET a = 1;")]
    ["SELECT ';'", 'SET a = 1']
    """
    if ";" not in sql:
        whole = Text(sql.strip())
        return [whole] if whole.words else []
    found = tokens(sql)
    raw = sql.encode()
    ends = [found.offsets[place] for place, word in enumerate(found.words) if word == ";"]
    starts = [0, *(end + 1 for end in ends)]
    parts = [Text(raw[a:b].decode().strip()) for a, b in zip(starts, [*ends, None], strict=True)]
    return [part for part in parts if part.words]
