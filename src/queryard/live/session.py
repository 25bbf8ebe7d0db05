"""What a person holds: a session on data, to which queries are put."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Unpack

from queryard.core.errors import QueryardError, unknown_name
from queryard.core.model import Node, Tenant
from queryard.core.readable import several
from queryard.engine.budget import divide, memory_budget, slot_range
from queryard.engine.functions import Style
from queryard.engine.native import Parameters
from queryard.engine.program import Program, Step
from queryard.engine.segments import SegmentStore
from queryard.engine.temp import TempSpace
from queryard.policies import for_tenants, resolve_profile
from queryard.portfolio.documents import Portfolio, names_portfolio, read_portfolio
from queryard.results.answer import Answer
from queryard.results.estimate import Estimate
from queryard.results.explanation import Explanation
from queryard.results.online import AnswerLog
from queryard.sim.forecast import Forecast
from queryard.sql.catalog import Catalog, open_catalog
from queryard.sql.catalog.quoting import written_name
from queryard.sql.statistics.store import cache_folder

from .admission.gate import Gate
from .admission.limits import Limits, read_limits
from .admission.memory import Reservations, small_sizes
from .admission.tenants import Tenants, read_tenants
from .amounts import as_age
from .choosing.state import BY_OPERATOR, PolicyChange, PolicyState
from .client import Client
from .control import Control, control_of
from .facts import QueryView
from .handle import Handle
from .host import Host
from .monitor import SessionReport
from .online import OnlineAnswers, online_wish
from .online_planning import has_copies, load_planner
from .options import QueryOptions, check_options
from .overview import Overview, SessionNodes
from .placing import Wanted, checked_backend, place_here, place_on_ray
from .recording import Recorder, history_file, kept_in, read_retention
from .request import OnlineRequest, Plan, checked_plan
from .router import Steering
from .settings import (
    SEGMENTS_DISK_BYTES,
    Collecting,
    checked_slow_start,
    collecting_bytes,
    kept_segments_bytes,
    paced,
    session_settings,
    sized,
    warn_of_idle_parts,
)
from .why import WaitReport

# Chosen by measurement: see ARCHITECTURE.
DEFAULT_PROFILE = "marshal"
# What is learnt from queries that have ended: what templates took, how far prices are off.
MODELS = ("templates", "prices")
# How long `forecasts` waits for one that is being made.
FORECASTS_S = 2.0


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
    fresh: float | str | None = None,
    slow_start: float | None = None,
    statistics: Collecting | None = None,
    backend: str | None = None,
    address: str | None = None,
) -> Session:
    """Open a session on data.

    `where` is a folder of data files, a catalog file (TOML), one data file or a DuckDB database;
    `tables` adds tables by name: paths, patterns, frames. `slots` is how many threads work at most
    (all cores), or the least and the most of them, `memory` the bytes all queries together may use
    (70 % of the machine's). Without `write=True` the data is never changed.

    `plan` is how queries run unless they say otherwise: by DuckDB ("native"), split into tasks
    ("staged"), or ("auto") by DuckDB unless riding on a shared scan of text is cheaper, as for
    queries that read one large CSV file at the same time. `profile` is the policy by which they
    share the slots (`queryard policies`), or "portfolio", which chooses it as the queue changes.
    `tenants` have shares and limits by name, as
    `{"web": {"weight": 3, "guarantee": 0.25, "limits": {"waiting": 100}}}`; `limits` are those of
    all together: `waiting` queries, the `wait` to be expected, the `memory` of one query.

    A session writes into the folder `.queryard` beside the data, for its user only: the history of
    what was asked and what came of it, and a note of how `queryard why` reaches the session. With
    `history=False` it writes nothing there; a path keeps the history in that file. The history goes
    back 30 days and has up to about 1 GB, unless `retention` says otherwise, as
    `{"days": 7, "size": "200 MB"}`.

    A query sees the files that lay there when it was submitted. `fresh` is how old what is known of
    them may be instead, as "5 s", where looking is costly; `Session.refresh()` looks at once.

    Statistics of the tables are collected in the background, at low priority, and kept in that
    folder as well; with `statistics="off"` only what is there is used.

    `slow_start` is the share of the maps of a job after which its reduces may be launched, for
    staged queries: below 1 they take slots early and wait there for the other maps.

    `backend` is where queries run: in this process ("local"), or on a Ray cluster ("ray"). A
    cluster has an `address`: "auto" is the one that this machine is part of, and "local", the
    default, starts one on this machine that ends with the session. `slots` and `memory` are then
    those of each node (docs/cluster.md).

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
        "fresh": fresh,
        "slow_start": slow_start,
        "statistics": statistics,
        "backend": backend,
        "address": address,
    }
    chosen = {key: value for key, value in given.items() if value is not None}
    return Session(catalog, write=write, **{**session_settings(catalog.settings), **chosen})


class Session:
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
        backend: str = "local",
        address: str | None = None,
        nodes: Sequence[Node] | None = None,
    ) -> None:
        """As `connect`; `nodes` stand for unequal machines, each with slots and a speed."""
        plan, fresh_s = checked_plan(plan), as_age(fresh, "fresh")
        backend = checked_backend(backend, address)
        self.catalog = catalog
        self._slot_range = slot_range(slots)
        self.memory_bytes = memory_budget(memory)
        statistics_bytes = collecting_bytes(statistics, self.memory_bytes)
        catalog.keeps_statistics = history is not False
        segments_bytes = kept_segments_bytes(self.memory_bytes, catalog)
        others_bytes = statistics_bytes + segments_bytes
        budget = divide(self.memory_bytes - others_bytes, catalog, write)
        self._tenants = read_tenants(tenants)
        self._chosen = profile
        self._profile, self._portfolio = self._resolved(profile)
        self._limits, share = read_limits(limits or {}, "limits"), checked_slow_start(slow_start)
        recorder = Recorder(history_file(history, catalog), read_retention(retention))
        space = TempSpace(temp)
        segments = SegmentStore(segments_bytes, SEGMENTS_DISK_BYTES, space.path)
        wanted = Wanted(
            catalog,
            self._slot_range,
            budget.pool_bytes,
            space.path,
            segments,
            slots is not None,
            memory is not None,
        )
        place = (
            place_on_ray(wanted, address or "local")
            if backend == "ray"
            else place_here(wanted, nodes)
        )
        self.slots = place.slots
        self.host = Host(
            catalog,
            recorder.kernel(self._profile, self.slots, self.memory_bytes, share),
            place.backend,
            place.engine,
            Gate(self._limits, self._tenants.limits, self.slots),
            Reservations(place.pool_bytes),
            recorder,
            space,
            fresh_s,
            statistics_bytes,
            self._profile,
            self._portfolio,
            place.make_tasks,
        )
        if backend == "local":
            place.engine.spares.keep(small_sizes(place.pool_bytes), self.host.run_later)
        if has_copies(catalog):
            self.host.run_later(lambda: load_planner(catalog))
        # Where it is served: the controls of the server, for other processes of its user.
        self.steering: Steering | None = None
        self.own_bytes = budget.session_bytes
        """What its own instance may use, for temporary tables, frames and writes."""
        self.client = Client.open(
            self.host, memory_bytes=budget.session_bytes, name="session", plan=plan, writes=write
        )
        # A session without a place beside its data is found all the same.
        folder = (None if history is False else kept_in(catalog)) or cache_folder()
        self._control = control_of(folder, recorder.session, weakref.ref(self))
        # Also for a session that is never closed, and at the end of the program.
        self._finalizer = weakref.finalize(self, _close, self.host, self.client, self._control)

    @property
    def plan(self) -> Plan:
        """How queries run unless they say otherwise."""
        return self.client.plan

    @property
    def tenants(self) -> tuple[Tenant, ...]:
        """The tenants that were named, with their shares."""
        return self._tenants.shares

    @property
    def is_here(self) -> bool:
        """Whether this is the process that has opened it, and no fork."""
        return self.host.owner.is_here

    def check_owner(self) -> None:
        """Raise in a forked process: the threads are the other process's."""
        self.host.owner.check()

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
        **options: Unpack[QueryOptions],
    ) -> OnlineAnswers:
        """Answers that come early and refine: `for answer in qy.online(sql, stop_at=0.01): …`.

        Each answer has rows, the low and high end of every estimated value at the `confidence`, and
        the largest relative `error` of them. It ends once that is at most `stop_at`, after `within`
        (seconds, or a text such as "2 s"), or with the exact answer. `every` is how often an answer
        is given at most. The error and the progress are those of the `columns`, if some are named.

        The query reads a shuffled copy of its largest table (`queryard shuffle TABLE`), or random
        blocks of it. What cannot be estimated soundly runs exactly; `reason` of what this gives
        back says why. Other options are those of `submit`.
        """
        check_options(options, QueryOptions.__annotations__)
        every_s = as_age(every, "every")
        wish = online_wish(stop_at, confidence, every_s, within, columns)
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

    def shuffle(
        self, table: str, *, seed: int = 0, progress: Callable[[float], None] | None = None
    ) -> None:
        """Make a shuffled copy of a table, for online queries; it stays until the table changes.

        `progress` hears the share that is done. If a copy of it is being made already, this waits
        for that one. `queryard shuffle` does the same, and removes it.
        """
        from queryard.engine.sampling import copy_places, find_copy, shuffle_in_turn

        self.host.owner.check()
        self.catalog.refresh()
        found = self.catalog[table]
        places = copy_places(self.catalog, found)
        if find_copy(found, places) is None:
            told = progress or (lambda share: None)
            shuffle_in_turn(found, places, seed=seed, progress=told)

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

    # --- looking on --------------------------------------------------------------------------

    def now(self) -> float:
        """The session's clock: seconds since it began. All times it tells are on it."""
        return self.host.now()

    def queries(self) -> tuple[QueryView, ...]:
        """All active queries, the earliest first."""
        return self.host.looking.views()

    def overview(self) -> Overview:
        """All active queries and what holds each, and the cluster, at one moment."""
        return self.host.looking.overview()

    def forecasts(self) -> dict[str, Forecast]:
        """When each query is expected to start and end, if estimates are right and none arrives."""
        return self.host.looking.forecasts(FORECASTS_S)

    def why(self, query: str) -> WaitReport:
        """What is ahead of an active query, which rule holds it, when it will start and end."""
        return self.host.looking.wait_report(self.host.active_query(query))

    def cluster(self) -> SessionNodes:
        """The nodes on which queries run, and what each does now."""
        backend = self.host.backend
        return SessionNodes(self.host.looking.cluster().nodes, backend.notes(), backend.refused)

    def report(self) -> SessionReport:
        """What the session itself has cost so far, and how often slots overstayed."""
        return self.host.looking.report()

    # --- policies ------------------------------------------------------------------------------

    def use_profile(
        self, profile: str | Mapping[str, Any], *, by: str = BY_OPERATOR, reason: str = ""
    ) -> None:
        """Decide by another policy from now on; what runs is not disturbed.

        `by` and `reason` say what has chosen it, and why, for `policy_state` and the journal.
        """
        chosen, portfolio = self._resolved(profile)
        self.host.policy.choose(chosen, by, reason, portfolio)
        self._profile, self._portfolio, self._chosen = chosen, portfolio, profile

    @property
    def profile(self) -> Mapping[str, Any]:
        """The policy in force as a table of parts; under a portfolio, the chosen candidate."""
        return self._profile if self._portfolio is None else self.host.policy.profile()

    @property
    def portfolio(self) -> Mapping[str, Any] | None:
        """The portfolio that chooses the policy, as a table; None under a fixed policy."""
        return None if self._portfolio is None else self._portfolio.document

    @property
    def chosen_profile(self) -> str | Mapping[str, Any]:
        """The policy as it was asked for: a name, or a table; `use_profile` takes it again."""
        return self._chosen

    def policy_state(self) -> PolicyState:
        """The policy in force: its name, since when, what has chosen it, and why."""
        return self.host.policy.state()

    def policy_changes(self, limit: int = 100) -> tuple[PolicyChange, ...]:
        """The last changes of the policy, the latest first."""
        return self.host.policy.changes(limit)

    def policy_decisions(self, limit: int = 100) -> list[dict[str, Any]]:
        """The last decisions of a portfolio as plain data, the latest first.

        Each has `at` (Unix seconds), `trigger`, the number of `waiting` queries, the `candidates`
        (each with `name`, `score`, `objectives` and why it was `dropped`), the `chosen` one and the
        `reason`, `took_s`, whether it was `remembered`, the `forecast` score and the `outcome`.
        """
        return self.host.policy.decisions(limit)

    def use_tenants(
        self,
        tenants: Mapping[str, Any] | Sequence[Tenant] | Tenants | None,
        limits: Mapping[str, Any] | Limits | None = None,
        profile: str | Mapping[str, Any] | None = None,
        *,
        by: str = BY_OPERATOR,
        reason: str = "",
    ) -> None:
        """Share by other tenants and hold to other limits from now on, as `connect` takes them.

        What runs is not disturbed. The policy stays unless a `profile` is given. If something is
        wrong, nothing changes.
        """
        found, held = read_tenants(tenants), read_limits(limits or {}, "limits")
        before, self._tenants = self._tenants, found
        try:
            self.use_profile(self._chosen if profile is None else profile, by=by, reason=reason)
        except BaseException:
            self._tenants = before
            raise
        self._limits = held
        self.host.limit(held, found.limits)

    @property
    def limits(self) -> Limits:
        """The limits of all tenants together."""
        return self._limits

    @property
    def tenant_limits(self) -> Mapping[str, Limits]:
        """The limits of tenants that have some."""
        return dict(self._tenants.limits)

    def pause(self, by: str = "") -> None:
        """Start no waiting query from now on; what runs goes on, and queries can be submitted.

        `by` says on whose word: `why` tells it of every query that waits. A query that is identical
        to a running one is still answered together with it.
        """
        self.host.pause(by)

    def resume(self) -> None:
        """Let waiting queries start again."""
        self.host.resume()

    @property
    def paused_by(self) -> str | None:
        """On whose word no query starts; None while queries start."""
        return self.host.ask(lambda coordinator: coordinator.kernel.state.paused_by)

    def reset_models(
        self, models: Collection[str] = MODELS, *, before: float | None = None
    ) -> None:
        """Forget what was learnt from queries that ended before a time (seconds since 1970; now).

        `templates` is what queries of each template took, in the history of earlier sessions, too;
        `prices` is how far predictions from plans and from bytes were off. What waits is predicted
        anew at once. The history itself stays.
        """
        for model in models:
            if model not in MODELS:
                raise QueryardError(unknown_name("model", model, MODELS))
        self.host.reset_models(models, time.time() if before is None else before)

    def _resolved(
        self, profile: str | Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], Portfolio | None]:
        """The policy to begin with, and the portfolio that goes on choosing, if it is one."""
        if not names_portfolio(profile):
            chosen = self._shared(profile)
            warn_of_idle_parts(chosen)
            return chosen, None
        portfolio = read_portfolio(profile)
        settings = portfolio.settings
        candidates = {name: self._shared(of) for name, of in settings.candidates.items()}
        for candidate in candidates.values():
            warn_of_idle_parts(candidate)
        portfolio = replace(portfolio, settings=replace(settings, candidates=candidates))
        return next(iter(candidates.values())), portfolio

    def _shared(self, profile: str | Mapping[str, Any]) -> Mapping[str, Any]:
        """A profile inside the shares of the tenants, if it can be followed on this machine."""
        found = paced(sized(resolve_profile(profile), self._slot_range))
        return for_tenants(found, self._tenants.shares) if self._tenants.shares else found

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
        self.client.with_instance(
            lambda own: own.create_function(
                name, function, parameters, returns, style, side_effects
            )
        )

    def register(self, name: str, table: object) -> None:
        """Name another table: a path, a pattern, or a frame (Arrow, pandas, Polars).

        A table that already has the name is replaced. Frames are copied when first used; register
        a frame again after changing it.
        """
        self.host.owner.check()
        self.catalog.add(name, table)

    def unregister(self, name: str) -> None:
        """Forget a table that was registered."""
        self.host.owner.check()
        self.catalog.remove(name)

    def tables(self) -> tuple[str, ...]:
        """The names of all tables, as SQL writes them; `catalog` knows their columns and files."""
        return tuple(written_name(key) for key in sorted(self.catalog.tables))

    def refresh(self) -> tuple[str, ...]:
        """Look at the files again; the names of tables that have changed."""
        self.host.owner.check()
        return self.catalog.refresh()

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
