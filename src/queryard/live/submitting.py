"""How a query enters a host: checked, predicted, admitted or refused, and given a ticket."""

from __future__ import annotations

from collections.abc import Hashable

from queryard.backends.protocol import Backend
from queryard.core.errors import QueryardError
from queryard.core.model import query_ids
from queryard.engine.errors import QueryCancelled
from queryard.estimate.work import SPREADS, Prediction
from queryard.results.accounts import Account
from queryard.results.streams import ResultStream

from . import inputs
from .admission.gate import Gate
from .admission.limits import AlreadyRan
from .door import Door
from .effect_runner import EffectRunner
from .estimates.estimator import Estimator
from .estimates.waits import Waits
from .facts import QueryFacts
from .inputs import ClientPort
from .keys import check_no_transaction
from .loop import Loop
from .policy_in_force import PolicyInForce
from .recording import Recorder
from .request import QueryRequest
from .ticket import Ticket
from .tickets import Tickets
from .upkeep import Upkeep

# How long a loop that has failed may take to end its queries.
LAST_WORDS_S = 1.0


class Submitting:
    """Queries go in by `submit`, from any thread."""

    def __init__(
        self,
        door: Door,
        loop: Loop,
        effects: EffectRunner,
        tickets: Tickets,
        gate: Gate,
        backend: Backend,
        recorder: Recorder,
        estimator: Estimator,
        waits: Waits,
        upkeep: Upkeep,
        policy: PolicyInForce,
    ) -> None:
        self._door = door
        self._loop = loop
        self._effects = effects
        self._tickets = tickets
        self._gate = gate
        self._backend = backend
        self._recorder = recorder
        self._estimator = estimator
        self._waits = waits
        self._upkeep = upkeep
        self._policy = policy
        self._ids = query_ids(recorder.session)

    def submit(
        self,
        client: ClientPort,
        request: QueryRequest,
        key: Hashable | None,
        keep_s: float | None,
        account: Account,
    ) -> Ticket:
        """Submit a query; raises the reason if it is refused: see `Host.submit`."""
        self._door.check_open()
        self._upkeep.want_statistics(request.statements)
        if not request.idempotency_key:
            return self._submit(client, request, key, keep_s, account)
        with self._recorder.keys.held(request):
            once = self._is_first(client, request)
            return self._submit(client, request, key, keep_s, account, once)

    def _submit(
        self,
        client: ClientPort,
        request: QueryRequest,
        key: Hashable | None,
        keep_s: float | None,
        account: Account,
        once: bool = False,
    ) -> Ticket:
        """The same; if it runs `once`, the history is told before it begins."""
        prediction = self._first(request)
        wait_s = self._wait_s(client, request, prediction.work_s)
        ticket = self._ticket(request, prediction, keep_s, account)
        query = ticket.id
        if once:
            ticket.once = True
            self._recorder.keys.begin(request, query)
        self._tickets.add(ticket)
        given = inputs.Submit(query, query, client, request, prediction, key, wait_s)
        try:
            entered = self._enter(ticket, given)
        except QueryardError:
            if once:  # it was refused
                self._recorder.keys.end(request, query, ran=False)
            raise
        except BaseException:  # interrupted: it may have been admitted all the same
            error = QueryCancelled("interrupted while it was submitted")
            self._door.post(inputs.Cancel(query, error))
            raise
        if entered == query:
            self._waits.entered(request, prediction.work_s / self._backend.slots)
            self._policy.query_entered()
            return ticket
        self._tickets.drop(query)
        return self._again(entered, request)

    def _ticket(
        self, request: QueryRequest, prediction: Prediction, keep_s: float | None, account: Account
    ) -> Ticket:
        """A query with an id of its own, whose rows tell the loop how they are read."""
        query, post = next(self._ids), self._door.post
        output = ResultStream(account=account)
        output.on_refused = lambda error: post(inputs.Cancel(query, error))
        output.on_full = lambda: post(inputs.ReaderState(query, True))
        output.on_room = lambda: post(inputs.ReaderState(query, False))
        facts = QueryFacts(query, request, self._loop.now(), prediction, prediction.work_s)
        return Ticket(query, facts, output, keep_s)

    def _enter(self, ticket: Ticket, given: inputs.Submit) -> str:
        """Hand a query to the loop; the id of the query that it is, which may be an earlier one."""
        request, query = ticket.request, ticket.id
        if request.idempotency_key or self._gate.has_limits(request):
            return self._door.call(query, given)
        # Nothing can refuse it: the caller need not wait for the loop.
        self._effects.begin_query(query)
        self._door.post(given)
        # A loop that fails just now ends the queries it knows of.
        if self._door.is_deaf and not ticket.over.wait(LAST_WORDS_S):
            self._tickets.drop(query)
            self._effects.end_query(query)
            self._door.check_open()
        return query

    def _first(self, request: QueryRequest) -> Prediction:
        """What is known at once of the work of a query."""
        program = request.program
        if program is None:
            return self._estimator.first(request)
        return Prediction(program.work_s * program.steps, 0, "guess", SPREADS["guess"])

    def _again(self, query: str, request: QueryRequest) -> Ticket:
        """The query that came with the same idempotency key."""
        found = self._tickets.find(query)
        if found is None and request.runs_once:
            raise AlreadyRan(
                f"idempotency_key {request.idempotency_key!r}: its statement has run already, as "
                f"query {query}, and what it returned is kept no more; it was not run again. The "
                "history says how it ended",
                query,
            )
        if found is None:
            raise QueryardError(
                f"idempotency_key {request.idempotency_key!r}: its query {query} has ended and its "
                "rows are kept no more; use another key to run the statement again"
            )
        return found

    def _is_first(self, client: ClientPort, request: QueryRequest) -> bool:
        """Whether a statement must not run again under its key; raises if it has run."""
        check_no_transaction(request, client.in_transaction)
        if not request.runs_once or request.leaves_open(client.in_transaction):
            return False
        if self._loop.ask(lambda coordinator: coordinator.knows_key(request)):
            return False
        self._recorder.keys.check(request)
        return True

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
            connection_wait_s = work_ahead_s / self._backend.slots
        return max(connection_wait_s, self._waits.expected_s(request, work_s, most_s))
