"""A host: one kernel, one backend, one catalog, one history, and every query by its id.

Embedded, there is one per `connect`; a server has one for all its clients. Calls come from any
thread; all that is decided is decided on the loop's thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from queryard.backends.protocol import Backend
from queryard.core.errors import QueryardError, unknown_name
from queryard.core.scheduler import Scheduler
from queryard.engine.describing import Describer
from queryard.engine.errors import QueryCancelled
from queryard.engine.native import NativeEngine
from queryard.engine.sealing.access import Access, Reach
from queryard.engine.syntax.classify import Classified, names_read
from queryard.engine.temp import TempSpace
from queryard.history import HeldRow
from queryard.portfolio.documents import Portfolio
from queryard.results.accounts import UNLIMITED, Account
from queryard.results.ownership import Owner
from queryard.sql.catalog import Catalog
from queryard.sql.catalog.freshness import Freshness

from . import inputs
from .admission.gate import Gate
from .admission.limits import Limits
from .admission.memory import Reservations
from .background import Background
from .coordinating import Coordinator
from .door import Door
from .effect_runner import EffectRunner, end_ticket
from .estimates.estimator import Estimator
from .estimates.prediction import Predictor
from .estimates.waits import Waits
from .inputs import ClientPort
from .learnt import Learnt
from .looking import Looking
from .loop import Loop, Mailbox
from .planning import tasks_here
from .policy_in_force import PolicyInForce
from .reaches import Reaches
from .recording import COST_EVERY_S, LEARNT_EVERY_S, Recorder
from .request import Plan, QueryRequest
from .submitting import Submitting
from .ticket import Ticket
from .tickets import Tickets
from .upkeep import Upkeep

if TYPE_CHECKING:
    from .work.staged import MakeTasks

T = TypeVar("T")
CLOSE_S = 10.0
# How long queries of which all rows have come are waited for, before the rest is cancelled.
SETTLE_S = 1.0
# How long after the start of a query an instance is opened for the next one.
WHILE_S = 0.25


class Host:
    """Queries go in by `submit`, for a client each; `close` ends everything.

    `looking` is what there is to see of it, `policy` what it follows; `estimator` predicts queries
    by what is `learnt`.
    """

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
        self._reaches = Reaches(catalog, engine.reach)
        self.backend = backend
        self._temp = temp
        self._reservations = reservations
        self._recorder = recorder
        self._tickets = tickets = Tickets()
        mailbox = Mailbox()
        self._post = post = mailbox.post
        self._background = background = Background()
        self.estimator = estimator = Estimator(
            Predictor(catalog),
            recorder.past,
            lambda: len(tickets.active()) < 2,
            background.later,
            lambda query, better: post(inputs.Predicted(query, better)),
            lambda query, error: post(inputs.Cancel(query, error)),
            lambda ticket: self.looking.record_forecast(ticket),
            background.problem,
            lambda: self.looking.forecast_due,
            recorder.learnt,
            lambda learnt: self.learnt.recall(learnt),
        )
        self._upkeep = upkeep = Upkeep(
            catalog, statistics_bytes, tickets, estimator, background.problem, temp.path
        )
        self._effects = effects = EffectRunner(
            post,
            background.workers,
            backend,
            engine,
            tickets,
            recorder,
            estimator,
            temp,
            make_tasks or tasks_here(engine.pool, temp.path),
            self.now,
            background.later,
            upkeep.want_copy,
            lambda facts: self.policy.query_ended(facts),
        )
        # Whether work runs at the nodes of a cluster.
        self.spreads = make_tasks is not None
        coordinator = Coordinator(kernel, gate, reservations, backend.width, profile, self.spreads)
        self._loop = loop = Loop(mailbox, coordinator, effects.carry_out, self._break)
        self._door = door = Door(self.owner, post, loop, effects)
        self.policy = policy = PolicyInForce(door, loop, background.problem)
        self.looking = looking = Looking(door, loop, tickets, backend, recorder, policy, background)
        self.learnt = learnt = Learnt(
            door, loop, recorder, estimator, engine.segments, policy, tickets
        )
        self._submitting = Submitting(
            door,
            loop,
            effects,
            tickets,
            gate,
            backend,
            recorder,
            estimator,
            Waits(lambda: looking.fork().without_sharers(), self.now),
            upkeep,
            policy,
        )
        backend.start(post)
        loop.start()
        policy.start(portfolio)
        upkeep.start()
        if recorder.history is not None:
            background.later(COST_EVERY_S, self._note_cost)
            background.later(LEARNT_EVERY_S, lambda: learnt.keep_again(background))

    # --- clients ---------------------------------------------------------------------------------

    def reach(self, access: Access) -> Reach:
        """What clients with this access reach: one object for all of them."""
        return self._reaches.reach(access)

    def keep_reaches(self, accesses: Collection[Access]) -> None:
        """Free what was kept for clients of other accesses, of which none will come."""
        self._reaches.keep_only(accesses)

    def check_open(self) -> None:
        """Raise in a forked process, and where the host is closed or has failed."""
        self._door.check_open()

    def describer(self, reach: Reach) -> Describer:
        """What describes statements for clients of a reach."""
        self._door.check_open()
        return self._reaches.describer(reach)

    def own_connection(self, client: ClientPort) -> AbstractContextManager[None]:
        """Hold the client's own connection: wait until no statement uses it, and block others."""
        return self._door.own_connection(client)

    def turn(self, client: ClientPort, wants: Mapping[str, bool]) -> AbstractContextManager[None]:
        """Hold databases: wait until no other client uses them in a way that does not go along."""
        return self._door.turn(client, wants)

    def left(self, client: ClientPort) -> None:
        """The transaction of a client is over, and was ended by no query."""
        self._post(inputs.ClientLeft(client))

    # --- queries ---------------------------------------------------------------------------------

    @property
    def temp(self) -> Path:
        """Where temporary files go."""
        return self._temp.path

    def now(self) -> float:
        """The host's clock: seconds since it began. All times it tells are on it."""
        return self._loop.now()

    def ask(self, question: Callable[[Coordinator], T]) -> T:
        """An instant question to the coordinator, on its own thread."""
        return self._door.ask(question)

    def look_at_files(self, statements: Iterable[Classified]) -> None:
        """See what is on disk, before statements about it are entered or planned."""
        self._freshness.look(names_read(statements))

    def look_around(self) -> None:
        """See what is on disk, before tables are listed."""
        self._freshness.look_around()

    def run_later(self, work: Callable[[], None]) -> None:
        """Run something later in the background; a short program may end before it runs."""
        self._background.later(WHILE_S, work)

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
        return self._submitting.submit(client, request, key, keep_s, account)

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
            if not output.spent:  # else the loop would be woken for nothing
                self._post(inputs.Release(ticket.id, output, output.complete))
            self._tickets.release(ticket)

    # --- for operators ---------------------------------------------------------------------------

    def pause(self, by: str) -> None:
        """Let no waiting query start from now on; what runs goes on."""
        self._door.check_open()
        self._post(inputs.Pause(by))

    def resume(self) -> None:
        """Let waiting queries start again."""
        self._door.check_open()
        self._post(inputs.Resume())

    def limit(self, limits: Limits, tenants: Mapping[str, Limits]) -> None:
        """Hold queries that come from now on to other limits."""
        self._door.check_open()
        # In its turn: queries that were submitted before were told that they are admitted.
        self._loop.ask(lambda coordinator: coordinator.gate.follow(limits, tenants))

    def tell_problems(self, hear: Callable[[str, str], None]) -> None:
        """Tell of errors that fail no query, each once: the kind and the text; `hear` is short."""
        self._background.tell_problems(hear)

    def wait_for_turns(self, most_s: float) -> None:
        """How long queries wait for their turn at a database from now on."""
        self._door.check_open()
        self._loop.ask(lambda coordinator: coordinator.wait_for_turns(most_s))

    # --- the history -----------------------------------------------------------------------------

    @property
    def session_name(self) -> str:
        """The name of its session in the history; ids of its queries begin with it."""
        return self._recorder.session

    @property
    def history_file(self) -> Path | None:
        """Where the history is; None if there is none."""
        history = self._recorder.history
        return None if history is None else history.file

    def record_holds(self, query: str, seconds: Mapping[str, float]) -> None:
        """Keep for how long what has held a query before its first slot."""
        history = self._recorder.history
        if history is not None:
            for reason, held_s in seconds.items():
                history.held(HeldRow(query, reason, held_s))

    def flush_history(self) -> bool:
        """Wait until all that has happened so far can be read in the history; whether it can."""
        history = self._recorder.history
        return history is not None and history.flush()

    def redact_history(self) -> None:
        """Leave values that users wrote into statements out of the history from now on."""
        self._recorder.redacts = True

    def _note_cost(self) -> None:
        """Record the session's own cost now and then, while it is open."""
        if not self._door.closed:
            self._recorder.cost(self.looking.report())
            self._background.later(COST_EVERY_S, self._note_cost)

    # --- the end ---------------------------------------------------------------------------------

    def _break(self, error: BaseException) -> None:
        """The loop itself failed: fail everything that waits for it."""
        self._door.broken = error
        for ticket in self._tickets.active():
            ticket.facts = replace(ticket.facts, error=error, ended_s=self.now())
            ticket.output.fail(error)
            end_ticket(ticket)
        self._effects.give_up()

    @property
    def pool_bytes(self) -> int:
        """What one query can reserve at most; on a cluster, at any of the nodes that there are."""
        return self._reservations.pool_bytes

    def most_bytes(self, plan: Plan) -> int:
        """What a query may reserve: in tasks, all that the nodes of a cluster have together."""
        if not self.spreads or plan == "native":
            return self.pool_bytes
        return int(self.ask(lambda coordinator: coordinator.kernel.state.memory_bytes))

    def close(self) -> bool:
        """Cancel what runs, and free everything; False if something runs on, or it was closed."""
        if not self._door.close():
            return False
        self._background.stop()
        self.policy.close()
        self._upkeep.stop()
        tickets = self._tickets.active()
        deadline = time.monotonic() + SETTLE_S
        for ticket in tickets:
            if ticket.output.complete:
                ticket.over.wait(max(0.0, deadline - time.monotonic()))
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
        self._reaches.close()
        self._upkeep.close()
        self.looking.close()
        self.estimator.close()
        self._recorder.cost(self.looking.report())
        self.learnt.keep()
        self._loop.stop()
        self._effects.give_up()
        self._recorder.close()
        self._temp.close()
        return stopped
