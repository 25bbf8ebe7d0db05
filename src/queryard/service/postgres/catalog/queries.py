"""Catalog queries answered: which they are, what they give, of which types."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from queryard.engine.instances.catalog_views import FactsFailed
from queryard.engine.syntax.redaction import without_literals
from queryard.engine.syntax.remembered import Remembered

from .answers import (
    CatalogAnswer,
    DataBesideCatalogs,
    Described,
    UnknownCatalogQuery,
    UnknownRelation,
)
from .facts import CatalogFacts
from .recognised import Recogniser
from .selects import Plan, planned
from .settings import DEFAULTS, NOT_SETTINGS, VERSION
from .typed import python_value, type_by_oid
from .types import REGISTERED, element_of, oid_of, type_of_values
from .world import World

_log = logging.getLogger(__name__)

_SQLSTATES = {
    "Conversion Error": "22P02",
    "must appear in the GROUP BY": "42803",
    "ORDER term out of range": "42P10",
}
_LOGGED = 10_000  # how many characters of a query the log keeps
Told = TypeVar("Told")
_UNSIGNED = ("oid", "xid", "cid")


class CatalogQueries:
    """The catalogs of one client, and the answers to its questions on them. Any thread may ask.

    One is made for each user and state of the granted catalog; nothing is put into the small
    instance of DuckDB before it is asked for.
    """

    def __init__(self, facts: CatalogFacts, *, redacts: bool = False) -> None:
        """If it `redacts`, the log has no values of queries, and no errors, which may have some."""
        self._redacts = redacts
        self.facts = facts
        self._tables = {table.name.lower() for table in facts.tables}
        self._recogniser = Recogniser(self._tables)
        self._world = World(facts)
        self._plans: Remembered[tuple[str, tuple[int, ...]], tuple[Plan, tuple[str, ...]]] = (
            Remembered()
        )

    def concerns(self, sql: str) -> bool:
        """Whether a statement asks for the catalogs or the session, and not for data."""
        return self._recogniser.concerns(sql)

    def answer(
        self, sql: str, parameters: Sequence[Any] = (), session: Mapping[str, str] = {}
    ) -> CatalogAnswer:
        """The rows of a catalog query.

        `parameters` are the values of $1, $2 … as Python has them. `session` has the settings of
        the session by name (`server_version`, `search_path` …), and what is not a setting: `user`,
        `database`, `pid`, `version`. What it does not name has the values of `DEFAULTS`.
        """
        return self._told(sql, lambda: self._answer(sql, parameters, session))

    def describe(self, sql: str, parameters: Sequence[int] | None = None) -> Described:
        """The columns and parameters of a catalog query, without running it.

        `parameters` are the OIDs that the client gave; 0, or one that is missing, is not known.
        """
        return self._told(sql, lambda: self._described(sql, tuple(parameters or ())))

    def close(self) -> None:
        """Give the memory back."""
        self._world.close()

    # ----

    def _told(self, sql: str, answer: Callable[[], Told]) -> Told:
        """An answer, or an error that the log keeps with the query: it may be one to be added."""
        try:
            return answer()
        except FactsFailed as error:
            self._keep("not understood", error, sql)
            state = next((s for words, s in _SQLSTATES.items() if words in str(error)), "0A000")
            raise UnknownCatalogQuery(
                f"the catalog query is not understood: {error}", state
            ) from None
        except RecursionError as error:
            self._keep("nested too deeply", error, sql)
            raise UnknownCatalogQuery("the query is nested too deeply", "54001") from None
        except UnknownCatalogQuery as error:
            self._keep(f"refused ({error.sqlstate})", error, sql)
            raise

    def _keep(self, what: str, error: Exception, sql: str) -> None:
        if self._redacts:
            told, shown = type(error).__name__, without_literals(sql)
        else:
            told, shown = str(error), sql
        _log.warning("catalog query %s: %s; the query: %s", what, told, shown[:_LOGGED])

    def _plan(self, sql: str, given: tuple[int, ...]) -> tuple[Plan, tuple[str, ...]]:
        """The plan of a query, with the types of its columns."""
        key = (sql, given)
        if (known := self._plans.get(key)) is not None:
            return known
        self._recogniser.check(sql)
        names = {number: type_by_oid(oid) for number, oid in enumerate(given, 1) if oid}
        known_types = {number: name for number, name in names.items() if name is not None}
        try:
            plan = planned(sql, known_types)
        except UnknownRelation as error:
            if error.name.lower() in self._tables:
                raise DataBesideCatalogs(error.name) from None
            raise
        for output in plan.outputs:
            if output.type is not None and output.type.startswith("record("):
                raise UnknownCatalogQuery(f'column "{output.name}" is a record, which is not sent')
        found = (plan, self._types(plan))
        self._plans.put(key, len(sql), found)
        return found

    def _types(self, plan: Plan) -> tuple[str, ...]:
        """The types of the columns of a plan; DuckDB is asked only for those that are not known."""
        if all(output.type is not None for output in plan.outputs):
            return tuple(output.type or "" for output in plan.outputs)
        held = self._world.types(plan.statement, self._values(plan, None, {}), plan.relations)
        return tuple(
            output.type or type_of_values(type_)
            for output, type_ in zip(plan.outputs, held, strict=True)
        )

    def _described(self, sql: str, given: tuple[int, ...]) -> Described:
        plan, types = self._plan(sql, given)
        # A name is sent as text, whatever it is a name of.
        parameters = [oid_of("text" if n in REGISTERED else n) for n in plan.parameters]
        for place, oid in enumerate(given[: len(parameters)]):
            parameters[place] = oid or parameters[place]
        return Described(
            tuple(output.name for output in plan.outputs),
            tuple(oid_of(name) for name in types),
            tuple(parameters),
        )

    def _answer(
        self, sql: str, parameters: Sequence[Any], session: Mapping[str, str]
    ) -> CatalogAnswer:
        plan, types = self._plan(sql, ())
        if len(parameters) < len(plan.parameters):
            raise UnknownCatalogQuery(
                f"the query has {len(plan.parameters)} parameters, {len(parameters)} are given",
                "08P01",
            )
        values = self._values(plan, parameters, session)
        rows = self._world.rows(plan.statement, values, plan.relations)
        settings: tuple[tuple[str, str, bool], ...] = ()
        if plan.settings is not None:
            (given,) = self._world.rows(plan.settings, values, ()).to_pylist(
                maps_as_pydicts="strict"
            )
            flat = list(given.values())
            settings = tuple(
                (str(flat[place]).lower(), str(flat[place + 1]), bool(flat[place + 2]))
                for place in range(0, len(flat), 3)
            )
        columns = [
            self._sent(column, name) for column, name in zip(rows.columns, types, strict=True)
        ]
        names = tuple(output.name for output in plan.outputs)
        return CatalogAnswer(
            pa.table(columns, names=list(names)),
            names,
            tuple(oid_of(name) for name in types),
            settings,
        )

    def _sent(self, column: Any, name: str) -> Any:
        """A column as it is told to the client: numbers of their size, names for `regclass`."""
        if name in REGISTERED:
            texts = [self._world.text_of(value, name) for value in column.to_pylist()]
            return pa.array(texts, pa.string())
        if name == "anyarray":  # only ever NULL
            return pa.nulls(len(column), pa.string())
        if name in _UNSIGNED:
            return column.cast(pa.uint32())
        if element_of(name) in _UNSIGNED:
            return column.cast(pa.list_(pa.uint32()))
        return column

    def _values(
        self, plan: Plan, parameters: Sequence[Any] | None, session: Mapping[str, str]
    ) -> dict[str, Any]:
        """The values of all that a plan may need; parameters that are not known yet are None."""
        facts = self.facts
        settings = DEFAULTS | {"search_path": ", ".join(facts.searched)}
        settings |= {
            name.lower(): value
            for name, value in session.items()
            if name.lower() not in NOT_SETTINGS
        }
        version = session.get("server_version", VERSION)
        values: dict[str, Any] = {
            "s_user": session.get("user", facts.user),
            "s_database": session.get("database", facts.database),
            "s_schema": facts.searched[0] if facts.searched else None,
            "s_schemas": list(facts.searched),
            "s_pid": int(session.get("pid", 0)),
            "s_version": session.get("version", f"PostgreSQL {version} (Queryard)"),
            "s_names": list(settings),
            "s_values": list(settings.values()),
        }
        for place, name in enumerate(plan.parameters):
            value = None if parameters is None else python_value(parameters[place], name)
            values[f"p{place + 1}"] = value
        return values
