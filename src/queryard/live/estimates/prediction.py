"""What a session expects of the queries put to it, and learns from those that have ended."""

from __future__ import annotations

import hashlib
import math
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from queryard.core.errors import QueryardError
from queryard.engine.access import ALL, Access
from queryard.engine.classify import Classified, all_names
from queryard.engine.planning import Planner
from queryard.engine.remembered import LONGEST
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
    noted,
    raised,
    spread_of,
)
from queryard.sql.catalog import Catalog
from queryard.sql.catalog.model import Table

from ..request import QueryRequest

__all__ = ["Foreseen", "Past", "Prediction", "Predictor"]

# How much is kept: templates, errors of predictions without a template's past, and predictions.
TEMPLATES = 10_000
MISSES = 64
REMEMBERED = 1_000
# For so many different reaches of clients plans are kept at a time.
REACHES = 16
# A running query raises the predictions of its template each time its work grows by this factor.
WORTH_TELLING = 2.0


_STORED: dict[str, Stored] = {
    "parquet": "columns",
    "csv": "text",
    "json": "text",
    "database": "memory",
    "frame": "memory",
}


class Past(Protocol):
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
        self, catalog: Catalog, rates: Rates = REFERENCE, past: Iterable[Past] = ()
    ) -> None:
        self.rates = rates
        self._whole = _Known(Planner(catalog), _Sizes(catalog))
        # What is known within the reach of clients that may not reach all.
        self._within: OrderedDict[Access, _Known] = OrderedDict()
        self._lock = threading.Lock()
        self._past: OrderedDict[bytes, list[Figure]] = OrderedDict()
        # Predictions by template, with what they were made of.
        self._remembered: dict[bytes, tuple[list[Figure], float, Prediction]] = {}
        # Core-seconds of queries that run now, the furthest of each template.
        self._running: dict[bytes, float] = {}
        # The last log(actual / predicted by bytes) of each template.
        self._misses: OrderedDict[bytes, float] = OrderedDict()
        # How far off predictions by plans are, by what a plan does.
        self._factors: Factors[Part] = Factors(PARTS)
        self.recall(past)

    # --- before a query runs ---------------------------------------------------------------------

    def first(self, request: QueryRequest) -> Prediction:
        """What is known at once: the template's past, else its plan, else the bytes it names."""
        planner, known_sizes = self._known(request)
        sizes = known_sizes.of(request)
        figures = self._figures(request)
        if _has_ended(figures):
            return self._from_past(request, figures, sum(sizes.values()))
        plan = self._plan([planner.known(one) for one in request.statements])
        if plan is not None:
            expected = self._by_plan(plan)
        elif any(sizes.values()):
            expected = self._corrected(self._by_bytes(sizes))
        else:
            guess_s = GUESS_S * self.rates.computing
            expected = Prediction(guess_s, None, "guess", SPREADS["guess"])
        return raised(expected, figures, sum(sizes.values()))

    def refine(self, request: QueryRequest) -> Prediction | None:
        """A prediction from DuckDB's plan, within tens of milliseconds; None if it is no better."""
        figures = self._figures(request)
        if _has_ended(figures):
            return None
        last = request.statements[-1]
        planner, known_sizes = self._known(request)
        found = [
            planner.features(statement, request.parameters if statement is last else ())
            for statement in request.statements
        ]
        plan = self._plan(found)
        if plan is None:
            return None
        sizes = known_sizes.of(request)
        return raised(self._by_plan(plan), figures, sum(sizes.values()))

    def foresee(
        self, request: QueryRequest, statement: Classified, root: Mapping[str, Any]
    ) -> Foreseen:
        """What is expected of a query of one statement and of the operators of its plan.

        It is what the query would be predicted at, also where only the client's own instance could
        plan it.
        """
        planner, known_sizes = self._known(request)
        features = planner.amounts(statement, root)
        prediction = self.first(request)
        if prediction.by != "template":
            plan = planned([features], self.rates)
            sizes = sum(known_sizes.of(request).values())
            prediction = raised(self._by_plan(plan), self._figures(request), sizes)
        with self._lock:
            operators = expected_operators(features, self.rates, self._factors, prediction.work_s)
        return Foreseen(prediction, features, operators)

    def _figures(self, request: QueryRequest) -> list[Figure]:
        """What queries of its template took, those that run now included."""
        key = _key(request.template)
        with self._lock:
            figures = self._past.get(key, [])
            running_s = self._running.get(key)
        if running_s is None:
            return figures
        return noted(figures, Figure(running_s, known="at least"))

    def _from_past(
        self, request: QueryRequest, figures: list[Figure], table_bytes: float
    ) -> Prediction:
        """The prediction from a template's past, remembered until something is added to it."""
        key = _key(request.template)
        held = self._remembered.get(key)
        if held is None or held[0] is not figures or held[1] != table_bytes:
            held = (figures, table_bytes, from_past(figures, table_bytes))
            self._remembered[key] = held
            if len(self._remembered) > REMEMBERED:
                self._remembered.clear()
        return held[2]

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
        key = _key(request.template)
        with self._lock:
            told_s = self._running.get(key, LEAST_S)
            if done_s < told_s * WORTH_TELLING:
                return False
            self._running[key] = done_s
            return True

    def forget(self, request: QueryRequest) -> None:
        """A query has failed: learn nothing from what it took."""
        with self._lock:
            self._running.pop(_key(request.template), None)

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
        key = _key(request.template)
        by_bytes_s = self._by_bytes(sizes) if any(sizes.values()) else None
        seen = len(self._past.get(key, ()))
        # A template of which as much is known as is kept says next to nothing new of prices.
        plan = None
        if seen < FIGURES:
            plan = self._plan([planner.known(one) for one in request.statements])
        with self._lock:
            self._running.pop(key, None)
            # A stopped query that took less than predicted tells nothing. A frequent query does
            # not outweigh all others.
            if plan is not None and not (known == "at least" and work_s <= plan.work_s):
                self._factors.learn(plan.parts, work_s, (1.0 + seen) ** -2)
            if by_bytes_s is not None and not (known == "at least" and work_s <= by_bytes_s):
                self._misses.pop(key, None)
                self._misses[key] = math.log(max(work_s, LEAST_S) / max(by_bytes_s, LEAST_S))
                if len(self._misses) > MISSES:
                    self._misses.popitem(last=False)
            self._note(key, Figure(work_s, peak_memory_bytes, sum(sizes.values()), known))

    def reset(self, templates: bool, prices: bool) -> None:
        """Forget what ended queries have taught: what templates took, how far prices are off."""
        with self._lock:
            if templates:
                self._past.clear()
                self._remembered.clear()
            if prices:
                self._factors = Factors(PARTS)
                self._misses.clear()

    def recall(self, past: Iterable[Past]) -> None:
        """Learn from queries of earlier sessions, the oldest first."""
        found: dict[bytes, list[Figure]] = {}
        for row in past:
            known: Known = "exactly" if row.outcome == "finished" else "at least"
            figure = Figure(row.work_s, row.peak_memory_bytes, row.table_bytes, known)
            found.setdefault(_key(row.template), []).append(figure)
        with self._lock:
            for key, figures in found.items():
                since = self._past.pop(key, ())
                for figure in (*figures, *since):
                    self._note(key, figure)

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

    def _note(self, key: bytes, figure: Figure) -> None:
        # A new list: others may be reading the old one.
        self._past[key] = noted(self._past.get(key, []), figure)
        self._past.move_to_end(key)
        if len(self._past) > TEMPLATES:
            self._past.popitem(last=False)

    def _known(self, request: QueryRequest) -> _Known:
        """What is known of tables within the reach of a query's client."""
        reach = request.reach
        if reach is None or reach.access == ALL:
            return self._whole
        with self._lock:
            found = self._within.pop(reach.access, None)
            if found is None:
                found = _Known(Planner(reach.catalog, reach.seal), _Sizes(reach.catalog))
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


def _has_ended(figures: Sequence[Figure]) -> bool:
    """Whether a query of a template has run to its end."""
    return any(figure.known == "exactly" for figure in figures)


def _key(template: str) -> bytes:
    return _hash(template) if len(template) <= LONGEST else _hash.__wrapped__(template)


@lru_cache(maxsize=256)
def _hash(template: str) -> bytes:
    return hashlib.blake2b(template.encode("utf-8", "surrogateescape"), digest_size=16).digest()


class _Known(NamedTuple):
    """What plans and sizes are known of some tables."""

    planner: Planner
    sizes: _Sizes


class _Sizes:
    """The bytes of the tables that a query names, by how they are stored."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._seen: dict[str, Table] = {}
        # Name -> the schema it stands in, how it is stored, its bytes.
        self._by_name: dict[str, list[tuple[frozenset[str], Stored, float]]] = {}

    def of(self, request: QueryRequest) -> dict[Stored, float]:
        self._keep_up()
        # EXPLAIN without ANALYZE reads nothing.
        names = all_names(
            [
                statement
                for statement in request.statements
                if statement.kind != "EXPLAIN" or statement.explained is not None
            ]
        )
        found: dict[Stored, float] = {}
        by_name = self._by_name  # another thread may replace it
        for name in names & by_name.keys():
            for schema, stored, size in by_name[name]:
                if schema <= names:
                    found[stored] = found.get(stored, 0.0) + size
        return found

    def _keep_up(self) -> None:
        """Update new and changed tables; an unchanged table is the same object."""
        tables = self._catalog.tables
        if tables == self._seen:
            return
        by_name: dict[str, list[tuple[frozenset[str], Stored, float]]] = {}
        for table in tables.values():
            schema = frozenset(table.schema.lower().split(".")) if table.schema else frozenset()
            entry = (schema, _STORED[table.kind], _bytes(table))
            by_name.setdefault(table.name.lower(), []).append(entry)
        self._by_name, self._seen = by_name, dict(tables)


def _bytes(table: Table) -> float:
    try:
        return table.bytes
    except QueryardError:  # a query that reads the table gets the error
        return 0.0
