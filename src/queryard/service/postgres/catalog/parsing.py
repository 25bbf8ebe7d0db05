"""Catalog queries read: PostgreSQL's SQL to a tree of sqlglot's, in which all functions keep their
names."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import Token, TokenType

from .answers import UnknownCatalogQuery
from .types import array_of, type_named


class CatalogPostgres(Postgres):
    """PostgreSQL's dialect without sqlglot's knowledge of functions: `functions` knows them."""

    INDEX_OFFSET = 0  # subscripts stay as they are written

    class Parser(PostgresParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parser
            for name, parser in PostgresParser.FUNCTION_PARSERS.items()
            if name in ("CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM")
        }


def parse(sql: str) -> exp.Query:
    """The one query of a text.

    >>> parse("SELECT oid FROM pg_class").sql()
    'SELECT oid FROM pg_class'
    """
    try:
        found = [tree for tree in CatalogPostgres().parse(_readable(sql)) if tree is not None]
    except SqlglotError as error:
        reason = str(error).splitlines()[0]
        raise UnknownCatalogQuery(f"the catalog query cannot be read: {reason}", "42601") from None
    except RecursionError:
        raise UnknownCatalogQuery("the query is nested too deeply", "54001") from None
    if len(found) != 1 or not isinstance(found[0], exp.Query | exp.Values):
        raise UnknownCatalogQuery("only one SELECT at a time can ask for the catalogs")
    return found[0]  # type: ignore[return-value]  # VALUES is treated as a query


def tokens_of(sql: str) -> list[Token]:
    """The tokens of a text; none if it cannot be cut into tokens."""
    try:
        return list(CatalogPostgres().tokenize(sql))
    except SqlglotError:
        return []


def _readable(sql: str) -> str:
    """Types of arrays by their own names (`_oid` for `oid[]`): sqlglot knows only some of them.

    >>> _readable("SELECT $1::oid[], x::pg_catalog.int2[], '::oid[]'")
    "SELECT $1::_oid, x::_int2, '::oid[]'"
    """
    tokens = tokens_of(sql)
    made: list[str] = []
    end = 0
    for place in range(len(tokens)):
        if tokens[place].token_type not in (TokenType.DCOLON, TokenType.ALIAS):
            continue
        first = last = place + 1
        if _texts(tokens, first, 2) == ["pg_catalog", "."]:
            last += 2
        if _texts(tokens, last + 1, 2) != ["[", "]"]:
            continue
        name = sql[tokens[last].start : tokens[last].end + 1]
        known = type_named(name)
        if known is None:
            continue
        made += (sql[end : tokens[first].start], array_of(known))
        end = tokens[last + 2].end + 1
    return "".join((*made, sql[end:]))


def _texts(tokens: list[Token], start: int, count: int) -> list[str]:
    return [token.text.lower() for token in tokens[start : start + count]]
