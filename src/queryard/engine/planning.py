"""What DuckDB would do with a statement: its plan, asked for without running anything.

Plans are made on a small instance of their own with the files of the catalog as views, so that
neither slots nor the memory of queries are needed. It is opened when first used.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from queryard.core.errors import QueryardError
from queryard.estimate.prices import Features
from queryard.sql.catalog import Catalog
from queryard.sql.catalog.model import Table

from .describing import bound_rows
from .errors import is_syntax_error
from .instances.instance import Connection
from .instances.small_instance import SmallInstance, no_seal
from .plans.features import PlanAmounts
from .plans.tables import TableFacts
from .plans.tree import PlanNames, root_of
from .sealing.access import Seal
from .syntax.aliases import aliases
from .syntax.classify import Classified, check_syntax
from .syntax.remembered import Remembered
from .syntax.written import refuse_written

Parameters = Sequence[Any] | Mapping[str, Any]
_State = tuple[tuple[Table, int], ...]
# Tables that no other instance than the session's can read.
_ELSEWHERE = ("frame", "database")
# So many characters of DuckDB's plans are kept.
DOCUMENTS = 2_000_000


class Planner:
    """Plans of read-only statements over files; from any thread, one at a time.

    With a `seal` nothing else is opened, whatever the statements name.
    """

    def __init__(self, catalog: Catalog, seal: Callable[[], Seal | None] = no_seal) -> None:
        self._catalog = catalog
        self._lock = threading.Lock()
        self._place = SmallInstance(catalog, seal)
        self._closed = False
        self._facts: dict[str, tuple[Table, int, TableFacts]] = {}
        # By text and parameters: the tables and what was known of them, and what was found.
        self._plans: Remembered[tuple[str, str], tuple[_State, Features]] = Remembered()
        # By text and parameters: the tables, DuckDB's plan as text, and what planning took.
        self._documents: Remembered[tuple[str, str], tuple[tuple[Table, ...], str, float]] = (
            Remembered(most=DOCUMENTS, longest=DOCUMENTS)
        )
        # What was found of the last statement of each template; None where there is no plan.
        self._latest: Remembered[str, tuple[_State, Features | None]] = Remembered()

    def known(self, statement: Classified, parameters: Parameters = ()) -> Features | None:
        """The result for the same statement, if it was asked for and no file has changed."""
        held = self._plans.get(_asked(statement, parameters))
        if held is None or held[0] != self._state(self._tables(statement.names)):
            return None
        return held[1]

    def alike(self, statement: Classified) -> Features | None:
        """The last result for a statement that may have other literals."""
        held = self._latest.get(statement.template)
        if held is None or held[0] != self._state(self._tables(statement.names)):
            return None
        return held[1]

    def features(self, statement: Classified, parameters: Parameters = ()) -> Features | None:
        """What a statement does; None if it cannot be planned over files alone.

        A syntax error is raised: no parser may have seen the statement before.
        """
        if statement.kind != "SELECT" or not statement.reads:
            return None
        tables = self._tables(statement.names)
        if any(table.kind in _ELSEWHERE for table in tables.values()):
            return None
        state = self._state(tables)
        with self._lock:
            asked = _asked(statement, parameters)
            held = self._plans.get(asked)
            if held is not None and held[0] == state:
                return held[1]
            latest = self._latest.get(statement.template)
            hopeless = latest is not None and latest == (state, None)
            if self._closed or hopeless:
                return None
            try:
                found = self._look(statement, parameters, tables)
            except QueryardError as error:
                if is_syntax_error(error):
                    check_syntax(statement)  # the same without EXPLAIN before it
                found = None
            if found is not None:
                self._plans.put(asked, sum(map(len, asked)), (state, found))
            # One statement that cannot be planned does not speak against others.
            if found is not None or latest is None or latest[0] != state:
                self._latest.put(statement.template, len(statement.template), (state, found))
            return found

    def _tables(self, names: Set[str]) -> dict[str, Table]:
        """The tables a statement may mean."""
        return {
            key: table
            for key, table in self._catalog.tables.items()
            if table.name.lower() in names
            and all(part in names for part in table.schema.lower().split(".") if part)
        }

    def _state(self, tables: Mapping[str, Table]) -> _State:
        return tuple((table, self._catalog.learned(key)) for key, table in tables.items())

    def _look(
        self, statement: Classified, parameters: Parameters, tables: Mapping[str, Table]
    ) -> Features | None:
        refuse_written(statement, parameters)
        connection = self._place.ready(statement.names)
        asked, read = _asked(statement, parameters), tuple(tables.values())
        held = self._documents.get(asked)
        # What was learnt of the tables since is nothing to DuckDB.
        if held is None or held[0] != read:
            began_s = time.thread_time()
            text = _explain(connection, statement.sql, parameters)
            held = read, text, time.thread_time() - began_s
            self._documents.put(asked, len(text) + sum(map(len, asked)), held)
        _, text, planning_s = held
        root = root_of(json.loads(text))
        if root is None:
            return None
        return replace(self._amounts(statement, root, tables), planning_s=planning_s)

    def amounts(self, statement: Classified, root: Mapping[str, Any]) -> Features:
        """What a plan does that DuckDB has made of a statement elsewhere."""
        tables = self._tables(statement.names)
        with self._lock:
            return self._amounts(statement, root, tables)

    def _amounts(
        self, statement: Classified, root: Mapping[str, Any], tables: Mapping[str, Table]
    ) -> Features:
        names = PlanNames(self._catalog, statement.names)
        facts = {
            key: self._facts_of(table) for key, table in tables.items() if key in names.columns
        }
        meanings = aliases(statement.sql)
        return PlanAmounts(names, facts, self._catalog.judge, meanings).of(root)

    def _facts_of(self, table: Table) -> TableFacts:
        held = self._facts.get(table.key)
        learned = self._catalog.learned(table.key)
        if held is None or held[0] is not table or held[1] != learned:
            held = (table, learned, TableFacts(table, self._catalog.statistics(table.key)))
            self._facts[table.key] = held
        return held[2]

    def close(self) -> None:
        """Free the instance; nothing is planned any more."""
        with self._lock:
            self._closed = True
            self._place.close()


def _asked(statement: Classified, parameters: Parameters) -> tuple[str, str]:
    """A statement with its literals, whether they stand in it or come beside it."""
    return statement.sql, repr(parameters) if parameters and statement.has_parameters else ""


def _explain(connection: Connection, sql: str, parameters: Parameters) -> str:
    """DuckDB's plan, as it writes it."""
    asked = f"EXPLAIN (FORMAT json)\n{sql}"
    # A prepared statement is planned when it is prepared, and again when it is run.
    rows = bound_rows(connection, asked, parameters) if parameters else connection.rows(asked)
    written = {row["explain_key"]: row["explain_value"] for row in rows}
    return str(written.get("physical_plan", "[]"))
