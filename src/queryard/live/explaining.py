"""Finding out how a session runs a query: by planning it, by asking DuckDB, or by running it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace

from queryard.core.errors import QueryardError
from queryard.engine.classify import Classified, classify
from queryard.engine.errors import QueryFailed
from queryard.engine.explained import explained, without_first_line
from queryard.engine.native import Parameters
from queryard.engine.plans import PlanNames, PlanOperator, read_plan
from queryard.results.answer import Answer
from queryard.results.explanation import Explanation

from .client import Client, check_types
from .request import Plan, QueryRequest, checked_plan
from .ticket import Ticket


def explain(
    client: Client,
    sql: str,
    parameters: Parameters = (),
    *,
    analyze: bool = False,
    plan: Plan | None = None,
) -> Explanation:
    """How a client's statement would be run; with `analyze` it is run, for the real figures."""
    check_types(sql, parameters)
    statement = _only_statement(sql)
    client.host.look_at_files([statement])
    wanted = checked_plan(plan or client.plan)
    if wanted == "native":
        return native_explanation(client, statement, parameters, analyze=analyze)
    reason = client.not_staged(QueryRequest(sql, [statement], parameters, wanted))
    if reason is None:
        # The planner takes half a second to import, and most sessions never need it.
        from queryard.engine.staged.explained import staged_explanation
        from queryard.sql.planner import NotStageable, plan_staged

        try:
            planned = plan_staged(statement.sql, client.host.catalog)
        except NotStageable as error:
            reason = error.reason
        else:
            return _run_staged(client, statement) if analyze else staged_explanation(planned)
    return native_explanation(client, statement, parameters, (reason,), analyze=analyze)


def explain_query(client: Client, ticket: Ticket) -> Explanation | None:
    """How a query is run; None while it is queued for its client's own connection."""
    facts = ticket.facts
    if facts.work is None:
        return None
    found = facts.work.explanation()
    if found is not None:
        return found
    request = facts.request
    return native_explanation(client, request.statements[-1], request.parameters, facts.reasons)


def _only_statement(sql: str) -> Classified:
    statements = classify(sql)
    if len(statements) > 1:
        raise QueryardError(
            f"{len(statements)} statements cannot be explained together; explain one at a time"
        )
    if statements[0].kind == "EXPLAIN":
        raise QueryardError("write the statement itself, without EXPLAIN in front of it")
    return statements[0]


def _run_staged(client: Client, statement: Classified) -> Explanation:
    """Run a statement of which it is known that it only reads and can be staged; once."""
    began = time.perf_counter()
    ticket = client.submit(statement.sql, plan="staged")
    try:
        for _ in ticket.output:
            pass
        ticket.over.wait()
        seconds = time.perf_counter() - began
    except BaseException:
        client.host.cancel(ticket.id)
        raise
    if ticket.error is not None:
        raise ticket.error
    found = explain_query(client, ticket)
    assert found is not None, "it has run"
    if ticket.facts.reasons:  # a table has changed since it was planned
        return replace(found, seconds=seconds, notes=("it ran, but DuckDB measured nothing",))
    return replace(found, seconds=seconds)


def native_explanation(
    client: Client,
    statement: Classified,
    parameters: Parameters = (),
    reasons: Sequence[str] = (),
    *,
    analyze: bool = False,
) -> Explanation:
    """DuckDB's own plan; its operators run as one job."""
    names = PlanNames(client.host.catalog, statement.names)
    began = time.perf_counter()
    root = None
    notes: tuple[str, ...] = ()
    if analyze:
        root = _ask(client, "EXPLAIN (ANALYZE, FORMAT json)", statement, parameters, names)
        notes = () if root is not None else ("DuckDB measured nothing for this statement",)
    seconds = time.perf_counter() - began if analyze else None
    if root is None:
        root = _ask(client, "EXPLAIN (FORMAT json)", statement, parameters, names)
    jobs = () if root is None else explained(root)
    told = tuple(reason.removeprefix("not staged: ") for reason in reasons)
    return Explanation(statement.sql, "native", jobs, told, seconds, notes)


def _ask(
    client: Client,
    prefix: str,
    statement: Classified,
    parameters: Parameters,
    names: PlanNames,
) -> PlanOperator | None:
    try:
        # On a line of its own, so that a line an error shows is one of the user's.
        ticket = client.submit(f"{prefix}\n{statement.sql}", parameters, plan="native")
        rows: dict[str, str] = dict(Answer(ticket.output, lambda: None).fetchall())
    except QueryFailed as error:
        raise without_first_line(error) from None
    document = rows.get("physical_plan") or rows.get("analyzed_plan") or "[]"
    return read_plan(json.loads(document), names)
