"""A host: one kernel, one backend, one catalog, one history, and every query by its id.

Embedded, there is one per `connect`; a server has one for all its clients. Calls come from any
thread; all that is decided is decided on the loop's thread.
"""

from __future__ import annotations

import contextlib
import datetime
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from queryard.backends.protocol import Backend
from queryard.backends.workers import Workers
from queryard.core.errors import QueryardError, unknown_name
from queryard.core.explain import Why
from queryard.core.model import query_ids
from queryard.core.scheduler import Scheduler
from queryard.engine.access import ALL, Access, Reach
from queryard.engine.classify import Classified, names_read
from queryard.engine.describing import Describer
from queryard.engine.errors import QueryCancelled
from queryard.engine.native import NativeEngine
from queryard.engine.temp import TempSpace
from queryard.estimate.work import SPREADS, Prediction
from queryard.portfolio.documents import Portfolio
from queryard.results.accounts import UNLIMITED, Account
from queryard.results.ownership import Owner
from queryard.results.streams import ResultStream
from queryard.sim.forecast import Forecast
from queryard.sql.catalog import Catalog
from queryard.sql.catalog.freshness import Freshness
from queryard.sql.statistics.collecting import Collector

from . import inputs
from .admission.gate import Gate
from .admission.limits import AlreadyRan, Limits
from .admission.memory import Reservations
from .choosing.chooser import Choice
from .choosing.runner import Choosing
from .choosing.state import BY_OPERATOR, BY_PORTFOLIO, CHANGES_KEPT, PolicyChange, PolicyState
from .coordinating import Coordinator
from .effect_runner import EffectRunner, end_ticket
from .estimates.estimator import Estimator
from .estimates.forecasts import Forecaster, Forecasts, Fork
from .estimates.prediction import Predictor
from .estimates.waits import Waits
from .facts import QueryFacts, QueryView
from .inputs import ClientPort
from .loop import Loop, Mailbox
from .monitor import SessionReport
from .overview import ClusterView, Load, Overview
from .planning import tasks_here
from .recording import COST_EVERY_S, Recorder, hash_of
from .request import QueryRequest
from .ticket import Ticket, TimedForecast
from .tickets import Tickets
from .why import WaitReport, wait_report

if TYPE_CHECKING:
    from queryard.engine.sampling.making import CopyMaker

    from .work.staged import MakeTasks

T = TypeVar("T")
CLOSE_S = 10.0
# How long a loop that has failed may take to end its queries.
LAST_WORDS_S = 1.0
# How long after the start of a query an instance is opened for the next one.
WHILE_S = 0.25
# At most this share of a core goes into forecasts that were not asked for.
FORECAST_SHARE = 0.005
# How many errors without effect on queries are kept.
PROBLEMS_KEPT = 20


class Host:
    """Queries go in by `submit`, for a client each; `close` ends everything."""

    def __init__(
        self,
        catalog: Catalog,
        kernel: Scheduler,
        backend: Backend,
        engine: NativeEngine,
        gate: Gate,
        reservations: Reservations,
        recorder: Recorder,
        temp: TempSpace,
        fresh_s: float = 0.0,
        statistics_bytes: int = 0,
        profile: Mapping[str, Any] | None = None,
        portfolio: Portfolio | None = None,
        make_tasks: MakeTasks | None = None,
    ) -> None:
        """`profile` is the one that the kernel was made with; a `portfolio` chooses others.

        `make_tasks` says where tasks of staged queries run; in this process by default.
        """
        self.owner = Owner()
        self.catalog = catalog
        self._freshness = Freshness(catalog, fresh_s)
        self.engine = engine
        self._reaches: dict[Access, Reach] = {ALL: engine.reach}
        self._describers: dict[Access, Describer] = {}
        self.backend = backend
        self._temp = temp
        # What one query can reserve at most.
        self.pool_bytes = reservations.pool_bytes
        self._recorder = recorder
        self._gate = gate
        self._ids = query_ids(recorder.session)
        self._closing = threading.Lock()
        self._closed = False
        self._broken: BaseException | None = None
        self._tickets = Tickets()
        self._problems: list[str] = []
        self._timers: set[threading.Timer] = set()
        mailbox = Mailbox()
        self._post = post = mailbox.post
        self._background = Workers(self._problem)
        self._estimator = Estimator(
            Predictor(catalog),
            recorder.past,
            lambda: len(self._tickets.active()) < 2,
            self._later,
            lambda query, better: post(inputs.Predicted(query, better)),
            lambda query, error: post(inputs.Cancel(query, error)),
            self._record_forecast,
            self._problem,
        )
        self._effects = EffectRunner(
            post,
            self._background,
            backend,
            engine,
            self._tickets,
            recorder,
            self._estimator,
            temp,
            make_tasks or tasks_here(engine.pool, temp.path),
            self.now,
            self._later,
            self._want_copy,
            self._query_ended,
        )
        coordinator = Coordinator(kernel, gate, reservations, backend.width, profile)
        self._loop = Loop(mailbox, coordinator, self._effects.carry_out, self._break)
        self._forecaster = Forecaster(self._fork, self.now, self._problem)
        self._waits = Waits(lambda: self._fork().without_sharers(), self.now)
        self._next_forecast_s = 0.0
        # None where statistics do not collect themselves.
        self._collector: Collector | None = None
        # Made for the first online query over a table without a shuffled copy.
        self._copies: CopyMaker | None = None
        self._copy_bytes = statistics_bytes
        if statistics_bytes:
            told = self._more_known, self._problem
            active = self._tickets.active
            self._collector = Collector(catalog, statistics_bytes, *told, lambda: bool(active()))
        # How far Unix time is ahead of the host's clock.
        self._ahead_s = time.time() - self._loop.now()
        self._choosing: Choosing | None = None
        self._choosing_lock = threading.Lock()
        # What portfolios decided that choose no more, and the processor seconds they took.
        self._former_decisions: list[dict[str, Any]] = []
        self._former_cpu_s = 0.0
        backend.start(post)
        self._loop.start()
        if portfolio is not None:
            self._choosing = self._chooses(portfolio)
        if self._collector is not None:
            self._collector.start()
        if recorder.history is not None:
            self._later(COST_EVERY_S, self._note_cost)

    # --- clients ---------------------------------------------------------------------------------

    def reach(self, access: Access) -> Reach:
        """What clients with this access reach: one object for all of them."""
        with self._closing:
            found = self._reaches.get(access)
            if found is None:
                found = self._reaches[access] = Reach(access, self.catalog)
            return found

    def describer(self, reach: Reach) -> Describer:
        """What describes statements for clients of a reach."""
        self._check_open()
        with self._closing:
            found = self._describers.get(reach.access)
            if found is None:
                found = self._describers[reach.access] = Describer(reach)
            return found

    # --- queries ---------------------------------------------------------------------------------

    @property
    def temp(self) -> Path:
        """Where temporary files go."""
        return self._temp.path

    def now(self) -> float:
        """The host's clock: seconds since it began. All times it tells are on it."""
        return self._loop.now()

    def submit(
        self,
        client: ClientPort,
        request: QueryRequest,
        key: Hashable | None,
        keep_s: float | None = None,
        account: Account = UNLIMITED,
    ) -> Ticket:
        """Submit a query; raises the reason if it is refused.

        Queries of equal `key` have the same answer. Its rows are kept for `keep_s` after its end,
        though no handle is held; while they are not read, `account` has them.
        """
        self._check_open()
        if self._collector is not None:
            for statement in request.statements:
                self._collector.want(statement.names)
        if request.runs_once:
            self._check_not_done(request)
        prediction = self._first(request)
        wait_s = self._wait_s(client, request, prediction.work_s)
        query = next(self._ids)
        output = ResultStream(account=account)
        output.on_refused = lambda error: self._post(inputs.Cancel(query, error))
        output.on_full = lambda: self._post(inputs.ReaderState(query, True))
        output.on_room = lambda: self._post(inputs.ReaderState(query, False))
        facts = QueryFacts(query, request, self.now(), prediction, prediction.work_s)
        ticket = Ticket(query, facts, output, keep_s)
        self._tickets.add(ticket)
        given = inputs.Submit(query, query, client, request, prediction, key, wait_s)
        try:
            if request.idempotency_key or self._gate.has_limits(request):
                entered = self._call(query, given)
            else:
                entered = query  # nothing can refuse it: the caller need not wait for the loop
                self._effects.begin_query(query)
                self._post(given)
                is_over = self._broken is not None or self._loop.over
                # A loop that fails just now ends the queries it knows of.
                if is_over and not ticket.over.wait(LAST_WORDS_S):
                    self._tickets.drop(query)
                    self._effects.end_query(query)
                    self._check_open()
        except QueryardError:
            raise  # it was refused
        except BaseException:  # interrupted: it may have been admitted all the same
            self._post(inputs.Cancel(query, QueryCancelled("interrupted while it was submitted")))
            raise
        if entered == query:
            self._waits.entered(request, prediction.work_s / self.backend.slots)
            choosing = self._choosing
            if choosing is not None:
                choosing.wake()
            return ticket
        self._tickets.drop(query)
        return self._again(entered, request)

    def _first(self, request: QueryRequest) -> Prediction:
        """What is known at once of the work of a query."""
        program = request.program
        if program is None:
            return self._estimator.first(request)
        return Prediction(program.work_s * program.steps, 0, "guess", SPREADS["guess"])

    def _again(self, query: str, request: QueryRequest) -> Ticket:
        """The query that came with the same idempotency key."""
        found = self._tickets.find(query)
        if found is None:
            raise QueryardError(
                f"idempotency_key {request.idempotency_key!r}: its query {query} has ended and its "
                "rows are kept no more; use another key to run the statement again"
            )
        return found

    def _check_not_done(self, request: QueryRequest) -> None:
        """Raise if a statement has run under its key in an earlier session on this data."""
        if self._loop.ask(lambda coordinator: coordinator.knows_key(request)):
            return
        done = self._recorder.done_before(request)
        if done is None:
            return
        key = f"idempotency_key {request.idempotency_key!r}"
        if done.statement != hash_of(request):
            raise QueryardError(
                f"{key}: came with another statement or other parameters before; use a key of its "
                "own for each statement"
            )
        when = datetime.datetime.fromtimestamp(done.ended_at)
        raise AlreadyRan(
            f"{key}: its statement has run already, as query {done.query}, and ended well on "
            f"{when:%Y-%m-%d at %H:%M:%S}; it was not run again. Use another key to run it again",
            done.query,
        )

    def _wait_s(self, client: ClientPort, request: QueryRequest, work_s: float) -> float:
        """How long a query would wait, if that may be longer than some limit."""
        if not self._gate.limits_waits(request):
            return 0.0
        most_s = self._loop.ask(lambda coordinator: coordinator.gate.wait_limit_at_risk_s(request))
        if most_s is None:
            return 0.0
        connection_wait_s = 0.0
        if client.needs_own(request):
            work_ahead_s = self._loop.ask(lambda coordinator: coordinator.connection_work_s(client))
            connection_wait_s = work_ahead_s / self.backend.slots
        return max(connection_wait_s, self._waits.expected_s(request, work_s, most_s))

    def look_at_files(self, statements: Iterable[Classified]) -> None:
        """See what is on disk, before statements about it are entered or planned."""
        self._freshness.look(names_read(statements))

    def run_later(self, work: Callable[[], None]) -> None:
        """Run something later in the background; a short program may end before it runs."""
        self._later(WHILE_S, work)

    def _later(self, seconds: float, work: Callable[[], None]) -> None:
        def start() -> None:
            self._timers.discard(timer)
            self._background.start(work)

        timer = threading.Timer(seconds, start)
        timer.daemon = True
        if not self._closed:
            self._timers.add(timer)
            timer.start()

    def query(self, query: str) -> Ticket:
        """A query by its id: active, or with rows that are kept."""
        self.owner.check()
        self._tickets.expire(self.now())
        found = self._tickets.find(query)
        if found is None:
            raise QueryardError(unknown_name("query", query, self._tickets.names()))
        return found

    def active_query(self, query: str) -> Ticket:
        """A query by its id that has not ended."""
        self.owner.check()
        ticket = self._tickets.held(query)
        if ticket is None or ticket.ended:
            known = [other.id for other in self._tickets.active()]
            raise QueryardError(unknown_name("active query", query, known))
        return ticket

    def cancel(self, query: str, error: BaseException | None = None) -> None:
        """Stop a query; an unknown or ended one is ignored."""
        self.owner.check()
        ticket = self._tickets.find(query)
        if ticket is not None and not ticket.output.complete:
            self._post(inputs.Cancel(query, error or QueryCancelled("cancelled")))

    def release(self, ticket: Ticket) -> None:
        """No handle is held: free the rows, and cancel the query if it only reads.

        A finalizer may call it, in the middle of anything: it takes no lock.
        """
        output = ticket.output
        kept = ticket.keep_s is not None and self._tickets.held(ticket.id) is not None
        if self.owner.is_here and (output.drained or not kept):
            self._post(inputs.Release(ticket.id, output, output.complete))
            self._tickets.release(ticket)

    @contextlib.contextmanager
    def own_connection(self, client: ClientPort) -> Iterator[None]:
        """Hold the client's own connection: wait until no statement uses it, and block others."""
        token = object()
        self._check_open()
        try:
            self._call(token, inputs.AcquireConnection(token, client))
            yield
        finally:
            self._post(inputs.ReleaseConnection(token, client))

    @contextlib.contextmanager
    def turn(self, client: ClientPort, wants: Mapping[str, bool]) -> Iterator[None]:
        """Hold databases: wait until no other client uses them in a way that does not go along."""
        token = object()
        self._check_open()
        try:
            self._call(token, inputs.AcquireTurn(token, client, wants))
            yield
        finally:
            self._post(inputs.ReleaseTurn(token))

    def wait_for_turns(self, most_s: float) -> None:
        """How long queries wait for their turn at a database from now on."""
        self._check_open()
        self._loop.ask(lambda coordinator: coordinator.wait_for_turns(most_s))

    def left(self, client: ClientPort) -> None:
        """The transaction of a client is over, and was ended by no query."""
        self._post(inputs.ClientLeft(client))

    def choose(
        self,
        profile: Mapping[str, Any],
        by: str = BY_OPERATOR,
        reason: str = "",
        portfolio: Portfolio | None = None,
    ) -> None:
        """Follow another policy from now on; what runs is not disturbed.

        A `portfolio` goes on choosing from then on. One that was there before chooses no more; the
        same one goes on, with what it has learnt.
        """
        self._check_open()
        with self._choosing_lock:
            now = self._choosing
            if now is not None and now.portfolio == portfolio:
                return
            self._stop_choosing()
            self._post(inputs.ChoosePolicy(profile, reason, by))
            if portfolio is not None:
                self._choosing = self._chooses(portfolio)

    def _chooses(self, portfolio: Portfolio) -> Choosing:
        def choose(choice: Choice) -> None:
            self._post(inputs.ChoosePolicy(choice.profile, choice.reason, BY_PORTFOLIO))

        return Choosing(portfolio, self._loop.ask, choose, self.now, self._problem)

    def _stop_choosing(self) -> None:
        former, self._choosing = self._choosing, None
        if former is not None:
            former.close()
            told = former.decisions(CHANGES_KEPT, self._ahead_s)
            self._former_decisions = (told + self._former_decisions)[:CHANGES_KEPT]
            self._former_cpu_s += former.cpu_s

    def _query_ended(self, facts: QueryFacts) -> None:
        choosing = self._choosing
        if choosing is not None:
            ended_s = facts.ended_s if facts.error is None else None
            choosing.ended(facts.id, ended_s, facts.work_s, facts.usage.held_s)

    def pause(self, by: str) -> None:
        """Let no waiting query start from now on; what runs goes on."""
        self._check_open()
        self._post(inputs.Pause(by))

    def resume(self) -> None:
        """Let waiting queries start again."""
        self._check_open()
        self._post(inputs.Resume())

    def reset_models(self, models: Collection[str], since_at: float) -> None:
        """Forget what was learnt from queries that ended before a time (seconds since 1970)."""
        self._check_open()
        self._post(inputs.LearnAnew())
        self._estimator.reset(models, since_at, self._tickets.active())

    def limit(self, limits: Limits, tenants: Mapping[str, Limits]) -> None:
        """Hold queries that come from now on to other limits."""
        self._check_open()
        # In its turn: queries that were submitted before were told that they are admitted.
        self._loop.ask(lambda coordinator: coordinator.gate.follow(limits, tenants))

    def _call(self, token: Hashable, given: inputs.Input) -> str:
        """Post something and wait for its reply."""
        reply = self._effects.expect(token)
        self._post(given)
        if self._broken is not None or self._loop.over:
            reply.cancel()
        try:
            return reply.result()
        except CancelledError:
            self._check_open()
            raise

    def _check_open(self) -> None:
        self.owner.check()
        if self._closed:
            raise QueryardError("the session is closed; open another with queryard.connect")
        if self._broken is not None:
            raise QueryardError(
                "the session's scheduler has failed, which is a defect of Queryard's own "
                f"({type(self._broken).__name__}: {self._broken}); close the session and open "
                "another with queryard.connect"
            )

    # --- looking on ------------------------------------------------------------------------------

    def ask(self, question: Callable[[Coordinator], T]) -> T:
        """An instant question to the coordinator, on its own thread."""
        self.owner.check()
        return self._loop.ask(question)

    def views(self) -> tuple[QueryView, ...]:
        """All active queries, the earliest first."""
        return tuple(self.ask(Coordinator.views))

    @property
    def steps(self) -> int:
        """A number that goes up whenever something has happened to a query."""
        return self._loop.decisions

    def overview(self) -> Overview:
        """All active queries and what holds each; cheaper than `why` of every query."""
        found = self.ask(lambda coordinator: coordinator.overview(self.now()))
        facts = (ticket.facts for ticket in self._tickets.active())
        return found._replace(facts=tuple(each for each in facts if each.ended_s is None))

    def load(self) -> Load:
        """How much there is to do."""
        found = self.ask(Coordinator.load)
        return found._replace(decisions=self._loop.decisions, decide_s=self._loop.decide_s)

    def cluster(self) -> ClusterView:
        """All nodes, and the queries that run there."""
        return self.ask(lambda coordinator: coordinator.cluster(self.now()))

    def recent_forecasts(self, share: float) -> Forecasts:
        """The last forecast of all queries; it is renewed for a share of a core at most."""
        return self._forecaster.recent(share)

    def why(self, query: str) -> Why | None:
        return self.ask(lambda coordinator: coordinator.why(query))

    def policy_state(self) -> PolicyState:
        """The policy in force, since when and why."""
        state = self.ask(lambda coordinator: coordinator.policies.state)
        choosing = self._choosing
        return state if choosing is None else replace(state, portfolio=choosing.portfolio.document)

    def profile_in_force(self) -> Mapping[str, Any]:
        """The policy in force, as a table of parts."""
        return self.ask(lambda coordinator: coordinator.policies.profile)

    def policy_changes(self, limit: int = 100) -> tuple[PolicyChange, ...]:
        """The last changes of the policy, the latest first."""
        kept = self.ask(lambda coordinator: tuple(coordinator.policies.changes))
        return kept[::-1][:limit]

    def policy_decisions(self, limit: int = 100) -> list[dict[str, Any]]:
        """The last decisions of portfolios, the latest first."""
        choosing = self._choosing
        latest = [] if choosing is None else choosing.decisions(limit, self._ahead_s)
        return (latest + self._former_decisions)[: max(0, limit)]

    def wait_report(self, ticket: Ticket) -> WaitReport:
        """What there is to say of a query."""
        self.owner.check()
        if ticket.ended:
            return wait_report(ticket, None, None, None, self.now())
        # Before the forecast, which holds Python's lock while it is computed.
        why = self.why(ticket.id)
        newest = self._forecaster.newest()
        forecast = newest.by_query.get(ticket.id)
        made_s = None if forecast is None else newest.made_s
        return wait_report(ticket, why, forecast, made_s, self.now())

    def forecasts(self, wait_s: float) -> dict[str, Forecast]:
        self.owner.check()
        return dict(self._forecaster.newest(wait_s).by_query)

    def _fork(self) -> Fork:
        return self._loop.ask(
            lambda coordinator: Fork(coordinator.kernel.fork(), coordinator.sharers())
        )

    def report(self) -> SessionReport:
        """What the host itself has cost so far."""
        self.owner.check()
        tickets = self._tickets.active()
        running = sum(ticket.facts.started_s is not None for ticket in tickets)
        cost = self.backend.report()
        choosing = self._choosing
        return SessionReport(
            now_s=self.now(),
            waiting=len(tickets) - running,
            running=running,
            decisions=self._loop.decisions,
            decide_s=self._loop.decide_s,
            driver_cpu_s=self._loop.cpu_s,
            watch_cpu_s=cost.cpu_s,
            history_cpu_s=self._recorder.cpu_s,
            portfolio_cpu_s=self._former_cpu_s + (choosing.cpu_s if choosing else 0.0),
            bursts=cost.bursts,
            burst_s=cost.burst_s,
            sprints=cost.sprints,
            restarts=cost.restarts,
            restart_s=cost.restart_s,
            history_error=self._recorder.error,
            problems=tuple(self._problems),
        )

    def _problem(self, error: BaseException) -> None:
        """Note an error that cost a better estimate, but failed no query."""
        if len(self._problems) < PROBLEMS_KEPT:
            self._problems.append(f"{type(error).__name__}: {error}")

    @property
    def session_name(self) -> str:
        """The name of its session in the history; ids of its queries begin with it."""
        return self._recorder.session

    @property
    def history_file(self) -> Path | None:
        """Where the history is; None if there is none."""
        history = self._recorder.history
        return None if history is None else history.file

    def flush_history(self) -> bool:
        """Wait until all that has happened so far can be read in the history; whether it can."""
        history = self._recorder.history
        return history is not None and history.flush()

    def redact_history(self) -> None:
        """Leave values that users wrote into statements out of the history from now on."""
        self._recorder.redacts = True

    @property
    def estimator(self) -> Estimator:
        """What predicts its queries."""
        return self._estimator

    # --- in the background -----------------------------------------------------------------------

    def _record_forecast(self, ticket: Ticket) -> None:
        """Record a forecast, to compare it later with what happened; not too often."""
        if ticket.ended or time.monotonic() < self._next_forecast_s:
            return
        began_s = time.monotonic()
        newest = self._forecaster.newest()
        took_s = time.monotonic() - began_s
        self._next_forecast_s = time.monotonic() + took_s / FORECAST_SHARE
        for query, forecast in newest.by_query.items():
            other = self._tickets.held(query)
            if other is not None and other.first_forecast is None and not other.ended:
                other.first_forecast = TimedForecast(forecast, newest.made_s)
                self._recorder.forecast(query, other.first_forecast)

    def _more_known(self, tables: frozenset[str]) -> None:
        """Statistics have arrived: what waits is estimated anew."""
        names = {self.catalog[key].name.lower() for key in tables if key in self.catalog}
        self._estimator.renew(self._tickets.active(), names)

    def _want_copy(self, table: str) -> None:
        """An online query reads a table that has no shuffled copy."""
        if not self._copy_bytes or not self.catalog.keeps_statistics:
            return
        with self._closing:
            if self._copies is None and not self._closed:
                from queryard.engine.sampling.making import CopyMaker

                active = self._tickets.active
                self._copies = CopyMaker(
                    self.catalog,
                    self._copy_bytes,
                    lambda key: None,
                    self._problem,
                    lambda: bool(active()),
                )
                self._copies.start()
            if self._copies is not None:
                self._copies.wanted(table)

    def _note_cost(self) -> None:
        """Record the session's own cost now and then, while it is open."""
        if not self._closed:
            self._recorder.cost(self.report())
            self._later(COST_EVERY_S, self._note_cost)

    def _break(self, error: BaseException) -> None:
        """The loop itself failed: fail everything that waits for it."""
        self._broken = error
        for ticket in self._tickets.active():
            ticket.facts = replace(ticket.facts, error=error, ended_s=self.now())
            ticket.output.fail(error)
            end_ticket(ticket)
        self._effects.give_up()

    # --- the end ---------------------------------------------------------------------------------

    def close(self) -> bool:
        """Cancel what runs, and free everything; False if something runs on, or it was closed."""
        with self._closing:
            if self._closed:
                return False
            self._closed = True
        with self._choosing_lock:
            self._stop_choosing()
        if self._collector is not None:
            self._collector.stop()
        if self._copies is not None:
            self._copies.stop()
        for timer in list(self._timers):
            timer.cancel()
        tickets = self._tickets.active()
        self._post(inputs.Close(QueryCancelled("the session was closed")))
        deadline = time.monotonic() + CLOSE_S
        for ticket in tickets:
            ticket.over.wait(max(0.0, deadline - time.monotonic()))
        left_s = max(0.0, deadline - time.monotonic())
        stopped = self.backend.close(left_s)
        stopped = self._background.close(deadline) and stopped
        # A Python function may go on for ever; its instance must not be closed under it.
        if stopped:
            self.engine.close()
        for describer in self._describers.values():
            describer.close()
        if self._collector is not None:
            self._collector.close()
        if self._copies is not None:
            self._copies.close()
        self._forecaster.close()
        self._estimator.close()
        self._recorder.cost(self.report())
        self._loop.stop()
        self._effects.give_up()
        self._recorder.close()
        self._temp.close()
        return stopped
