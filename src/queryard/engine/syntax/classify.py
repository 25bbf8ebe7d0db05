"""What kind of statement it is, in DuckDB's own words.

DuckDB's tokenizer says what the words of a text are. They show that most texts can only be one
SELECT, or nothing that DuckDB accepts; then its parser, which takes ten times as long, is left to
the execution. Of all others the parser says where statements end and of what type they are; nothing
here reads SQL by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..errors import NotAllowed, failure
from .parser import parse
from .remembered import MOST, Remembered
from .template import template
from .tokens import MARK, Tokens, forget_tokens, tokens

# Table functions that do something, and may hide in a SELECT.
WRITING_FUNCTIONS = frozenset({"enable_logging", "enable_profiling"})
_ACTING = WRITING_FUNCTIONS | {
    "checkpoint",
    "rejects_scan",
    "rejects_table",
    "setseed",
    "store_rejects",
    "disable_logging",
    "disable_profiling",
    "force_checkpoint",
    "truncate_duckdb_logs",
}
# A text that begins like this, and has none of those words, is one SELECT or a syntax error.
_SELECTS = ("select", "with", "from", "values")
_OTHERS = frozenset(
    {
        *("alter", "analyze", "attach", "call", "checkpoint", "copy", "create", "deallocate"),
        *("delete", "detach", "drop", "execute", "explain", "export", "import", "insert", "into"),
        *("load", "merge", "pivot", "pivot_longer", "pivot_wider", "pragma", "prepare", "truncate"),
        *("unpivot", "update", "vacuum"),
    }
)
# Statements in a WITH that change rows: they are SELECTs to DuckDB's parser.
_CHANGES = frozenset({"delete", "insert", "merge", "update"})
# The words of longer texts are kept only while they are looked at.
_WORDS_KEPT = 1_000
_ANALYZE = ("analyze", "analyse")
_QUERIES = ("select", "from", "with", "values", "table", "pivot", "unpivot", "describe", "(")
_PARTS = re.compile(r"\w+")
_SYSTEM = ("information_schema", "pg_", "sqlite_", "duckdb_")


@dataclass(frozen=True)
class Classified:
    """One statement of a script."""

    sql: str
    kind: str  # DuckDB's statement type: SELECT, CREATE, SET …

    @cached_property
    def tokens(self) -> Tokens:
        """Made again when asked for: with all its tokens a statement takes 25 times its text."""
        return tokens(self.sql)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Its tokens without comments, in lower case; a quoted name is no keyword."""
        return tuple(self.tokens.words)

    def forget_words(self) -> None:
        """Free the words of a long text: they are made again when they are asked for."""
        if len(self.sql) > _WORDS_KEPT:
            held = vars(self)
            held.pop("tokens", None)
            held.pop("words", None)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Its string literals."""
        return tuple(self.tokens.strings)

    @cached_property
    def names(self) -> frozenset[str]:
        """Every word that may be a name, so that nothing it may refer to is overlooked.

        Texts too: PRAGMA table_info('orders'). One that is set may name several: 'shop.main, web'.
        """
        words = self.tokens.different
        quoted = [word for word in words if word[:1] == '"'] if '"' in self.sql else []
        texts = [text.lower() for text in self.texts]
        if self.kind == "SET":
            texts += [part for text in texts for part in _PARTS.findall(text)]
        return words.difference(quoted, [MARK]).union(map(unquoted, quoted), texts)

    @cached_property
    def template(self) -> str:
        """The statement without its literals: the same for statements that differ in these only."""
        return template(self.tokens)

    @cached_property
    def has_parameters(self) -> bool:
        """Whether something in it may be a parameter."""
        if "?" not in self.sql and "$" not in self.sql:
            return False
        return any(word.startswith(("?", "$")) for word in self.tokens.different)

    @cached_property
    def reads(self) -> bool:
        """Only reads, and has no side effects on the connection."""
        if self.kind == "EXPLAIN":
            inner = self.explained
            return inner is None or inner.reads
        if not self.names.isdisjoint(_ACTING):
            return False
        return self.kind == "SELECT" and not (self._looks_around or self._changes_rows)

    @cached_property
    def only_looks(self) -> bool:
        """Lists objects and has no side effects, but must run on the session's connection."""
        acts = self._changes_rows or not self.names.isdisjoint(_ACTING)
        return self.kind == "SELECT" and not acts

    @cached_property
    def _looks_around(self) -> bool:
        """Whether it lists objects, so that it must run on the session's connection."""
        text = self.sql.lower()
        if any(start in text for start in _SYSTEM) and any(
            word.strip('"').startswith(_SYSTEM) for word in self.tokens.different
        ):
            return True
        if "show" not in self.tokens.different:
            return False
        pairs = zip(("", *self.words), self.words, strict=False)
        return any(word == "show" and last in ("", "(") for last, word in pairs)

    @cached_property
    def _changes_rows(self) -> bool:
        """Whether it may change rows: WITH new AS (INSERT INTO t … RETURNING *) SELECT …"""
        if self.names.isdisjoint(_CHANGES):
            return False
        threes = zip(self.words, self.words[1:], self.words[2:], strict=False)
        return any(
            before == "(" and word in _CHANGES and (after.isidentifier() or after[:1] == '"')
            for before, word, after in threes
        )

    @cached_property
    def explained(self) -> Classified | None:
        """What an EXPLAIN ANALYZE runs; None where nothing is run."""
        at = 2
        if self.words[1] == "(":
            at = self.words.index(")") + 1
            options = [unquoted(word) for word in self.words[2:at]]
            if set(_ANALYZE).isdisjoint(options) or options[0] in _QUERIES:
                return None  # no ANALYZE, or EXPLAIN (SELECT …)
        elif self.words[1] not in _ANALYZE:
            return None
        return classify(rest(self.sql, at))[0]


# The statements of texts that were seen of late: programs ask the same again and again. A long one
# is classified several times on its way.
_remembered: Remembered[str, tuple[Classified, ...]] = Remembered(longest=MOST)


def forget_statements() -> None:
    """Free what is remembered of earlier texts."""
    _remembered.clear()
    forget_tokens()


def classify(sql: str) -> list[Classified]:
    """The statements of a script; a syntax error is DuckDB's own.

    What can only be a SELECT is not parsed: a syntax error in it is met when it is run.

    >>> [(s.kind, s.reads) for s in classify("from t; SET threads = 9")]
    [('SELECT', True), ('SET', False)]
    """
    if (known := _remembered.get(sql)) is not None:
        return list(known)
    try:
        sql.encode()
    except UnicodeEncodeError as error:
        raise failure(f"the statement is no valid text: {error.reason}") from None
    if (place := sql.find("\0")) >= 0:
        # DuckDB's C interface takes it for the end, and would run what stands before it.
        raise failure(
            f"Parser Error: the statement holds the character 0 at position {place}; "
            "write chr(0) for it, or pass it as a parameter"
        )
    if (select := _select(sql)) is not None:
        found = [select]
    else:
        texts = [(text.strip().rstrip(";"), kind) for text, kind in parse(sql)]
        found = [_looked_at(Classified(text, kind), tokens(text)) for text, kind in texts]
    if not found:
        raise NotAllowed("there is no statement in the text; write something like SELECT 42")
    _remembered.put(sql, len(sql), tuple(found))
    return found


def check_syntax(statement: Classified) -> None:
    """Raise the syntax error of a statement that was not parsed, in DuckDB's own words."""
    parse(statement.sql)


def _select(sql: str) -> Classified | None:
    """The one SELECT of a text that can be nothing else; None where only the parser can tell."""
    found = tokens(sql)
    words = found.masked
    different = found.different
    if not words or words[0] not in _SELECTS or not _OTHERS.isdisjoint(different) or "\0" in sql:
        return None
    if not sql.isascii() and not all(map(str.isascii, words)):
        return None  # DuckDB's parser takes some characters for spaces, its tokenizer does not
    if ";" in different:
        end = words.index(";")
        if set(words[end:]) != {";"}:
            return None
        found = found.before(end)
    return _looked_at(Classified(found.sql, "SELECT"), found)


def _looked_at(statement: Classified, found: Tokens) -> Classified:
    """Find out what every submission needs, with the tokens at hand."""
    held = vars(statement)
    held["tokens"] = found
    needed = (statement.names, statement.template, statement.has_parameters, statement.reads)
    del held["tokens"], needed
    statement.forget_words()
    return statement


def unquoted(word: str) -> str:
    """A name, or the text of a literal.

    >>> unquoted('"a ""b"'), unquoted("'orders'"), unquoted("orders")
    ('a "b', 'orders', 'orders')
    """
    for quote in ('"', "'"):
        if len(word) > 1 and word[0] == word[-1] == quote:
            return word[1:-1].replace(quote * 2, quote)
    return word


def rest(sql: str, at: int) -> str:
    """The text from a token on."""
    offsets = tokens(sql).offsets
    return sql.encode()[offsets[at] :].decode() if at < len(offsets) else ""


def names_read(statements: Iterable[Classified]) -> frozenset[str] | None:
    """The names that statements may read; None if they may have side effects.

    >>> sorted(names_read(classify("SELECT 1 FROM Orders")))
    ['from', 'orders', 'select']
    """
    found = list(statements)
    if not all(statement.reads for statement in found):
        return None
    return all_names(found)


def all_names(statements: Sequence[Classified]) -> frozenset[str]:
    """Every word of some statements that may be a name."""
    if len(statements) == 1:
        return statements[0].names
    return frozenset().union(*(statement.names for statement in statements))


def copies_to(statement: Classified) -> bool:
    """Whether a COPY writes files.

    >>> copies_to(classify("COPY t TO 'a.csv'")[0]), copies_to(classify("COPY t FROM 'a.csv'")[0])
    (True, False)
    """
    return direction(statement.words) != "from"


def direction(words: tuple[str, ...]) -> str:
    """Where a COPY copies: the first FROM or TO outside of parentheses."""
    depth = 0
    for word in words:
        depth += (word == "(") - (word == ")")
        if depth == 0 and word in ("from", "to"):
            return word
    return ""


def target_words(words: tuple[str, ...]) -> int:
    """How many words of a statement that changes rows come before the end of its target."""
    skipped = ("insert", "or", "replace", "ignore", "into", "update", "delete", "from", "merge")
    for place, word in enumerate(words):
        if word not in (*skipped, "truncate", "table", "copy"):
            while words[place + 1 : place + 2] == (".",):
                place += 2
            return place + 1
    return len(words)
