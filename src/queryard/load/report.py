"""What a run was like, in the same numbers as a simulated one; and what ideals would have reached.

A run becomes rows of `queryard.metrics`, so that everything that is computed and drawn from rows
serves loads, too. Slots are not in these rows: only the session knows which query had which slot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from queryard.core.model import Node
from queryard.metrics import NodeRow, QueryRow, RunRows, Summary, summarise
from queryard.metrics.response import Spread, spread
from queryard.metrics.rows import Outcome as Ending
from queryard.sim.references import IDEALS, demands_of
from queryard.workload.load import Alone, Request, as_workload, query_of, size_bin

from .outcome import LATE_S, Cost, Outcome, Played

_GIVEN_UP = ("under way", "cancelled")
_ENDINGS: Mapping[str, Ending] = {
    "finished": "finished",
    "failed": "failed",
    "refused": "failed",
    "cancelled": "cancelled",
    "under way": "unfinished",
}


@dataclass(frozen=True, slots=True)
class Foresight:
    """How right a session was about its queries.

    `forecast_s` is by how many seconds the first forecast of the end was wrong, `forecast_share`
    the same over the response. `prediction` is the factor between predicted and
    real work, 2 for half as for twice as much; `by` counts what predictions were made from.
    """

    forecast_s: Spread
    forecast_share: Spread
    prediction: Spread
    by: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Report:
    """A run in numbers. What only a session knows is None for plain DuckDB and for ideals.

    `utilisation` is the CPU time of the whole process over slots times span; of an ideal, the work.
    """

    name: str
    run: RunRows
    summary: Summary
    requests: int
    utilisation: float | None
    foresight: Foresight | None = None
    cost: Cost | None = None
    span_s: float = 0.0
    burst_s: float = 0.0
    shared: int = 0
    late: int = 0
    most_late_s: float = 0.0
    errors: Mapping[str, int] | None = None
    interrupted: bool = False

    @property
    def own_share(self) -> float | None:
        """The share of a core that Queryard itself took."""
        return self.cost.cpu_s / self.span_s if self.cost is not None and self.span_s else None

    @property
    def responses_s(self) -> dict[str, float]:
        """The response of every request that was answered."""
        found = {query: row.response_s for query, row in self.run.queries.items()}
        return {query: value for query, value in found.items() if value is not None}

    def to_json(self) -> dict[str, Any]:
        """Plain data for `json.dumps`."""
        return {
            "name": self.name,
            "requests": self.requests,
            "interrupted": self.interrupted,
            "span_s": self.span_s,
            "utilisation": self.utilisation,
            "foresight": None if self.foresight is None else asdict(self.foresight),
            "cost": None if self.cost is None else asdict(self.cost),
            "own_share": self.own_share,
            "burst_s": self.burst_s,
            "shared": self.shared,
            "late": self.late,
            "most_late_s": self.most_late_s,
            "errors": dict(self.errors or {}),
            "summary": self.summary.to_json(),
        }


def report(played: Played, alone: Mapping[str, Alone]) -> Report:
    """The numbers of a run; of one that was interrupted, of the requests that had ended."""
    sent, span_s = played.sent, played.span_s
    if played.interrupted:
        sent = tuple(outcome for outcome in sent if outcome.state not in _GIVEN_UP)
    run = RunRows(nodes=[NodeRow(Node("local", played.slots), 0.0)])
    for outcome in sent:
        run.queries[outcome.request.id] = _row(outcome, alone, played.slots)
    run.last_step_s = max((row.end_s or 0.0 for row in run.queries.values()), default=0.0)
    errors = Counter(outcome.error.partition("\n")[0] for outcome in sent if outcome.error)
    return Report(
        name=played.name,
        run=run,
        summary=_summary(run, [outcome.request for outcome in sent], alone),
        requests=len(played.outcomes),
        utilisation=played.cpu_s / (played.slots * span_s) if span_s else None,
        foresight=None if played.cost is None else _foresight(sent),
        cost=played.cost,
        span_s=span_s,
        burst_s=sum(outcome.burst_s for outcome in sent),
        shared=sum(outcome.shared for outcome in sent),
        late=sum(outcome.late_s > LATE_S for outcome in sent),
        most_late_s=max((outcome.late_s for outcome in sent), default=0.0),
        errors=dict(errors.most_common()),
        interrupted=played.interrupted,
    )


def ideals(
    requests: Sequence[Request], alone: Mapping[str, Alone], slots: int
) -> tuple[Report, ...]:
    """Processor sharing and clairvoyant shortest-remaining-first on the same arrivals.

    Their work is what was measured alone. Requests that could not be measured are left out.
    """
    workload = as_workload("load", requests, alone, slots)
    able = [request for request in requests if request.template in alone]
    demands = demands_of(workload, {ask.id: alone[ask.template].alone_s for ask in able})
    found = []
    for name, discipline in IDEALS.items():
        run = RunRows(nodes=[NodeRow(Node("local", slots), 0.0)])
        responses_s = discipline(demands, slots)
        for request in able:
            query, began_s = query_of(request, alone, slots), request.time_s
            end_s = began_s + responses_s[request.id]
            run.queries[request.id] = QueryRow(query, began_s, began_s, end_s, "finished")
        span_s = run.makespan_s or 0.0
        work_s = sum(demand.work_s for demand in demands)
        found.append(
            Report(
                name=name,
                run=run,
                summary=_summary(run, able, alone),
                requests=len(requests),
                utilisation=work_s / (slots * span_s) if span_s else None,
                span_s=span_s,
            )
        )
    return tuple(found)


def _row(outcome: Outcome, alone: Mapping[str, Alone], slots: int) -> QueryRow:
    request = outcome.request
    return QueryRow(
        query=query_of(request, alone, slots),
        submit_s=request.time_s,
        start_s=outcome.started_s,
        end_s=outcome.ended_s,
        outcome=_ENDINGS[outcome.state],
        cause=outcome.error,
        task_s=outcome.work_s or 0.0,
        slot_s=outcome.held_s or 0.0,
    )


def _summary(run: RunRows, requests: Sequence[Request], alone: Mapping[str, Alone]) -> Summary:
    measured = {ask.id: alone[ask.template] for ask in requests if ask.template in alone}
    by_work = sorted(measured.items(), key=lambda item: item[1].work_s)
    return summarise(
        run,
        alone_s={query: found.alone_s for query, found in measured.items()},
        size_bins={query: size_bin(found.work_s) for query, found in by_work},
    )


def _foresight(outcomes: Sequence[Outcome]) -> Foresight:
    wrong_s, shares, factors = [], [], []
    for outcome in outcomes:
        if outcome.state != "finished" or outcome.ended_s is None:
            continue
        if outcome.forecast_end_s is not None and outcome.response_s:
            wrong_s.append(abs(outcome.forecast_end_s - outcome.ended_s))
            shares.append(wrong_s[-1] / outcome.response_s)
        if outcome.predicted_work_s and outcome.work_s and not outcome.shared:
            ratio = outcome.predicted_work_s / outcome.work_s
            factors.append(max(ratio, 1 / ratio))
    by = Counter(outcome.predicted_by for outcome in outcomes if outcome.predicted_by)
    return Foresight(spread(wrong_s), spread(shares), spread(factors), dict(by.most_common()))
