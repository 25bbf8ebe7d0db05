"""Finding out how a session runs a query: by planning it, by asking DuckDB, or by running it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from queryard.core.errors import QueryardError, unknown_name
from queryard.engine.classify import Classified, classify
from queryard.engine.errors import QueryFailed
from queryard.engine.plans import PlanNames, PlanOperator, read_plan
from queryard.results.explanation import ExplainedJob, Explanation
from queryard.sql.planner import NotStageable, StagedPlan, plan_staged

if TYPE_CHECKING:
    from queryard.engine.native import Parameters
    from queryard.engine.staged import JobActuals

    from .session import Session

# A line of the statement, as errors show it, with a pointer below it.
_LINE = re.compile(r"^LINE (\d+):(.*)\n( *)\^", re.MULTILINE)


def explain(
    session: Session,
    sql: str,
    parameters: Parameters = (),
    *,
    analyze: bool = False,
    plan: str | None = None,
) -> Explanation:
    """How a session would run a statement; with `analyze` it is run, for the real figures."""
    from .asked import PLANS

    statement = _only_statement(sql)
    wanted = plan or session.plan
    if wanted not in PLANS:
        raise QueryardError(unknown_name("plan", wanted, PLANS))
    if wanted == "native":
        return native_explanation(session, statement, parameters, analyze=analyze)
    reason = session.not_staged([statement], parameters)
    if reason is None:
        try:
            planned = plan_staged(statement.sql, session.catalog)
        except NotStageable as error:
            reason = error.reason
        else:
            return _run_staged(session, statement) if analyze else staged_explanation(planned)
    return native_explanation(session, statement, parameters, (reason,), analyze=analyze)


def _only_statement(sql: str) -> Classified:
    statements = classify(sql)
    if len(statements) > 1:
        raise QueryardError(
            f"{len(statements)} statements cannot be explained together; explain one at a time"
        )
    if statements[0].kind == "EXPLAIN":
        raise QueryardError("write the statement itself, without EXPLAIN in front of it")
    return statements[0]


def _run_staged(session: Session, statement: Classified) -> Explanation:
    """Run a statement of which it is known that it only reads and can be staged; once."""
    began = time.perf_counter()
    handle = session.submit(statement.sql, plan="staged")
    try:
        for _ in handle.take().batches():
            pass
        handle.wait()
        seconds = time.perf_counter() - began
    except BaseException:
        handle.cancel()
        raise
    if handle.error is not None:
        raise handle.error
    found = handle.explain()
    assert found is not None, "it has run"
    if handle.reasons:  # a table has changed since it was planned
        return replace(found, seconds=seconds, notes=("it ran, but DuckDB measured nothing",))
    return replace(found, seconds=seconds)


def native_explanation(
    session: Session,
    statement: Classified,
    parameters: Parameters = (),
    reasons: Sequence[str] = (),
    *,
    analyze: bool = False,
) -> Explanation:
    """DuckDB's own plan; its operators run as one job."""
    names = PlanNames(session.catalog, statement.names)
    began = time.perf_counter()
    root = None
    notes: tuple[str, ...] = ()
    if analyze:
        root = _ask(session, "EXPLAIN (ANALYZE, FORMAT json)", statement, parameters, names)
        notes = () if root is not None else ("DuckDB measured nothing for this statement",)
    seconds = time.perf_counter() - began if analyze else None
    if root is None:
        root = _ask(session, "EXPLAIN (FORMAT json)", statement, parameters, names)
    jobs: list[ExplainedJob] = []
    if root is not None:
        _collect(root, jobs)
    told = tuple(reason.removeprefix("not staged: ") for reason in reasons)
    return Explanation(statement.sql, "native", tuple(jobs), told, seconds, notes)


def _ask(
    session: Session,
    prefix: str,
    statement: Classified,
    parameters: Parameters,
    names: PlanNames,
) -> PlanOperator | None:
    try:
        # On a line of its own, so that a line an error shows is one of the user's.
        answer = session.sql(f"{prefix}\n{statement.sql}", parameters, plan="native")
        rows: dict[str, str] = dict(answer.fetchall())
    except QueryFailed as error:
        told = _LINE.sub(_line_before, str(error))
        if told == str(error):
            raise
        raise type(error)(told) from error
    document = rows.get("physical_plan") or rows.get("analyzed_plan") or "[]"
    return read_plan(json.loads(document), names)


def _line_before(found: re.Match[str]) -> str:
    """The number of a line without ours before it; the pointer below it moves with the text.

    >>> _LINE.sub(_line_before, "no x\\n\\nLINE 10: SELECT x\\n                ^")
    'no x\\n\\nLINE 9: SELECT x\\n               ^'
    """
    number = str(int(found[1]) - 1)
    shift = len(found[1]) - len(number)
    return f"LINE {number}:{found[2]}\n{found[3][shift:]}^"


def _collect(operator: PlanOperator, jobs: list[ExplainedJob]) -> str:
    """Append an operator behind all it reads from; its name."""
    inputs = tuple(_collect(below, jobs) for below in operator.inputs)
    name = f"o{len(jobs) + 1}"
    words = (operator.name, operator.table, operator.details)
    jobs.append(
        ExplainedJob(
            name=name,
            operator=operator.operator,
            what=" ".join(word for word in words if word),
            inputs=inputs,
            tables=(operator.table,) if operator.table else (),
            rows_expected=operator.rows_expected,
            bytes_expected=operator.bytes_expected,
            rows=operator.rows,
            bytes=operator.bytes,
            seconds=operator.seconds,
        )
    )
    return name


def staged_explanation(
    plan: StagedPlan, actuals: Mapping[str, JobActuals] | None = None
) -> Explanation:
    """The jobs of a staged plan, with what they did if they ran."""
    jobs = []
    for job in plan.describe():
        done = (actuals or {}).get(job["job"])
        ran = done is not None and done.tasks_done > 0
        jobs.append(
            ExplainedJob(
                name=job["job"],
                operator=job["operator"],
                what=job["description"],
                inputs=tuple(job["upstream"]),
                tables=tuple(job["tables"]),
                map_tasks=job["map_tasks"],
                reduce_tasks=job["reduce_tasks"],
                rows_expected=job["rows"],
                bytes_expected=job["bytes"],
                rows=float(done.rows) if done is not None and ran else None,
                bytes=float(done.bytes) if done is not None and ran else None,
                seconds=done.seconds if done is not None and ran else None,
            )
        )
    return Explanation(plan.sql, "staged", tuple(jobs))
