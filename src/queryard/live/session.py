"""What a person holds: a session on data, to which queries are put."""

from __future__ import annotations

import contextlib
import os
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from queryard.core.errors import QueryardError
from queryard.core.scheduler import Scheduler
from queryard.engine.classify import Classified, check_allowed, classify
from queryard.engine.functions import Style
from queryard.engine.instance import MIN_MEMORY_BYTES
from queryard.engine.native import Parameters
from queryard.engine.temp import TempSpace
from queryard.policies import compose, resolve_profile
from queryard.sql.catalog import Catalog, CatalogError, open_catalog

from .amounts import as_seconds
from .answer import Answer
from .asked import Asked, Plan, checked_plan
from .dispatch import Dispatch
from .handle import Handle, Record
from .resources import divide, memory_budget, reservation, slot_count

if TYPE_CHECKING:
    from .explanation import Explanation

FRESH_S = 1.0


def connect(
    where: str | Path | None = None,
    *,
    tables: Mapping[str, object] | None = None,
    slots: int | None = None,
    memory: int | str | None = None,
    write: bool = False,
    temp: str | Path | None = None,
    plan: Plan = "native",
    profile: str | Mapping[str, Any] = "query-fair",
) -> Session:
    """Open a session on data.

    `where` is a folder of data files, a catalog file (TOML), one data file or a DuckDB database;
    `tables` adds tables by name: paths, patterns, frames. `slots` is how many threads work at most
    (all cores), `memory` the bytes all queries together may use (70 % of the machine's). Without
    `write=True` nothing outside the session is ever changed. `plan` is how queries run unless they
    say otherwise, `profile` the policy by which they share the slots (`queryard policies`).
    """
    return Session(
        open_catalog(where, tables),
        slots=slots,
        memory=memory,
        write=write,
        temp=temp,
        plan=plan,
        profile=profile,
    )


class Session:
    """Queries go in by `sql` and `submit`, from any thread; close it, or use it with `with`."""

    def __init__(
        self,
        catalog: Catalog,
        *,
        slots: int | None = None,
        memory: int | str | None = None,
        write: bool = False,
        temp: str | Path | None = None,
        plan: Plan = "native",
        profile: str | Mapping[str, Any] = "query-fair",
    ) -> None:
        self.catalog = catalog
        self.slots = slot_count(slots)
        self.memory_bytes = memory_budget(memory)
        self.plan = checked_plan(plan)
        self._writes = write
        budget = divide(self.memory_bytes, catalog)
        self._pool_bytes = budget.pool_bytes
        scheduler = Scheduler(compose, _checked_profile(profile))
        self._dispatch = Dispatch(catalog, scheduler, self.slots, budget, TempSpace(temp), write)
        self._fresh_until = time.monotonic() + FRESH_S
        # Also for a session that its user forgets, and at the end of the program.
        self._finalizer = weakref.finalize(self, _close, os.getpid(), self._dispatch)

    # --- asking ------------------------------------------------------------------------------

    def sql(self, sql: str, parameters: Parameters = (), **options: Any) -> Answer:
        """Run a statement and give its answer as soon as its first rows are there.

        Options are those of `submit`. Statements without rows have run when this returns.
        """
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
    ) -> Handle:
        """Ask for something and go on; the handle tells how far it is.

        What is wrong with the text itself, or not allowed, is raised here. `memory` is what the
        query reserves, `time_limit` (seconds, or a text such as "5 min") ends it with an error.
        """
        statements = classify(sql)
        for statement in statements:
            check_allowed(statement, self._writes)
        wanted = checked_plan(plan or self.plan)
        if isinstance(priority, bool) or not isinstance(priority, int | float):
            raise QueryardError(f"priority: must be a number, got {priority!r}")
        memory_bytes = reservation(memory, self._pool_bytes)
        if memory is None and not any("from" in statement.words for statement in statements):
            memory_bytes = MIN_MEMORY_BYTES  # SELECT 42
        limit_s = None if time_limit is None else as_seconds(time_limit, "time_limit")
        self._keep_fresh()
        record = self._dispatch.enter(
            Asked(sql, statements, parameters, wanted, tenant, priority, memory_bytes)
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

    # --- for handles and explanations ----------------------------------------------------------

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


def _checked_profile(profile: str | Mapping[str, Any]) -> Mapping[str, Any]:
    found = resolve_profile(profile)
    if found.get("provisioning", "fixed") != "fixed":
        raise QueryardError(
            f"profile {profile!r} changes the number of nodes, and there is one machine; "
            "choose a profile with provisioning = 'fixed'"
        )
    return found


def _close(process: int, dispatch: Dispatch) -> None:
    """It must not hold the session."""
    if os.getpid() == process:  # in a fork, all of it is the parent's
        dispatch.close()
