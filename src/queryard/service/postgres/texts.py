"""Statements as texts: where each of a series ends, and where its parameters stand.

DuckDB's tokenizer says what is a string, a quoted name or a comment; nothing here guesses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from queryard.engine.syntax.classify import unquoted
from queryard.engine.syntax.tokens import Tokens, tokens

from .errors import PostgresError

# Bytes as PostgreSQL writes them, without what is between the quotes being escaped.
_HEX = re.compile(r"(?i:e)?'(\\{1,2}x)((?:[0-9a-fA-F]{2})+)'")

# What PostgreSQL takes and passes over in CREATE TEMPORARY TABLE.
_LOCAL = re.compile(r"(create\s+)(?:local|global)\s+(?=temp(?:orary)?\s)", re.IGNORECASE)
_KEPT_ROWS = re.compile(
    r"""(create\s+temp(?:orary)?\s+table\s+(?:if\s+not\s+exists\s+)?(?:"(?:[^"]|"")*"|[\w.])+\s*
    (?:\([^()]*\)\s*)?)on\s+commit\s+preserve\s+rows\s+(?=as\b)""",
    re.IGNORECASE | re.VERBOSE,
)


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
        """Where its parameters stand: the place of each among the tokens, and its number.

        Those within a PREPARE get their values by EXECUTE.
        """
        if self.first == "prepare":
            return ()
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
    sql = with_bytes(sql)
    if ";" not in sql:
        whole = Text(_for_duckdb(sql.strip()))
        return [whole] if whole.words else []
    found = tokens(sql)
    raw = sql.encode()
    ends = [found.offsets[place] for place, word in enumerate(found.words) if word == ";"]
    starts = [0, *(end + 1 for end in ends)]
    texts = [raw[a:b].decode().strip() for a, b in zip(starts, [*ends, None], strict=True)]
    parts = [Text(_for_duckdb(text)) for text in texts]
    return [part for part in parts if part.words]


def _for_duckdb(sql: str) -> str:
    """A statement without words of PostgreSQL's that change nothing, and that DuckDB does not know.

    >>> _for_duckdb('CREATE LOCAL TEMPORARY TABLE "#t" ON COMMIT PRESERVE ROWS AS SELECT 1')
    'CREATE TEMPORARY TABLE "#t" AS SELECT 1'
    """
    if sql[:6].lower() != "create":
        return sql
    sql = _LOCAL.sub(r"\1", sql, count=1) if _LOCAL.match(sql) else sql
    return _KEPT_ROWS.sub(r"\1", sql, count=1) if _KEPT_ROWS.match(sql) else sql


def with_bytes(sql: str) -> str:
    r"""A text whose literals of bytes are DuckDB's, which has an escape per byte.

    DuckDB would read the first byte only, and the rest as letters: clients such as psycopg2 write
    their values into the text.

    >>> print(with_bytes(r"SELECT '\x00ff'::bytea, '\x00ff'"))
    SELECT '\x00\xff'::bytea, '\x00ff'
    """
    if "bytea" not in sql.lower():
        return sql
    found = tokens(sql)
    raw, parts, at = sql.encode(), [], 0
    for place, text in enumerate(found.texts):
        literal = _HEX.fullmatch(text)
        if literal is not None and _is_bytea(found.words, place):
            escape, digits = literal.groups()
            each = "".join(escape + digits[i : i + 2] for i in range(0, len(digits), 2))
            begin, end = literal.span()
            parts += [raw[at : found.offsets[place]].decode(), text[begin : literal.start(1)]]
            parts += [each, "'"]
            at = found.offsets[place] + end
    return "".join([*parts, raw[at:].decode()])


def _is_bytea(words: Sequence[str], place: int) -> bool:
    """Whether a literal is cast to bytes, in one of three ways."""
    follow = list(words[place + 1 : place + 3])
    return follow in (["::", "bytea"], ["as", "bytea"]) or words[place - 1 : place] == ["bytea"]
