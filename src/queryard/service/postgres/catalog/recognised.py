"""Which statements ask for the catalogs or the session, so that no data is needed for them."""

from __future__ import annotations

import re
from collections.abc import Set

from sqlglot import exp

from queryard.engine.remembered import Remembered

from .answers import UnknownCatalogQuery
from .functions import functions
from .parsing import parse, tokens_of
from .rewriting import folded

# Cheap: nearly all statements that ask for data hold none of these.
_TRIGGER = re.compile(
    r"\bpg_|\binformation_schema\b|::\s*reg|\bas\s+reg|\bcurrent_|\bsession_user\b|\bversion\s*\(|"
    r"\bset_config\s*\(|\bto_reg|\bformat_type\s*\(|\bhas_\w+_privilege\s*\(|_description\s*\(|"
    r"\binet_\w+\s*\(|\bselect\s+user\b|\bquote_ident\s*\(|\bgetdatabaseencoding\b|\bjson_build_|"
    r"\bparse_ident\s*\(|\bgetpgusername\b",
    re.IGNORECASE,
)
_QUERY = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/|\()*(?:select|with|values|table)\b", re.I | re.S)
_SCHEMAS = ("pg_catalog", "information_schema")


class Recogniser:
    """Tells catalog queries from others; `tables` are the names of tables with data."""

    def __init__(self, tables: Set[str]) -> None:
        self._tables = tables
        self._known: Remembered[str, bool] = Remembered()

    def concerns(self, sql: str) -> bool:
        """Whether a statement asks for the catalogs or the session, and not for data.

        One that reads the catalogs and is no query, or reads data as well, concerns them, too.

        >>> recogniser = Recogniser({"orders"})
        >>> recogniser.concerns("SELECT relname FROM pg_class")
        True
        >>> recogniser.concerns("SELECT version()"), recogniser.concerns("SELECT 1")
        (True, False)
        >>> recogniser.concerns("SELECT 'pg_class', current_user FROM orders")
        False
        """
        if _TRIGGER.search(sql) is None:
            return False
        found = self._known.get(sql)
        if found is None:
            found = self._look(sql)
            self._known.put(sql, len(sql), found)
        return found

    def _look(self, sql: str) -> bool:
        if _QUERY.match(sql) is None:
            # Such a statement is not answered, but DuckDB must not answer it by its own catalogs.
            return self._names_catalog(sql)
        try:
            tree = parse(sql)
        except UnknownCatalogQuery:
            return self._names_catalog(sql)
        queries = {folded(part.args["alias"].this) for part in tree.find_all(exp.CTE)}
        relations = [
            (folded(table.args.get("db")), folded(table.this))
            for table in tree.find_all(exp.Table)
            if isinstance(table.this, exp.Identifier)
        ]
        others = [(schema, name) for schema, name in relations if schema or name not in queries]
        if any(self._is_catalog(schema, name) for schema, name in others):
            return True
        if others:
            return False
        return any(_asks_session(node) for node in tree.walk())

    def _names_catalog(self, sql: str) -> bool:
        """Whether a statement reads from a catalog, as far as its words tell."""
        # The tokenizer takes what follows some first words (EXPLAIN …) for one text.
        _, _, rest = sql.strip().partition(" ")
        words = [token.text.lower() for part in (sql, rest) for token in tokens_of(part)]
        for word, first, dot in zip(words, words[1:], [*words[2:], ""], strict=False):
            if word in ("from", "join") and (
                (first in _SCHEMAS and dot == ".") or (dot != "." and self._is_catalog("", first))
            ):
                return True
        return False

    def _is_catalog(self, schema: str, name: str) -> bool:
        if schema:
            return schema in _SCHEMAS
        return name.startswith("pg_") and name not in self._tables


def _asks_session(node: exp.Expr) -> bool:
    """Whether DuckDB would answer a part of a query without tables otherwise than PostgreSQL."""
    if isinstance(
        node,
        exp.CurrentUser
        | exp.SessionUser
        | exp.CurrentCatalog
        | exp.CurrentSchema
        | exp.CurrentRole
        | exp.ObjectIdentifier,
    ):
        return True
    if isinstance(node, exp.Column):
        return not node.args.get("table") and folded(node.this) in ("user", "current_role")
    if isinstance(node, exp.DataType):
        return node.sql(dialect="postgres").lower().startswith("pg_catalog.")
    if not isinstance(node, exp.Anonymous):
        return False
    name = str(node.this).lower()
    return (
        name.startswith(_SESSION_PREFIXES)
        or (
            name in functions()
            and any(
                "{" + value + "}" in meaning.meaning
                for meaning in functions()[name].values()
                for value in _SESSION_VALUES
            )
        )
        or name in _SESSION_FUNCTIONS
    )


_SESSION_PREFIXES = ("pg_", "to_reg", "has_", "inet_")
_SESSION_VALUES = ("user", "database", "schema", "version", "pid", "names")
_SESSION_FUNCTIONS = frozenset(
    {
        "_pg_expandarray",
        "col_description",
        "format_type",
        "getdatabaseencoding",
        "obj_description",
        "parse_ident",
        "quote_ident",
        "set_config",
        "shobj_description",
    }
)
