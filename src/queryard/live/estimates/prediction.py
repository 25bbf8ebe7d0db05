"""What a session expects of the queries put to it, and learns from those that have ended."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from queryard.engine.planning import Parameters, Planner
from queryard.engine.sealing.access import ALL, Access
from queryard.engine.syntax.classify import Classified
from queryard.estimate.expected import ExpectedOperator, expected_operators
from queryard.estimate.factors import Factors
from queryard.estimate.planned import Planned, planned, predicted
from queryard.estimate.prices import EDITION, PARTS, REFERENCE, START_S, Features, Part, Rates
from queryard.estimate.work import (
    BYTE_S,
    FIGURES,
    GUESS_S,
    LEAST_S,
    SPREADS,
    Figure,
    Known,
    Prediction,
    Stored,
    bias_of,
    from_past,
    plans_tell,
    raised,
    spread_of,
)
from queryard.sql.catalog import Catalog

from ..request import QueryRequest
from .sizes import TableSizes
from .templates import Past, Templates, template_key

__all__ = ["Foreseen", "PastQuery", "Prediction", "Predictor"]

# So many errors of predictions without a template's past are kept.
MISSES = 64
# For so many different reaches of clients plans are kept at a time.
REACHES = 16


class PastQuery(Protocol):
    """What an earlier query took, as a history tells it."""

    @property
    def template(self) -> str: ...
    @property
    def work_s(self) -> float: ...
    @property
    def peak_memory_bytes(self) -> int | None: ...
    @property
    def table_bytes(self) -> float: ...
    @property
    def outcome(self) -> str: ...


class Foreseen(NamedTuple):
    """A prediction, what it was made of, and what is expected of each operator of the plan.

    Operators come in the order of the plan, each before those it reads from.
    """

    prediction: Prediction
    features: Features
    operators: Sequence[ExpectedOperator]


class Predictor:
    """Predictions for one catalog; from any thread.

    `first` is instant, `refine` asks DuckDB for a plan. `rates` may be set when they are known.
    """

    def __init__(
        self, catalog: Catalog, rates: Rates = REFERENCE, past: Iterable[PastQuery] = ()
    ) -> None:
        self.rates = rates
        self._whole = _Known(Planner(catalog), TableSizes(catalog))
        # What is known within the reach of clients that may not reach all.
        self._within: OrderedDict[Access, _Known] = OrderedDict()
        self._lock = threading.Lock()
        self._templates = Templates()
        # The last log(actual / predicted by bytes) of each template.
        self._misses: OrderedDict[bytes, float] = OrderedDict()
        # How far off predictions by plans are, by what a plan does.
        self._factors: Factors[Part] = Factors(PARTS)
        self.recall(past)

    # --- before a query runs ---------------------------------------------------------------------

    def first(self, request: QueryRequest) -> Prediction:
        """What is known at once: the template's past, else a plan, else the bytes it names."""
        planner, known_sizes = self._known(request)
        sizes = known_sizes.of(request)
        figures = self._templates.figures(request.template)
        if _has_ended(figures):
            return self._from_past(request, figures, sizes)
        plan = self._known_plan(planner, request)
        if plan is not None:
            expected = self._by_plan(plan)
        elif (alike := self._plan([planner.alike(one) for one in request.statements])) is not None:
            # That of other literals.
            expected = self._by_plan(alike)
            expected = replace(expected, spread=max(expected.spread, SPREADS["bytes"]))
        elif any(sizes.values()):
            expected = self._corrected(self._by_bytes(sizes))
        else:
            guess_s = GUESS_S * self.rates.computing
            expected = Prediction(guess_s, None, "guess", SPREADS["guess"])
        return raised(expected, figures, sum(sizes.values()))

    def refine(self, request: QueryRequest) -> Prediction | None:
        """A prediction from DuckDB's plan, within tens of milliseconds; None if it is no better."""
        figures = self._templates.figures(request.template)
        planner, known_sizes = self._known(request)
        sizes = known_sizes.of(request)
        ended = _has_ended(figures)
        if ended and not self._has_new_literals(request, figures, sizes):
            return None
        plan = self._plan(
            [planner.features(statement, given) for statement, given in _with_parameters(request)]
        )
        if plan is None:
            return None
        if ended:
            return self._from_past(request, figures, sizes, plan)
        return raised(self._by_plan(plan), figures, sum(sizes.values()))

    def wants_plan(self, request: QueryRequest) -> bool:
        """Whether `refine` may find a better prediction than `first`; at once."""
        figures = self._templates.figures(request.template)
        if not _has_ended(figures):
            return True
        planner, sizes = self._known(request)
        return (
            self._has_new_literals(request, figures, sizes.of(request))
            and self._known_plan(planner, request) is None
        )

    def _has_new_literals(
        self, request: QueryRequest, figures: list[Figure], sizes: dict[Stored, float]
    ) -> bool:
        """Whether a query differs from all of its template by literals that plans can judge."""
        if not self._past_of(request, figures, sizes).varies:
            return False
        literals = _literals(request)
        return all(figure.literals != literals for figure in figures) and plans_tell(figures)

    def foresee(
        self, request: QueryRequest, statement: Classified, root: Mapping[str, Any]
    ) -> Foreseen:
        """What is expected of a query of one statement and of the operators of its plan.

        It is what the query would be predicted at, also where only the client's own instance could
        plan it.
        """
        planner, known_sizes = self._known(request)
        features = planner.amounts(statement, root)
        plan, sizes = planned([features], self.rates), known_sizes.of(request)
        figures = self._templates.figures(request.template)
        if _has_ended(figures):
            prediction = self._from_past(request, figures, sizes, plan)
        else:
            prediction = raised(self._by_plan(plan), figures, sum(sizes.values()))
        with self._lock:
            operators = expected_operators(features, self.rates, self._factors, prediction.work_s)
        return Foreseen(prediction, features, operators)

    def _from_past(
        self,
        request: QueryRequest,
        figures: list[Figure],
        sizes: dict[Stored, float],
        plan: Planned | None = None,
    ) -> Prediction:
        """The prediction from a template's past, by its literals where they matter."""
        past = self._past_of(request, figures, sizes)
        if not past.varies:
            return past.usual
        if plan is None:
            plan = self._known_plan(self._known(request)[0], request)
        planned_s = 0.0 if plan is None else plan.compared_s
        return from_past(figures, sum(sizes.values()), _literals(request), planned_s)

    def _past_of(
        self, request: QueryRequest, figures: list[Figure], sizes: dict[Stored, float]
    ) -> Past:
        return self._templates.past(
            request.template, figures, sum(sizes.values()), self._by_bytes(sizes)
        )

    def _known_plan(self, planner: Planner, request: QueryRequest) -> Planned | None:
        """The plan of all statements with their literals, if it was made."""
        return self._plan(
            [planner.known(statement, given) for statement, given in _with_parameters(request)]
        )

    def _plan(self, plans: Sequence[Features | None]) -> Planned | None:
        """What all statements do together; None unless all have a plan."""
        known = [plan for plan in plans if plan is not None]
        return planned(known, self.rates) if known and len(known) == len(plans) else None

    def _by_plan(self, plan: Planned) -> Prediction:
        with self._lock:
            return predicted(plan, self._factors)

    def _by_bytes(self, sizes: dict[Stored, float]) -> float:
        work_s = START_S + sum(BYTE_S[stored] * size for stored, size in sizes.items())
        return work_s * self.rates.computing

    def _corrected(self, work_s: float) -> Prediction:
        """A prediction by bytes, times the recent error factor of such predictions."""
        with self._lock:
            misses = list(self._misses.values())
        bias = bias_of(misses)
        spread = spread_of([miss - math.log(bias) for miss in misses], "bytes")
        return Prediction(max(LEAST_S, work_s * bias), None, "bytes", spread)

    # --- while it runs, and afterwards -----------------------------------------------------------

    def running(self, request: QueryRequest, done_s: float) -> bool:
        """Note what a running query has taken so far; whether to predict its template again.

        It is cheap and may be called often.
        """
        if request.plan == "staged":
            return False
        if not self._templates.is_news(request.template, done_s):
            return False
        plan = self._known_plan(self._known(request)[0], request)
        self._templates.runs(
            request.template, self._figure(request, done_s, None, "at least", plan)
        )
        return True

    def forget(self, request: QueryRequest) -> None:
        """A query has failed: learn nothing from what it took."""
        self._templates.runs_no_more(request.template)

    def learn(
        self,
        request: QueryRequest,
        work_s: float,
        peak_memory_bytes: int | None = None,
        known: Known = "exactly",
    ) -> None:
        """Learn what a query took: in full, or a lower bound if it was stopped."""
        if request.plan == "staged":
            return  # staged execution has other costs: nothing to learn for native execution
        planner, known_sizes = self._known(request)
        sizes = known_sizes.of(request)
        key = template_key(request.template)
        by_bytes_s = self._by_bytes(sizes) if any(sizes.values()) else None
        seen = self._templates.count(request.template)
        # A template of which as much is known as is kept says next to nothing new of prices.
        wants_plan = seen < FIGURES or self._templates.varies(request.template)
        plan = self._known_plan(planner, request) if wants_plan else None
        figure = self._figure(request, work_s, peak_memory_bytes, known, plan)
        with self._lock:
            # A stopped query that took less than predicted tells nothing. A frequent query does
            # not outweigh all others.
            if plan is not None and not (known == "at least" and work_s <= plan.work_s):
                self._factors.learn(plan.parts, work_s, (1.0 + seen) ** -2)
            if by_bytes_s is not None and not (known == "at least" and work_s <= by_bytes_s):
                self._misses.pop(key, None)
                self._misses[key] = math.log(max(work_s, LEAST_S) / max(by_bytes_s, LEAST_S))
                if len(self._misses) > MISSES:
                    self._misses.popitem(last=False)
        self._templates.ended(request.template, figure)

    def _figure(
        self,
        request: QueryRequest,
        work_s: float,
        memory_bytes: int | None,
        known: Known,
        plan: Planned | None,
    ) -> Figure:
        """What a query took, and what its plan had promised, if it was planned."""
        planned_s = 0.0 if plan is None else plan.compared_s
        table_bytes = sum(self._known(request).sizes.of(request).values())
        return Figure(work_s, memory_bytes, table_bytes, known, _literals(request), planned_s)

    def reset(self, templates: bool, prices: bool) -> Callable[[], None]:
        """Forget what ended queries have taught: what templates took, how far prices are off.

        What it returns gives back what was forgotten, in the place of what was learnt since.
        """
        past = self._templates.forget() if templates else None
        with self._lock:
            factors, misses = self._factors, self._misses
            if prices:
                self._factors, self._misses = Factors(PARTS), OrderedDict()

        def give_back() -> None:
            with self._lock:
                if prices:
                    self._factors, self._misses = factors, misses
            if past is not None:
                past()

        return give_back

    def recall(self, past: Iterable[PastQuery]) -> None:
        """Learn from queries of earlier sessions, the oldest first."""
        self._templates.recall((row.template, _figure_of(row)) for row in past)

    def learnt(self) -> dict[str, Any]:
        """How far off prices are, by what queries took, as plain data."""
        with self._lock:
            misses = [[key.hex(), miss] for key, miss in self._misses.items()]
            return {"prices": EDITION, "factors": self._factors.to_state(), "misses": misses}

    def recall_learnt(self, state: Any) -> None:
        """Go on from what queries of earlier sessions have taught, unless prices were others."""
        if not isinstance(state, Mapping) or state.get("prices") != EDITION:
            return
        with self._lock:
            self._factors.take_state(state.get("factors"))
            since = self._misses
            self._misses = OrderedDict((bytes.fromhex(key), miss) for key, miss in state["misses"])
            self._misses.update(since)
            while len(self._misses) > MISSES:
                self._misses.popitem(last=False)

    def _known(self, request: QueryRequest) -> _Known:
        """What is known of tables within the reach of a query's client."""
        reach = request.reach
        if reach is None or reach.access == ALL:
            return self._whole
        with self._lock:
            found = self._within.pop(reach.access, None)
            if found is None:
                found = _Known(Planner(reach.catalog, reach.seal), TableSizes(reach.catalog))
            self._within[reach.access] = found
            left = self._within.popitem(last=False)[1] if len(self._within) > REACHES else None
        if left is not None:
            left.planner.close()
        return found

    def close(self) -> None:
        """Free DuckDB's instances for plans."""
        with self._lock:
            within = list(self._within.values())
        for known in (self._whole, *within):
            known.planner.close()


def _figure_of(row: PastQuery) -> Figure:
    known: Known = "exactly" if row.outcome == "finished" else "at least"
    return Figure(row.work_s, row.peak_memory_bytes, row.table_bytes, known)


def _with_parameters(request: QueryRequest) -> list[tuple[Classified, Parameters]]:
    """The statements of a query, of which the last one takes the parameters."""
    *others, last = request.statements
    return [*((one, ()) for one in others), (last, request.parameters)]


def _literals(request: QueryRequest) -> int:
    """A number for a text with its literals and parameters; never 0."""
    return hash((request.sql, repr(request.parameters))) or 1


def _has_ended(figures: Sequence[Figure]) -> bool:
    """Whether a query of a template has run to its end."""
    return any(figure.known == "exactly" for figure in figures)


class _Known(NamedTuple):
    """What plans and sizes are known of some tables."""

    planner: Planner
    sizes: TableSizes
