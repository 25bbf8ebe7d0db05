"""From text to sqlglot's tree, with the certainty that DuckDB reads the same."""

from __future__ import annotations

from collections.abc import Sequence

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from .errors import NotStageable
from .expressions import text
from .gate import check
from .oracle import Oracle, function_kinds
from .same_reading import normalised


def read_statement(sql: str, oracle: Oracle) -> exp.Query:
    """sqlglot's tree of a statement that may be split; `NotStageable` says why it may not.

    >>> with Oracle() as oracle:
    ...     read_statement("select 1 + 2 as three", oracle).sql("duckdb")
    'SELECT 1 + 2 AS three'
    """
    tree = oracle.serialise(sql)
    if tree["error"]:
        raise NotStageable(f"DuckDB says: {tree['error_message']}")
    kinds = function_kinds()
    check(tree, kinds)
    try:
        statement = _only(sqlglot.parse(sql, dialect="duckdb"))
        again = oracle.serialise(text(statement))
    except SqlglotError as error:
        raise NotStageable(f"sqlglot cannot read it: {str(error).splitlines()[0]}") from error
    if normalised(again, kinds) != normalised(tree, kinds):
        raise NotStageable("sqlglot reads the statement differently from DuckDB")
    if not isinstance(statement, exp.Query):
        raise NotStageable("only queries are split")
    return statement


def _only(found: Sequence[exp.Expr | None]) -> exp.Expr:
    """The one statement of a text; a comment behind its end is none."""
    statements = [item for item in found if item and not isinstance(item, exp.Semicolon)]
    if len(statements) != 1:
        raise NotStageable("only single statements are split")
    return statements[0]
