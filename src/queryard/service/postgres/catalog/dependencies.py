"""Which tables the query of a view reads."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError


def tables_in(sql: str) -> tuple[tuple[str, ...], ...]:
    """The names of tables in a statement of DuckDB, each in its parts, without those of WITH.

    A statement that sqlglot cannot read names none.

    >>> tables_in("CREATE VIEW v AS WITH x AS (FROM a) SELECT * FROM x JOIN s.b USING (id)")
    (('a',), ('s', 'b'))
    """
    try:
        tree: exp.Expr = sqlglot.parse_one(sql, dialect="duckdb")
    except SqlglotError:
        return ()
    if isinstance(tree, exp.Create) and tree.expression is not None:
        tree = tree.expression
    queries = {part.alias for part in tree.find_all(exp.CTE)}
    names = {
        tuple(part.name for part in table.parts)
        for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier)
    }
    return tuple(sorted(name for name in names if len(name) > 1 or name[0] not in queries))
