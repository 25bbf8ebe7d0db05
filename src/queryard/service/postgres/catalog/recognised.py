"""Which statements ask for the catalogs or the session, so that no data is needed for them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

from sqlglot import exp

from queryard.engine.syntax.remembered import Remembered

from .answers import UnknownCatalogQuery
from .functions import functions
from .parsing import parse
from .rewriting import folded
from .wording import looked_at, named_relations, words_of

# Cheap: nearly all statements that ask for data hold none of these.
_TRIGGER = re.compile(
    r"\bpg_|\binformation_schema\b|::\s*reg|\bas\s+reg|\bcurrent_|\bsession_user\b|\bversion\s*\(|"
    r"\bset_config\s*\(|\bto_reg|\bformat_type\s*\(|\bhas_\w+_privilege\s*\(|_description\s*\(|"
    r"\binet_\w+\s*\(|\bselect\s+user\b|\bquote_ident\s*\(|\bgetdatabaseencoding\b|\bjson_build_|"
    r"\bparse_ident\s*\(|\bgetpgusername\b",
    re.IGNORECASE,
)
_QUERY = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/|\()*(?:select|with|values|table)\b", re.I | re.S)
# What looks at a relation as a whole: its name follows the word, or is in a text.
_WHOLE = re.compile(r"\b(?:summar|desc|show|table|histogram|(?:un)?pivot)", re.IGNORECASE)
_TEXTS = re.compile(r"(?:\b|_)(table_info|show)\s*\(\s*'([^']*)'", re.IGNORECASE)
_SCHEMAS = ("pg_catalog", "information_schema")
# What DuckDB has as well, with values of its own. `user` is not here: columns are called so.
_SESSION_WORDS = frozenset(
    {"current_catalog", "current_role", "current_schema", "current_user", "session_user"}
)
_SESSION_CALLS = frozenset({"current_database", "current_schemas", "version"})


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
        >>> recogniser.concerns("SELECT 'pg_class', 'current_user' FROM orders")
        False

        What would be answered by DuckDB's session, and not by the client's, is refused.
        """
        if _TRIGGER.search(sql) is None:
            return False
        found = self._known.get(sql)
        if found is None:
            found = self._look(sql)
            self._known.put(sql, len(sql), found)
        return found

    def _look(self, sql: str) -> bool:
        if self._asks(sql):
            return True
        if word := session_value(sql):
            raise UnknownCatalogQuery(
                f"{word} beside data is not possible, since DuckDB would give a value of its own; "
                f"ask for it by itself (SELECT {word}), and write its value, or a parameter. "
                f'A column of that name is written in quotes: "{word.removesuffix("()")}"'
            )
        return False

    def _asks(self, sql: str) -> bool:
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
        if self._looks_at_catalog(sql):
            return True
        if others:
            return False
        return any(_asks_session(node) for node in tree.walk())

    def _names_catalog(self, sql: str) -> bool:
        """Whether a statement reads from a catalog, as far as its words tell."""
        named = (name for words in words_of(sql) for name in named_relations(words))
        found = any(self._is_catalog(*_last_two(name)) for name in named)
        return found or bool(self._looks_at_catalog(sql))

    def _looks_at_catalog(self, sql: str) -> str:
        """The word by which a statement looks at a catalog as a whole; empty if it does not."""
        found = (word for word, name in _looked_at(sql) if self._is_catalog(*_last_two(name)))
        return next(found, "")

    def check(self, sql: str) -> None:
        """Refuse what looks at a catalog as a whole, and is not PostgreSQL's."""
        word = self._looks_at_catalog(sql)
        if word not in ("", "table", "desc"):
            raise UnknownCatalogQuery(
                f"{word.upper()} of a catalog is not possible; ask for its columns by SELECT"
            )

    def _is_catalog(self, schema: str, name: str) -> bool:
        if schema:
            return schema in _SCHEMAS
        return name.startswith("pg_") and name not in self._tables


def _looked_at(sql: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What a statement looks at as a whole, by words or in texts: by which word, and its name."""
    for found in _TEXTS.finditer(sql):
        yield found.group(1).lower(), tuple(found.group(2).lower().split("."))
    if _WHOLE.search(sql):
        for words in words_of(sql):
            yield from looked_at(words)


def _last_two(name: tuple[str, ...]) -> tuple[str, str]:
    """Schema and name, of a name in parts; the schema is empty if there is none."""
    *_, schema, last = "", *(part.strip('"') for part in name)
    return schema, last


def session_value(sql: str) -> str:
    """The first value of the session that a text asks for; empty if there is none.

    >>> session_value("UPDATE orders SET by = current_user")
    'current_user'
    >>> session_value("SELECT 'version()', t.current_user, x AS version FROM t")
    ''
    """
    for words in words_of(sql):
        before = ["", "", *words]
        for schema, dot, word, following in zip(
            before, before[1:], words, [*words[1:], ""], strict=False
        ):
            if dot == "as" or (dot == "." and schema != "pg_catalog"):
                continue
            if word in _SESSION_WORDS:
                return word
            if word in _SESSION_CALLS and following == "(":
                return f"{word}()"
    return ""


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
_SESSION_VALUES = ("user", "database", "schema", "schemas", "version", "pid", "names")
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
