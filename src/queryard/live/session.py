"""What a person holds: a session on data, to which queries are put."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Unpack

from queryard.core.model import Node, Tenant
from queryard.core.readable import several
from queryard.engine.native import Parameters
from queryard.engine.program import Program, Step
from queryard.engine.session.functions import Style
from queryard.results.answer import Answer
from queryard.results.estimate import Estimate
from queryard.results.explanation import Explanation
from queryard.results.online import AnswerLog
from queryard.sql.catalog import Catalog
from queryard.sql.statistics.store import cache_folder

from .admission.limits import Limits
from .admission.tenants import Tenants
from .amounts import as_age
from .backend_setting import BackendSetting
from .client import Client
from .control import Control, control_of
from .handle import Handle
from .host import Host
from .online import OnlineAnswers, online_wish
from .opening import open_host
from .operated import OperatedHost
from .options import ONLINE_OPTIONS, QueryOptions, check_options
from .recording import kept_in
from .request import OnlineRequest, Plan, checked_plan
from .settings import Collecting

# Chosen by measurement: see ARCHITECTURE.
DEFAULT_PROFILE = "marshal"


class Session(OperatedHost):
    """A host of its own, and one client of it, embedded in a program.

    Queries go in by `sql` and `submit`, from any thread; close it, or use it with `with`.
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        slots: int | tuple[int, int] | None = None,
        memory: int | str | None = None,
        write: bool = False,
        temp: str | Path | None = None,
        plan: Plan = "auto",
        profile: str | Mapping[str, Any] = DEFAULT_PROFILE,
        tenants: Mapping[str, Any] | Sequence[Tenant] | Tenants | None = None,
        limits: Mapping[str, Any] | Limits | None = None,
        history: bool | str | Path | None = None,
        retention: Mapping[str, Any] | None = None,
        fresh: float | str = 0,
        slow_start: float = 1.0,
        statistics: Collecting = "auto",
        backend: str | Mapping[str, Any] | BackendSetting = "local",
        address: str | None = None,
        nodes: Sequence[Node] | None = None,
    ) -> None:
        """As `connect`; `nodes` stand for unequal machines, each with slots and a speed."""
        plan = checked_plan(plan)
        opened = open_host(
            catalog,
            slots=slots,
            memory=memory,
            write=write,
            temp=temp,
            profile=profile,
            tenants=tenants,
            limits=limits,
            history=history,
            retention=retention,
            fresh=fresh,
            slow_start=slow_start,
            statistics=statistics,
            backend=backend,
            address=address,
            nodes=nodes,
        )
        super().__init__(opened)
        self.client = Client.open(
            self.host, memory_bytes=self.own_bytes, name="session", plan=plan, writes=write
        )
        # A session without a place beside its data is found all the same.
        folder = (None if history is False else kept_in(catalog)) or cache_folder()
        self._control = control_of(folder, self.host.session_name, weakref.ref(self))
        # Also for a session that is never closed, and at the end of the program.
        self._finalizer = weakref.finalize(self, _close, self.host, self.client, self._control)

    @property
    def plan(self) -> Plan:
        """How queries run unless they say otherwise."""
        return self.client.plan

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
        if handle.has_side_effects:
            handle.wait()
        return answer

    def submit(
        self,
        sql: str,
        parameters: Parameters = (),
        *,
        plan: Plan | None = None,
        tenant: str | None = None,
        priority: float = 0.0,
        memory: int | str | None = None,
        time_limit: float | str | None = None,
        deadline: float | str | timedelta | datetime | None = None,
        idempotency_key: str = "",
        keep: float | str | None = None,
    ) -> Handle:
        """Ask for something and go on; the handle tells how far it is.

        What is not allowed or refused by a limit (`Refused`) is raised here. So is a syntax error,
        unless the text can only be a SELECT: DuckDB parses that later, and the error is raised when
        the answer is asked for. `memory` is what the query reserves, `time_limit` (seconds, or a
        text such as "5 min") ends it with an error. By the `deadline` (seconds from now, such a
        text, or a time) its answer is wanted: policies that know deadlines hurry, and it runs on if
        it is late.

        The same `idempotency_key` given again is the same query: it runs once. With `keep`, the
        query runs on without a handle, and its rows are kept for that time after its end, to be
        read through `query`; without, a query that only reads is cancelled then.
        """
        ticket = self.client.submit(
            sql,
            parameters,
            plan=plan,
            tenant=tenant,
            priority=priority,
            memory=memory,
            time_limit=time_limit,
            deadline=deadline,
            idempotency_key=idempotency_key,
            keep=keep,
        )
        return Handle(self.client, ticket, self)

    def online(
        self,
        sql: str,
        *,
        stop_at: float | None = None,
        confidence: float = 0.95,
        every: float | str = 0.5,
        within: float | str | None = None,
        columns: Sequence[str] = (),
        groups: Sequence[Any] = (),
        measure: Callable[[Any], float] | None = None,
        **options: Unpack[QueryOptions],
    ) -> OnlineAnswers:
        """Answers that come early and refine: `for answer in qy.online(sql, stop_at=0.01): …`.

        Each answer has rows, the low and high end of every estimated value at the `confidence`, and
        the largest relative `error` of them. It ends once that is at most `stop_at`, after `within`
        (seconds, or a text such as "2 s"), or with the exact answer. `every` is how often an answer
        is given at most.

        The error and the progress are those of the `columns`, if some are named, and of the
        `groups`: values of the group column, or tuples with a value per group column. Progress,
        by which policies give slots, may be how far a number moves that the function `measure`
        makes of these rows (a table of Arrow's).

        The query reads a shuffled copy of its largest table (`queryard shuffle TABLE`), or random
        blocks of it. What cannot be estimated soundly runs exactly; `reason` of what this gives
        back says why. Other options are those of `submit`.
        """
        check_options(options, (*QueryOptions.__annotations__, *ONLINE_OPTIONS))
        every_s = as_age(every, "every")
        wish = online_wish(stop_at, confidence, every_s, within, columns, groups, measure)
        log = AnswerLog()
        ticket = self.client.submit(sql, online=OnlineRequest(wish, log), **options)
        return OnlineAnswers(Handle(self.client, ticket, self), log, every_s)

    def iterate(
        self,
        step: Step,
        steps: int,
        *,
        name: str = "program",
        work_s: float = 1.0,
        tenant: str | None = None,
        priority: float = 0.0,
    ) -> Handle:
        """Run an iterative program on a slot, beside queries: a model being trained, say.

        `step` is called with 1, 2, … up to `steps`, and gives back how far its result has moved (a
        number of at least 0, such as by how much the loss fell), or None once it is done. Policies
        for online queries give it slots by that, as they do to online queries. Between steps it
        makes way for others. `work_s` is about what a step takes.
        """
        program = Program(step, steps, work_s)
        ticket = self.client.run_program(program, name, tenant=tenant, priority=priority)
        return Handle(self.client, ticket, self)

    def query(self, query: str) -> Handle:
        """A handle of a query by its id: an active query, or one with rows that are kept."""
        return Handle(self.client, self.host.query(query), self)

    def explain(
        self,
        sql: str,
        parameters: Parameters = (),
        *,
        analyze: bool = False,
        plan: Plan | None = None,
    ) -> Explanation:
        """How a statement would be run; with `analyze` it is run, for the real figures."""
        from .explaining import explain

        return explain(self.client, sql, parameters, analyze=analyze, plan=plan)

    def estimate(
        self, sql: str, parameters: Parameters = (), *, plan: Plan | None = None
    ) -> Estimate:
        """What a statement would read, take and give, with intervals; it is planned, not run."""
        from .explaining import estimate

        return estimate(self.client, sql, parameters, plan=plan)

    def cancel(self, query: str) -> None:
        """Stop a query by its id; an unknown or ended one is ignored."""
        self.host.cancel(query)

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
        self.client.with_instance(
            lambda own: own.create_function(
                name, function, parameters, returns, style, side_effects
            )
        )

    # --- the end -------------------------------------------------------------------------------

    def close(self) -> None:
        """Cancel what runs, and free everything."""
        self._finalizer()

    def __repr__(self) -> str:
        tables = several(len(self.catalog), "table")
        data = f"{self.catalog.place}, {tables}" if self.catalog.place else tables
        active = several(len(self.queries()), "active query") if self._finalizer.alive else ""
        return (
            f"<Session on {data}: {several(self.slots, 'slot')}, {self.memory_bytes / 1e9:.1f} GB "
            f"of memory, policy {self.profile.get('name', 'without a name')}, "
            f"{active or 'closed'}>"
        )

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _close(host: Host, client: Client, control: Control | None) -> None:
    """A finalizer: it must not keep a reference to the session."""
    if host.owner.is_here:  # in a fork, all of it is the parent's
        if control is not None:
            control.close()
        if host.close():
            client.close()
