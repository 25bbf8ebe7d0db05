"""Carries out the coordinator's effects: on the loop's thread, or on another if they take long."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from queryard.backends.protocol import Backend
from queryard.backends.workers import Workers
from queryard.core.errors import QueryardError
from queryard.engine import gil_interval
from queryard.engine.errors import QueryCancelled
from queryard.engine.kept_tables import KeptColumns
from queryard.engine.native import NativeEngine
from queryard.engine.online.measure import WrongMeasure
from queryard.engine.sealing.access import Reach
from queryard.engine.temp import TempSpace
from queryard.estimate.work import Prediction

from . import effects as out
from . import inputs
from .effects import Effect
from .estimates.estimator import Estimator
from .facts import QueryFacts
from .inputs import Input
from .online_planning import OnlinePlans, plan_online
from .planning import plan_work
from .recording import Recorder
from .request import QueryRequest
from .ticket import Ticket
from .tickets import Tickets
from .work.base import Work

if TYPE_CHECKING:
    from .work.staged import MakeTasks


class EffectRunner:
    """`post` is the loop's mailbox; `background` runs what takes longer than a moment."""

    def __init__(
        self,
        post: Callable[[Input], None],
        background: Workers,
        backend: Backend,
        engine: NativeEngine,
        tickets: Tickets,
        recorder: Recorder,
        estimator: Estimator,
        temp: TempSpace,
        make_tasks: MakeTasks,
        now: Callable[[], float],
        later: Callable[[float, Callable[[], None]], None],
        want_copy: Callable[[str], None],
        query_ended: Callable[[QueryFacts], None],
    ) -> None:
        self._post = post
        self._background = background
        self._backend = backend
        self._engine = engine
        self._tickets = tickets
        self._recorder = recorder
        self._estimator = estimator
        self._temp = temp
        self._make_tasks = make_tasks
        self._now = now
        self._later = later
        self._want_copy = want_copy
        self._query_ended = query_ended
        self._online_plans = OnlinePlans()
        self._replies: dict[Hashable, Future[str]] = {}
        # Active queries that keep Python's switch interval short.
        self._active: set[str] = set()
        self._carries: dict[type, Callable[[Any], None]] = {
            out.Reply: self._reply,
            out.StartPlanning: self._start_planning,
            out.StartOnline: self._start_online,
            out.AddWork: self._add_work,
            out.Execute: lambda effect: backend.execute(effect.command),
            out.StopWork: lambda effect: backend.stop(effect.query, effect.error),
            out.Forget: lambda effect: backend.forget(effect.query),
            out.CloseWork: lambda effect: self._close(effect.work),
            out.HandOver: self._hand_over,
            out.Spill: self._spill,
            out.FailOutput: self._fail_output,
            out.CloseOutput: lambda effect: effect.output.discard(),
            out.Refine: self._refine,
            out.Learn: self._learn,
            out.GuaranteeUnmet: lambda effect: backend.set_guarantee_unmet(effect.unmet),
            out.Publish: self._publish,
            out.RecordAsked: lambda effect: recorder.asked(effect.facts),
            out.RecordRefused: lambda effect: recorder.refused(*effect),
            out.Ended: self._ended,
        }

    def expect(self, token: Hashable) -> Future[str]:
        """The future result of a `Reply` with this token."""
        reply: Future[str] = Future()
        self._replies[token] = reply
        return reply

    def give_up(self) -> None:
        """The loop has ended: end what it did not hear of, and restore Python's switch interval."""
        for reply in list(self._replies.values()):
            reply.cancel()
        for ticket in self._tickets.active():
            self._refuse(ticket.id, QueryCancelled("the session was closed"))
        for query in list(self._active):
            self.end_query(query)

    def begin_query(self, query: str) -> None:
        """Keep Python's switch interval short until the query ends."""
        if query not in self._active:
            self._active.add(query)
            gil_interval.begin()

    def end_query(self, query: str) -> None:
        """The query has ended, or was never heard of."""
        if query in self._active:
            self._active.discard(query)
            gil_interval.end()

    def carry_out(self, effect: Effect) -> None:
        self._carries[type(effect)](effect)

    def _reply(self, effect: out.Reply) -> None:
        reply = self._replies.pop(effect.token, None)
        if effect.error is not None and isinstance(effect.token, str):
            self._refuse(effect.token, effect.error)
        elif effect.query == effect.token:
            self.begin_query(effect.query)
        if reply is None:
            return
        if effect.error is not None:
            reply.set_exception(effect.error)
        else:
            reply.set_result(effect.query)

    def _refuse(self, query: str, error: BaseException) -> None:
        """A query was refused: forget it, but tell a caller that has its handle already."""
        ticket = self._tickets.held(query)
        self._tickets.drop(query)
        self.end_query(query)
        if ticket is not None:
            ticket.facts = replace(ticket.facts, error=error, ended_s=self._now())
            ticket.output.fail(error)
            end_ticket(ticket)

    def _start_planning(self, effect: out.StartPlanning) -> None:
        engine = self._engine
        reach = effect.request.reach or engine.reach
        self._plan(
            effect.query,
            lambda: plan_work(*effect, reach, self._make_tasks, engine.segments),
            reach,
            effect.request if effect.request.plan == "auto" else None,
        )

    def _start_online(self, effect: out.StartOnline) -> None:
        reach = effect.request.reach or self._engine.reach
        known = reach, self._online_plans, self._backend.width, self._want_copy
        self._plan(effect.query, lambda: plan_online(*effect, *known), reach)

    def _plan(
        self,
        query: str,
        make: Callable[[], Work | KeptColumns],
        reach: Reach,
        compares: QueryRequest | None = None,
    ) -> None:
        """Plan a query on another thread; one that `compares` its plans is also predicted anew."""

        def plan() -> None:
            better: Prediction | None = None
            try:
                work = make()
                if compares is not None:
                    better = self._estimator.refined(compares)
            except WrongMeasure as error:
                self._post(inputs.PlanFailed(query, "", reach.told(error)))
            except QueryardError as error:
                self._post(inputs.PlanFailed(query, str(reach.told(error))))
            except BaseException as error:
                self._post(inputs.PlanFailed(query, "", error))
            else:
                if isinstance(work, tuple):
                    self._post(inputs.FoundKept(query, work))
                else:
                    self._post(inputs.Planned(query, work, better))

        self._background.start(plan)

    def _add_work(self, effect: out.AddWork) -> None:
        ticket = self._tickets.held(effect.query)
        if ticket is not None:
            self._backend.add(effect.query, effect.work.for_backend(ticket.output))

    def _hand_over(self, effect: out.HandOver) -> None:
        ticket = self._tickets.held(effect.query)
        assert ticket is not None, "it has not ended"

        def hand_over() -> None:
            error: BaseException | None = None
            try:
                effect.work.hand_over(ticket.output)
            except BaseException as caught:
                error = caught
            self._post(inputs.HandedOver(effect.query, error))

        self._background.start(hand_over)

    def _spill(self, effect: out.Spill) -> None:
        ticket = self._tickets.held(effect.query)
        if ticket is not None:
            ticket.output.overflow_into(self._temp.file(".arrow"))

    def _fail_output(self, effect: out.FailOutput) -> None:
        ticket = self._tickets.held(effect.query)
        if ticket is None:
            return
        ticket.output.fail(effect.error)
        online = ticket.request.online
        if online is not None and online.log.newest is None:
            # Its thread may be in a step of DuckDB's for long: nothing waits for that.
            online.log.close()

    def _refine(self, effect: out.Refine) -> None:
        ticket = self._tickets.held(effect.query)
        if ticket is not None:
            self._estimator.look_closer(ticket)

    def _learn(self, effect: out.Learn) -> None:
        self._learn_scan(effect)
        if self._estimator.learn(*effect):
            self._estimator.raise_waiting(effect.request, self._tickets.active())

    def _learn_scan(self, effect: out.Learn) -> None:
        """What a query over one table of text took is what it takes DuckDB to scan that."""
        request = effect.request
        if effect.known != "exactly" or request.kept or len(request.scans) != 1:
            return
        (scan,) = request.scans
        if scan.is_all:
            self._engine.segments.scanned(
                scan.table, scan.bytes, scan.rows, scan.columns, effect.work_s
            )

    def _publish(self, effect: out.Publish) -> None:
        ticket = self._tickets.held(effect.facts.id)
        if ticket is not None:
            ticket.facts = effect.facts

    def _ended(self, effect: out.Ended) -> None:
        facts = effect.facts
        self._backend.forget(facts.id)
        ticket = self._tickets.held(facts.id)
        assert ticket is not None, "a query ends once"
        ticket.facts = facts
        self._recorder.ended(facts, ticket.status, ticket.output.rows)
        self.end_query(facts.id)
        self._query_ended(facts)
        self._tickets.ended(ticket, self._now())
        if ticket.keep_s is not None:
            self._later(ticket.keep_s, lambda: self._tickets.expire(self._now()))
        if effect.work is not None:
            self._close(effect.work)
        if ticket.once:
            self._background.start(lambda: self._end_once(ticket, effect.lasts))
        else:
            end_ticket(ticket)

    def _close(self, work: Work) -> None:
        if work.holds:
            self._background.start(work.close)

    def _end_once(self, ticket: Ticket, lasts: bool) -> None:
        """Write down whether a statement has run under its key, and only then tell its end."""
        ran: bool | None = ticket.status == "finished" and lasts
        if ticket.status != "finished" and ticket.request.is_script:
            ran = None  # some of its statements may have
        try:
            self._recorder.keys.end(ticket.request, ticket.id, ran)
        finally:
            end_ticket(ticket)


def end_ticket(ticket: Ticket) -> None:
    """Wake all that wait for a query; what was needed to run it goes."""
    for statement in ticket.request.statements:
        statement.forget_words()
    ticket.over.set()
    if ticket.request.online is not None:
        ticket.request.online.log.close()
    ticket.tell_over()
