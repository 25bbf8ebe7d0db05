"""How queries of a stretch of time did: response, slowdown, deadlines and predictions.

There may be a hundred thousand queries: they stay in Arrow's columns, and Python sees groups only.
"""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from queryard.history import Overviews
from queryard.history.overviews import ended_schema

from .series import Stretch
from .visibility import Visibility

By = Literal["tenant", "template", "size"]
# Queries that are looked at, the latest; rows of a table; steps of time; characters of a template.
MOST_QUERIES = 200_000
MOST_ROWS = 200
STEPS = 60
TEMPLATE_CHARACTERS = 300
# A query that takes less alone counts as if it took this long: its slowdown would say nothing.
LEAST_ALONE_S = 0.01
# Below this a query is too short for its prediction to matter.
LEAST_WORK_S = 0.001
NOT_RUN = "not run"
SIZES = (
    (0.1, "below 0.1 s of work"),
    (1.0, "0.1 s to 1 s of work"),
    (10.0, "1 s to 10 s of work"),
)
LARGEST = "10 s of work and more"


def queries_of(reader: Overviews, visibility: Visibility, since: float, until: float) -> Any:
    """The queries that ended in a stretch of time, and are seen."""
    return reader.ended(
        since, until, visibility.tenant, limit=MOST_QUERIES, characters=TEMPLATE_CHARACTERS
    )


def performance_document(queries: Any | None, by: By, since: float, until: float) -> dict[str, Any]:
    """A row per tenant, template or size, those with most queries first; and steps of time.

    `queries` are those of `queries_of`; None where there is no history.
    """
    stretch = Stretch(since, until, STEPS)
    known = ended_schema().empty_table() if queries is None else queries
    judged = _judged(known, by, stretch)
    groups = sorted(_groups(judged, "key"), key=lambda group: (-len(group[1]), group[0]))
    steps = dict(_groups(judged, "step"))
    rows = [None if step not in steps else _row("", steps[step]) for step in range(stretch.steps)]
    return {
        "since": round(since, 3),
        "until": round(until, 3),
        "by": by,
        "queries": len(judged),
        "is_cut": len(judged) >= MOST_QUERIES,
        "all": _row("", judged),
        "rows": [_row(key, group) for key, group in groups[:MOST_ROWS]],
        "more_rows": max(0, len(groups) - MOST_ROWS),
        "over_time": {
            "at": stretch.times(),
            "queries": [0 if row is None else row["queries"] for row in rows],
            **{
                name: [None if row is None else row[name] for row in rows]
                for name in ("mean_response_s", "p95_response_s", "prediction_error")
            },
        },
    }


def _judged(queries: Any, by: By, stretch: Stretch) -> Any:
    """The figures of each query; null where a query has none.

    A response is that of a query which finished. A slowdown is the response over the time that the
    work takes with all slots; a query that was answered by the execution of another one has none,
    and no factor between its predicted and its actual work.
    """
    outcome, work_s = queries["outcome"], queries["work_s"]
    finished = pc.equal(outcome, "finished")
    response_s = _where(finished, queries["response_s"])
    own = pc.and_(finished, pc.equal(queries["is_twin"], 0))
    alone_s = pc.max_element_wise(pc.divide(work_s, queries["slots"]), LEAST_ALONE_S)
    slowdown = _where(pc.and_(own, pc.is_valid(work_s)), pc.divide(response_s, alone_s))
    predicted_s = queries["foreseen_s"]
    counts = pc.and_(
        own, pc.and_(pc.greater(predicted_s, 0.0), pc.greater_equal(work_s, LEAST_WORK_S))
    )
    factor = pc.divide(_where(counts, predicted_s), _where(counts, work_s))
    factor = pc.max_element_wise(factor, pc.divide(1.0, factor))
    since_s = pc.subtract(queries["ended_at"], stretch.since)
    return pa.table(
        {
            "key": _keys(queries, by),
            "step": pc.cast(pc.floor(pc.divide(since_s, stretch.step_s)), pa.int64()),
            "outcome": outcome,
            "work_s": work_s,
            "response_s": response_s,
            "slowdown": slowdown,
            "factor": factor,
            "met": _met(outcome, queries["late_s"]),
        }
    )


def _keys(queries: Any, by: By) -> Any:
    if by != "size":
        return queries[by]
    work_s = pc.fill_null(queries["work_s"], -1.0)
    found: Any = LARGEST
    for below_s, name in reversed(SIZES):
        found = pc.if_else(pc.less(work_s, below_s), name, found)
    is_not_run = pc.or_(pc.less(work_s, 0.0), pc.equal(queries["outcome"], "refused"))
    return pc.if_else(is_not_run, NOT_RUN, found)


def _met(outcome: Any, late_s: Any) -> Any:
    """Whether each query kept its deadline; null without one, or if it was cancelled before."""
    in_time = pc.less_equal(late_s, 0.0)
    withdrawn = pc.or_(
        pc.equal(outcome, "refused"), pc.and_(pc.equal(outcome, "cancelled"), in_time)
    )
    met = pc.and_(pc.equal(outcome, "finished"), in_time)
    return _where(pc.invert(withdrawn), met)


def _where(holds: Any, values: Any) -> Any:
    """The values where something holds; null elsewhere."""
    return pc.if_else(pc.fill_null(holds, False), values, pa.scalar(None, values.type))


def _groups(judged: Any, name: str) -> list[tuple[Any, Any]]:
    """The queries of each value of a column."""
    ordered = judged.sort_by(name).combine_chunks()
    runs = pc.run_end_encode(ordered[name].combine_chunks())
    found, begin = [], 0
    for value, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        found.append((value, ordered.slice(begin, end - begin)))
        begin = end
    return found


def _row(key: str, group: Any) -> dict[str, Any]:
    outcomes = {
        each["values"]: each["counts"] for each in pc.value_counts(group["outcome"]).to_pylist()
    }
    kept = pc.sum(group["met"]).as_py() or 0
    judged = len(group) - group["met"].null_count
    middle_s, most_s = _quantiles(group["response_s"], 0.5, 0.95)
    return {
        "key": key,
        "queries": len(group),
        "failed": outcomes.get("failed", 0),
        "cancelled": outcomes.get("cancelled", 0),
        "refused": outcomes.get("refused", 0),
        "work_s": _rounded(pc.sum(group["work_s"]).as_py() or 0.0),
        "mean_response_s": _rounded(pc.mean(group["response_s"]).as_py()),
        "p50_response_s": middle_s,
        "p95_response_s": most_s,
        "mean_slowdown": _rounded(pc.mean(group["slowdown"]).as_py()),
        "deadlines": {"met": kept, "missed": judged - kept},
        "prediction_error": _quantiles(group["factor"], 0.5)[0],
    }


def _quantiles(values: Any, *shares: float) -> list[float | None]:
    """Linear between neighbours; None if there are no values."""
    return [_rounded(value) for value in pc.quantile(values, list(shares)).to_pylist()]


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")
