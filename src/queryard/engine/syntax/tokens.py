"""The words of a statement, as DuckDB's tokenizer sees them.

Every submission passes here, so the text is looked at as a whole wherever that is possible: an
object per token, or several steps in Python for each, would cost more than DuckDB's tokenizer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import duckdb

_COMMENT = duckdb.token_type.comment
_NUMBER = duckdb.token_type.numeric_const
_TEXT = duckdb.token_type.string_const

SHORT = 4_000
"""Characters of a text of which the tokens may be kept."""
MARK = "\x01"
"""Stands for a number or a string; no SQL has it."""


@dataclass(frozen=True)
class Tokens:
    """All tokens of a text that are no comments.

    `offsets` and `ends` say where they stand in the encoded text, spaces after them included;
    `literals` are the places of numbers and strings among them, and of the dots of `a.b`, which are
    numbers to DuckDB.
    """

    sql: str
    offsets: list[int]
    ends: list[int]
    literals: list[int]

    def before(self, place: int) -> Tokens:
        """Those before a place, and the text up to there."""
        sql = self.sql.encode()[: self.offsets[place]].decode()
        literals = [literal for literal in self.literals if literal < place]
        return Tokens(sql, self.offsets[:place], self.ends[:place], literals)

    @cached_property
    def texts(self) -> list[str]:
        """The tokens as they are written."""
        return [text.strip() for text in self._sliced(self.sql)]

    @cached_property
    def words(self) -> list[str]:
        """The tokens in lower case."""
        return [text.lower() for text in self.texts]

    @cached_property
    def strings(self) -> list[str]:
        """The texts of the strings in single quotes."""
        sql, offsets, ends = self.sql, self.offsets, self.ends
        if not sql.isascii():
            found = [text for place in self.literals if (text := self.texts[place])[0] == "'"]
        else:
            places = [place for place in self.literals if sql[offsets[place]] == "'"]
            found = [sql[offsets[place] : ends[place]].rstrip() for place in places]
        return [text[1:-1].replace("''", "'") for text in found]

    @cached_property
    def masked(self) -> list[str]:
        """The words, with MARK in the place of each number and string.

        >>> tokens("SELECT 'É', a.b").masked
        ['select', '\\x01', ',', 'a', '.', 'b']
        """
        whole = self.sql.isascii() and '"' not in self.sql
        words = self._sliced(self.sql.lower()) if whole else list(self.words)
        for place in self.literals:
            if words[place][0] != "." or words[place].strip() != ".":
                words[place] = MARK
        # Only strings and quoted names have spaces inside: splitting strips all the words at once.
        return " ".join(words).split() if whole else words

    @cached_property
    def different(self) -> frozenset[str]:
        """The masked words, each once."""
        return frozenset(self.masked)

    def _sliced(self, text: str) -> list[str]:
        spans = zip(self.offsets, self.ends, strict=True)
        if text.isascii():
            return [text[a:b] for a, b in spans]
        raw = text.encode()
        return [raw[a:b].decode("utf-8", "replace") for a, b in spans]


def tokens(sql: str) -> Tokens:
    """All that are no comments; nothing may be changed in them.

    A submission is looked at from several sides, one after another: the tokens of short texts that
    were seen last are kept.

    >>> tokens("SELECT 1 -- one").texts
    ['SELECT', '1']
    """
    return _kept(sql) if len(sql) <= SHORT else _made(sql)


@lru_cache(maxsize=16)
def _kept(sql: str) -> Tokens:
    return _made(sql)


def forget_tokens() -> None:
    """Free what is kept of earlier texts."""
    _kept.cache_clear()


def _made(sql: str) -> Tokens:
    found = duckdb.tokenize(sql)
    offsets = [offset for offset, _ in found]
    ends = [*offsets[1:], len(sql) if sql.isascii() else len(sql.encode())][: len(offsets)]
    if "--" in sql or "/*" in sql:
        kept = [place for place, (_, kind) in enumerate(found) if kind is not _COMMENT]
        offsets, ends = [offsets[place] for place in kept], [ends[place] for place in kept]
        found = [found[place] for place in kept]
    text, number = _TEXT, _NUMBER
    literals = [p for p, (_, kind) in enumerate(found) if kind is text or kind is number]
    return Tokens(sql, offsets, ends, literals)
