"""Which statements ask for the catalogs or the session, so that no data is needed for them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set

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
_ENDS = frozenset(
    {
        *("except", "fetch", "group", "having", "intersect", "limit", "offset", "order", "qualify"),
        *("returning", "select", "set", "union", "values", "where", "window"),
    }
)
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
        if others:
            return False
        return any(_asks_session(node) for node in tree.walk())

    def _names_catalog(self, sql: str) -> bool:
        """Whether a statement reads from a catalog, as far as its words tell."""
        for words in _words(sql):
            for name in named_relations(words):
                *_, schema, last = "", *(part.strip('"') for part in name)
                if self._is_catalog(schema, last):
                    return True
        return False

    def _is_catalog(self, schema: str, name: str) -> bool:
        if schema:
            return schema in _SCHEMAS
        return name.startswith("pg_") and name not in self._tables


def _words(sql: str) -> Iterator[list[str]]:
    """The words of a text in lower case: names in quotes keep these, and texts are ''."""
    # The tokenizer takes what follows some first words (EXPLAIN …) for one text.
    _, _, rest = sql.strip().partition(" ")
    for part in (sql, rest):
        yield [_word(part[token.start : token.end + 1], token.text) for token in tokens_of(part)]


def _word(source: str, text: str) -> str:
    is_plain = source.lower() == text.lower() or source.startswith('"')
    return source.lower() if is_plain else "''"


def named_relations(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The names in FROM and its kin, each by its parts, as far as words tell.

    >>> sql = "delete from a using b . c , d where x in ( select f ( y , z ) from e )"
    >>> list(named_relations(sql.split()))
    [('a',), ('b', 'c'), ('d',), ('e',)]
    """
    lists = [False]  # at each depth of parentheses, whether a comma is followed by a name
    is_next = False
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        if word == "(":
            lists.append(False)  # a name may follow: FROM (a JOIN b)
        elif word == ")":
            lists = lists[:-1] or [False]
            is_next = False
        elif word == "join" or _begins_list(words, place - 1):
            lists[-1] = is_next = True
        elif word == ",":
            is_next = lists[-1]
        elif word in _ENDS:
            lists[-1] = is_next = False
        elif is_next and word not in ("lateral", "only"):
            name = [word]
            while words[place : place + 1] == ["."] and place + 1 < len(words):
                name.append(words[place + 1])
                place += 2
            yield tuple(name)
            is_next = False


def _begins_list(words: Sequence[str], place: int) -> bool:
    """Whether names follow a word: not after IS DISTINCT FROM, nor where USING names columns."""
    if words[place] == "from":
        return place == 0 or words[place - 1] != "distinct"
    return words[place] == "using" and words[place + 1 : place + 2] != ["("]


def session_value(sql: str) -> str:
    """The first value of the session that a text asks for; empty if there is none.

    >>> session_value("UPDATE orders SET by = current_user")
    'current_user'
    >>> session_value("SELECT 'version()', t.current_user, x AS version FROM t")
    ''
    """
    for words in _words(sql):
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
