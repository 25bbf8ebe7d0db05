"""Predictions of queries: a quick one on arrival, a better one later from a background thread.

No query waits for it. The background thread asks DuckDB for plans and reads earlier sessions from
the history. To a query that is alone a plan is of no use, and takes time from it: DuckDB is asked
only if it runs for long.
"""

from __future__ import annotations

import math
import queue
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from functools import partial
from typing import Any

from queryard.engine.calibration import machine_rates
from queryard.engine.errors import QueryFailed
from queryard.engine.syntax.classify import Classified
from queryard.estimate.work import Prediction
from queryard.history import LearntRow, PastRow
from queryard.sql.statistics.store import cache_folder

from ..request import QueryRequest
from ..ticket import Ticket
from .prediction import Foreseen, Predictor
from .refinement import WORTH_PLANNING_S, WORTH_TELLING

# Queries below this are not compared with earlier sessions.
PATIENCE_S = 0.1
# A query that is alone is planned after this time: planning takes about a hundredth of it.
ALONE_S = 1.0
# How long `close` waits for the thread.
CLOSE_S = 5.0
# The model of its own that outlives a session.
PRICES = "prices"


class Estimator:
    """Predictions of one host's queries; from any thread.

    `is_alone` says whether at most one query is active, `later` does something after some seconds.
    `found` is called with a better prediction, `wrong` with the syntax error of a query, `looked`
    after each query that was examined, and `failed` with an error that only cost a better
    prediction. `wants_look` says whether `looked` is of use now for a query that needs no other
    look. `learnt` reads what models of earlier sessions have learnt; `recalled` is called with what
    those of others have.
    """

    def __init__(
        self,
        predictor: Predictor,
        past: Callable[[], Iterable[PastRow]],
        is_alone: Callable[[], bool],
        later: Callable[[float, Callable[[], None]], None],
        found: Callable[[str, Prediction], None],
        wrong: Callable[[str, QueryFailed], None],
        looked: Callable[[Ticket], None],
        failed: Callable[[BaseException], None],
        wants_look: Callable[[], bool] = lambda: True,
        learnt: Callable[[], Iterable[LearntRow]] = tuple,
        recalled: Callable[[Mapping[str, Any]], None] = lambda learnt: None,
    ) -> None:
        self._predictor = predictor
        self._past = past
        self._is_alone = is_alone
        self._later = later
        self._found = found
        self._wrong = wrong
        self._looked = looked
        self._failed = failed
        self._wants_look = wants_look
        self._learnt = learnt
        self._tell_recalled = recalled
        self._calibrated = False
        self._recalled = False
        # Queries of earlier sessions count if they ended after this (seconds since 1970), and what
        # models have learnt if it was kept after that.
        self._since_at = self._kept_since_at = -math.inf
        self._prices_since_at = -math.inf
        self._preparing = threading.Lock()
        self._new: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="queryard-estimator", daemon=True)
        self._started = False

    def first(self, request: QueryRequest) -> Prediction:
        """What is known at once."""
        return self._predictor.first(request)

    def refined(self, request: QueryRequest) -> Prediction | None:
        """A better prediction than the first one, at once; None if there is none.

        The first call may take half a second, as that of `foresee`.
        """
        self._read_past()
        known = self._predictor.first(request)
        if not self._predictor.wants_plan(request):
            return known
        self._calibrate()
        try:
            return self._predictor.refine(request)
        except QueryFailed:
            return None  # it is told when the query runs

    def foresee(
        self, request: QueryRequest, statement: Classified, root: Mapping[str, Any]
    ) -> Foreseen:
        """What is expected of a query with this plan and of its operators, with all that is known.

        The first call may take half a second: it reads the history and calibrates.
        """
        self._read_past()
        self._calibrate()
        return self._predictor.foresee(request, statement, root)

    def learn(
        self, request: QueryRequest, work_s: float, peak_bytes: int | None, known: str
    ) -> bool:
        """Learn what a query took; whether to predict its template's waiting queries again."""
        match known:
            case "exactly" | "at least":
                self._predictor.learn(request, work_s, peak_bytes, known)
            case "running":
                return self._predictor.running(request, work_s)
            case _:
                self._predictor.forget(request)
        return False

    def raise_waiting(self, request: QueryRequest, waiting: Sequence[Ticket]) -> None:
        """Predict for waiting queries of a template at least what a running one has taken.

        There may be many of them, so the background thread does it.
        """
        self._new.put(lambda: self._raise(request, waiting))

    def _raise(self, request: QueryRequest, waiting: Sequence[Ticket]) -> None:
        better = self._predictor.first(request)
        for ticket in waiting:
            facts = ticket.facts
            waits = facts.started_s is None and facts.ended_s is None
            is_more = better.work_s > facts.expected_s * (1 + WORTH_TELLING)
            if waits and is_more and facts.request.template == request.template:
                self._found(ticket.id, better)

    def reset(self, models: Collection[str], since_at: float) -> Callable[[], None]:
        """Forget what was learnt before a time.

        What it returns gives back what was forgotten, in the place of what was learnt since.
        """
        with self._preparing:
            before = self._since_at, self._prices_since_at, self._kept_since_at, self._recalled
            if "templates" in models:
                self._since_at = max(self._since_at, since_at)
            if "prices" in models:
                self._prices_since_at = max(self._prices_since_at, since_at)
            self._kept_since_at = max(self._kept_since_at, since_at)
            forgotten = self._predictor.reset("templates" in models, "prices" in models)

        def give_back() -> None:
            with self._preparing:
                forgotten()
                # What was not read of the history until then is read yet.
                self._since_at, self._prices_since_at, self._kept_since_at, self._recalled = before

        return give_back

    def predict_anew(self, waiting: Sequence[Ticket]) -> None:
        """Predict waiting queries by what is known now."""
        for ticket in waiting:
            self._new.put(partial(self._predict_anew, ticket))

    def _predict_anew(self, ticket: Ticket) -> None:
        facts = ticket.facts
        if facts.started_s is not None or facts.request.program is not None:
            return
        found: Prediction | None = self._predictor.first(facts.request)
        if found is not None and found.by in ("bytes", "guess"):
            found = self._predictor.refine(facts.request) or found
        if found is not None and not ticket.ended:
            self._found(ticket.id, found)

    def renew(self, waiting: Sequence[Ticket], tables: Set[str]) -> None:
        """More is known of some tables: predict the waiting queries anew that name one of them.

        The background thread does it, after all queries that it has still to examine.
        """
        for ticket in waiting:
            names = {name for one in ticket.facts.request.statements for name in one.names}
            if self._started and not names.isdisjoint(tables):
                self._new.put(partial(self._renew, ticket))

    def _renew(self, ticket: Ticket) -> None:
        facts = ticket.facts
        if facts.started_s is None and facts.ended_s is None and facts.prediction.by == "plan":
            better = self._predictor.refine(facts.request)
            if better is not None and not ticket.ended:
                self._found(ticket.id, better)

    def look_closer(self, ticket: Ticket) -> None:
        """Improve the prediction of a query that is in the kernel, on the background thread."""
        if not self._started:
            self._started = True
            self._thread.start()
        facts = ticket.facts
        is_known = self._recalled and facts.prediction.by == "template"
        is_known = is_known and not self._predictor.wants_plan(facts.request)
        # Most queries of a server: the thread is not woken for nothing.
        if not is_known or self._wants_look():
            self._new.put(lambda: self._look_at(ticket))

    @property
    def behind(self) -> int:
        """How many queries the background thread has still to examine."""
        return self._new.qsize()

    def _work(self) -> None:
        while (work := self._new.get()) is not None:
            try:
                work()
            except Exception as error:
                self._failed(error)

    def _look_at(self, ticket: Ticket, waits: bool = True) -> None:
        self._recall(ticket)
        is_alone = waits and self._is_alone()
        self._refine(ticket, plans=not is_alone)
        facts = ticket.facts
        is_long = facts.expected_s >= WORTH_PLANNING_S
        if is_alone and is_long and self._predictor.wants_plan(facts.request):
            held = weakref.ref(ticket)
            self._later(ALONE_S, lambda: self._new.put(lambda: self._look_again(held)))
        self._looked(ticket)

    def _look_again(self, held: weakref.ref[Ticket]) -> None:
        ticket = held()
        if ticket is not None and not ticket.ended:
            self._look_at(ticket, waits=False)

    def _recall(self, ticket: Ticket) -> None:
        """Read earlier sessions from the history, unless the query is very short."""
        if not self._recalled and not ticket.over.wait(PATIENCE_S):
            self._read_past()

    def _read_past(self) -> None:
        with self._preparing:
            if not self._recalled:
                self._recalled = True
                past = self._past()
                self._predictor.recall(row for row in past if row.ended_at > self._since_at)
                self._read_learnt()

    def _read_learnt(self) -> None:
        others = {}
        for row in self._learnt():
            if row.model == PRICES and row.saved_at > self._prices_since_at:
                self._predictor.recall_learnt(row.state)
            elif row.model != PRICES and row.saved_at > self._kept_since_at:
                others[row.model] = row.state
        if others:
            self._tell_recalled(others)

    def learnt(self) -> dict[str, dict[str, Any]] | None:
        """What was learnt, as plain data by the name of the model.

        None as long as it is not known what earlier sessions have learnt: that is to be kept.
        """
        return {PRICES: self._predictor.learnt()} if self._recalled else None

    def _refine(self, ticket: Ticket, plans: bool) -> None:
        facts = ticket.facts
        wants_plan = self._predictor.wants_plan(facts.request)
        if facts.ended_s is not None or (facts.prediction.by == "template" and not wants_plan):
            return
        # It may have arrived before the history was read.
        better: Prediction | None = self._predictor.first(facts.request)
        if wants_plan:
            is_short = facts.started_s is not None and facts.expected_s < WORTH_PLANNING_S
            if is_short or not plans:
                return
            self._calibrate()
            try:
                better = self._predictor.refine(facts.request)
            except QueryFailed as error:
                self._wrong(ticket.id, error)
                return
        if better is not None and not ticket.ended:
            self._found(ticket.id, better)

    def _calibrate(self) -> None:
        """See how fast this machine is, before the first plan is judged."""
        with self._preparing:
            if not self._calibrated:
                self._calibrated = True
                self._predictor.rates = machine_rates(cache_folder() / "rates.json")

    def close(self) -> None:
        self._new.put(None)
        if self._started and threading.current_thread() is not self._thread:
            self._thread.join(CLOSE_S)
        self._predictor.close()
