"""What a person holds: a session on data, to which queries are put."""

from __future__ import annotations

import contextlib
import math
import os
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from queryard.core.errors import QueryardError, unknown_name
from queryard.core.model import Node, Tenant
from queryard.engine.classify import Classified, check_allowed, classify
from queryard.engine.functions import Style
from queryard.engine.native import Parameters
from queryard.engine.temp import TempSpace
from queryard.policies import for_tenants, resolve_profile
from queryard.results.answer import Answer
from queryard.sim.forecast import Forecast
from queryard.sql.catalog import Catalog, CatalogError, open_catalog
from queryard.sql.statistics.store import cache_folder

from .amounts import as_seconds, as_time_left
from .asked import Asked, Plan, checked_plan, checked_tenant
from .control import Control, control_of
from .dispatch import Dispatch
from .gatekeeper import Gatekeeper
from .handle import Handle
from .limits import Limits, read_limits
from .local_nodes import nodes_of
from .options import QueryOptions, check_options
from .outlook import Outlook, outlook
from .overlook import SessionReport
from .record import QueryView, Record
from .recording import Recorder, history_file, kept_in, read_retention
from .resources import divide, kept_bytes, memory_budget, reservation, slot_range
from .settings import session_settings, sized
from .tenants import Tenants, read_tenants

if TYPE_CHECKING:
    from queryard.results.explanation import Explanation

FRESH_S = 1.0
# Chosen by measurement: see ARCHITECTURE.
DEFAULT_PROFILE = "marshal"


def connect(
    where: str | Path | None = None,
    *,
    tables: Mapping[str, object] | None = None,
    slots: int | tuple[int, int] | None = None,
    memory: int | str | None = None,
    write: bool = False,
    temp: str | Path | None = None,
    plan: Plan | None = None,
    profile: str | Mapping[str, Any] | None = None,
    tenants: Mapping[str, Any] | Sequence[Tenant] | None = None,
    limits: Mapping[str, Any] | None = None,
    history: bool | str | Path | None = None,
    retention: Mapping[str, Any] | None = None,
) -> Session:
    """Open a session on data.

    `where` is a folder of data files, a catalog file (TOML), one data file or a DuckDB database;
    `tables` adds tables by name: paths, patterns, frames. `slots` is how many threads work at most
    (all cores), or the least and the most of them, `memory` the bytes all queries together may use
    (70 % of the machine's). Without `write=True` nothing outside the session is ever changed.

    `plan` is how queries run unless they say otherwise, `profile` the policy by which they share
    the slots (`queryard policies`). `tenants` have shares and limits by name, as
    `{"web": {"weight": 3, "guarantee": 0.25, "limits": {"waiting": 100}}}`; `limits` are those of
    all together: `waiting` queries, the `wait` to be expected, the `memory` of one query. What
    happens is recorded beside the data, or in the file `history`; False records nothing. The record
    goes back 30 days and has up to about 1 GB, unless `retention` says otherwise, as
    `{"days": 7, "size": "200 MB"}`.

    A catalog file may hold all of these under `[session]`, `[tenants]` and `[limits]`; what is
    given here counts first.
    """
    catalog = open_catalog(where, tables)
    given = {
        "slots": slots,
        "memory": memory,
        "temp": temp,
        "plan": plan,
        "profile": profile,
        "tenants": tenants,
        "limits": limits,
        "history": history,
        "retention": retention,
    }
    chosen = {key: value for key, value in given.items() if value is not None}
    return Session(catalog, write=write, **{**session_settings(catalog.settings), **chosen})


class Session:
    """Queries go in by `sql` and `submit`, from any thread; close it, or use it with `with`."""

    def __init__(
        self,
        catalog: Catalog,
        *,
        slots: int | tuple[int, int] | None = None,
        memory: int | str | None = None,
        write: bool = False,
        temp: str | Path | None = None,
        plan: Plan = "native",
        profile: str | Mapping[str, Any] = DEFAULT_PROFILE,
        tenants: Mapping[str, Any] | Sequence[Tenant] | Tenants | None = None,
        limits: Mapping[str, Any] | Limits | None = None,
        history: bool | str | Path | None = None,
        retention: Mapping[str, Any] | None = None,
        nodes: Sequence[Node] | None = None,
    ) -> None:
        """As `connect`; `nodes` stand for unequal machines, each with slots and a speed."""
        self.catalog = catalog
        self._slot_range = slot_range(slots)
        self.memory_bytes = memory_budget(memory)
        self.plan = checked_plan(plan)
        self._writes = write
        budget = divide(self.memory_bytes, catalog, write)
        self._pool_bytes = budget.pool_bytes
        nodes = (
            tuple(nodes)
            if nodes
            else nodes_of(self._slot_range, budget.pool_bytes, kept_bytes(budget.pool_bytes))
        )
        self.slots = sum(node.slots for node in nodes)
        self._tenants = read_tenants(tenants)
        self.profile = self._shared(profile)
        gatekeeper = Gatekeeper(read_limits(limits or {}, "limits"), self._tenants.limits)
        recorder = Recorder(history_file(history, catalog), read_retention(retention))
        kernel = recorder.kernel(self.profile, self.slots, self.memory_bytes)
        self._dispatch = Dispatch(
            catalog, kernel, nodes, budget, TempSpace(temp), write, gatekeeper, recorder
        )
        self._fresh_until = time.monotonic() + FRESH_S
        # Who has no place of its own, or leaves nothing beside the data, is found all the same.
        folder = (None if history is False else kept_in(catalog)) or cache_folder()
        self._control = control_of(folder, recorder.session, weakref.ref(self))
        # Also for a session that its user forgets, and at the end of the program.
        self._finalizer = weakref.finalize(self, _close, os.getpid(), self._dispatch, self._control)

    # --- asking ------------------------------------------------------------------------------

    def sql(self, sql: str, parameters: Parameters = (), **options: Unpack[QueryOptions]) -> Answer:
        """Run a statement and give its answer as soon as its first rows are there.

        Options are those of `submit`. Statements without rows have run when this returns.
        """
        check_options(options, QueryOptions.__annotations__)
        handle = self.submit(sql, parameters, **options)
        try:
            answer = handle.take()
        except BaseException:
            handle.cancel()
            raise
        if handle.leaves_something:
            handle.wait()
        return answer

    def submit(
        self,
        sql: str,
        parameters: Parameters = (),
        *,
        plan: Plan | None = None,
        tenant: str = "default",
        priority: float = 0.0,
        memory: int | str | None = None,
        time_limit: float | str | None = None,
        deadline: float | str | timedelta | datetime | None = None,
    ) -> Handle:
        """Ask for something and go on; the handle tells how far it is.

        What is wrong with the text itself, not allowed or refused by a limit (`Refused`) is raised
        here. `memory` is what the query reserves, `time_limit` (seconds, or a text such as "5 min")
        ends it with an error. By the `deadline` (seconds from now, such a text, or a time) its
        answer is wanted: policies that know deadlines hurry, and it runs on if it is late.
        """
        _check_types(sql, parameters)
        statements = classify(sql)
        for statement in statements:
            check_allowed(statement, self._writes)
        wanted = checked_plan(plan or self.plan)
        if isinstance(priority, bool) or not isinstance(priority, int | float):
            raise QueryardError(f"priority: must be a number, got {priority!r}")
        if not math.isfinite(priority):
            raise QueryardError(f"priority: must be finite, got {priority!r}")
        tenant = checked_tenant(tenant)
        memory_bytes = None if memory is None else reservation(memory, self._pool_bytes)
        left_s = None if deadline is None else as_time_left(deadline, "deadline")
        limit_s = None if time_limit is None else as_seconds(time_limit, "time_limit")
        self._keep_fresh()
        deadline_s = None if left_s is None else self.now() + left_s
        record = self._dispatch.enter(
            Asked(sql, statements, parameters, wanted, tenant, priority, memory_bytes, deadline_s)
        )
        if limit_s is not None:
            written = time_limit if isinstance(time_limit, str) else f"{limit_s:g} s"
            self._dispatch.limit(record, limit_s, written)
        if any(statement.kind == "COPY" for statement in statements):
            self._fresh_until = 0.0  # it may write a table
        return Handle(self, record)

    def explain(
        self,
        sql: str,
        parameters: Parameters = (),
        *,
        analyze: bool = False,
        plan: Plan | None = None,
    ) -> Explanation:
        """How a statement would be run; with `analyze` it is run, for the real figures."""
        from .explanation import explain

        return explain(self, sql, parameters, analyze=analyze, plan=plan)

    def cancel(self, query: str) -> None:
        """Stop a query by its id; unknown and ended ones are left alone."""
        self._dispatch.cancel(query)

    # --- looking on --------------------------------------------------------------------------

    def now(self) -> float:
        """The session's clock: seconds since it began. All times it tells are on it."""
        return self._dispatch.now()

    def queries(self) -> tuple[QueryView, ...]:
        """All queries on their way, the earliest first."""
        return tuple(record.view() for record in self._dispatch.records())

    def forecasts(self) -> dict[str, Forecast]:
        """When each query is expected to start and to end, if estimates are right and none come."""
        return self._dispatch.overlook.forecasts()

    def why(self, query: str) -> Outlook:
        """What is ahead of a query on its way, which rule holds it, when it will start and end."""
        for record in self._dispatch.records():
            if record.id == query:
                return self.outlook(record)
        known = [record.id for record in self._dispatch.records()]
        raise QueryardError(unknown_name("query on its way", query, known))

    def report(self) -> SessionReport:
        """What the session itself has cost so far, and how often slots overstayed."""
        return self._dispatch.overlook.report()

    # --- policies ------------------------------------------------------------------------------

    def use_profile(self, profile: str | Mapping[str, Any]) -> None:
        """Decide by another policy from now on; what runs is not disturbed."""
        self.profile = chosen = self._shared(profile)
        self._dispatch.choose(chosen)

    def _shared(self, profile: str | Mapping[str, Any]) -> Mapping[str, Any]:
        """A profile inside the shares of the tenants, if it can be followed on this machine."""
        found = sized(resolve_profile(profile), self._slot_range)
        return for_tenants(found, self._tenants.shares) if self._tenants.shares else found

    # --- for handles and explanations ----------------------------------------------------------

    def outlook(self, record: Record) -> Outlook:
        """What there is to say of a query."""
        if record.ended:
            return outlook(record, None, None, self.now())
        forecast = self.forecasts().get(record.id)
        why = self._dispatch.overlook.why(record.id)
        return outlook(record, why, forecast, self.now())

    def release(self, record: Record) -> None:
        """Nobody reads the rows of a query any more."""
        self._dispatch.release(record)

    def not_staged(self, statements: Sequence[Classified], parameters: Parameters) -> str | None:
        """Why the planner is not even asked to split a query; None if it is."""
        return self._dispatch.not_staged(statements, parameters)

    # --- tables and functions ------------------------------------------------------------------

    def create_function(
        self,
        name: str,
        function: Callable[..., Any],
        parameters: Sequence[str],
        returns: str,
        style: Style = "rows",
        side_effects: bool = False,
    ) -> None:
        """Make a Python function known to SQL, with the SQL types of its parameters and answer.

        It gets Python values row by row (`style="rows"`), or Arrow arrays (`"arrow"`). DuckDB may
        call it more or less often than there are rows, unless it has `side_effects`.
        """
        self._dispatch.with_session(
            lambda session: session.create_function(
                name, function, parameters, returns, style, side_effects
            )
        )

    def register(self, name: str, table: object) -> None:
        """Name another table: a path, a pattern, or a frame (Arrow, pandas, Polars).

        A table that already has the name is replaced. Frames are copied when first used; register
        a frame again after changing it.
        """
        self.catalog.add(name, table)

    def unregister(self, name: str) -> None:
        """Forget a table that was registered."""
        self.catalog.remove(name)

    def refresh(self) -> tuple[str, ...]:
        """Look at the files again; the names of tables that have changed.

        Queries do so by themselves, as often as costs next to nothing.
        """
        return self.catalog.refresh()

    def _keep_fresh(self) -> None:
        """Look for new and changed files, for at most a hundredth of the time."""
        began = time.monotonic()
        if began < self._fresh_until:
            return
        # A folder that is being changed may not make sense for a moment: what was known stays.
        with contextlib.suppress(CatalogError):
            self.catalog.refresh()
        now = time.monotonic()
        self._fresh_until = now + max(FRESH_S, 100 * (now - began))

    # --- the end -------------------------------------------------------------------------------

    def close(self) -> None:
        """Cancel what runs, and free everything."""
        self._finalizer()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _close(process: int, dispatch: Dispatch, control: Control | None) -> None:
    """It must not hold the session."""
    if os.getpid() == process:  # in a fork, all of it is the parent's
        if control is not None:
            control.close()
        dispatch.close()


def _check_types(sql: object, parameters: object) -> None:
    """What would else come to light somewhere inside."""
    if not isinstance(sql, str):
        raise QueryardError(f"sql: must be a text, got {sql!r}")
    if not isinstance(parameters, Sequence | Mapping) or isinstance(parameters, str | bytes):
        problem = f"must be a list, or a dictionary of names, got {parameters!r}"
        raise QueryardError(f"parameters: {problem}")
