"""Finding out how a session runs a query: by planning it, by asking DuckDB, or by running it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from queryard.core.errors import QueryardError
from queryard.engine.errors import QueryFailed
from queryard.engine.explained import without_first_line
from queryard.engine.kept_tables import KeptColumns
from queryard.engine.native import Parameters
from queryard.engine.plans.tree import root_of
from queryard.engine.syntax.classify import Classified, classify
from queryard.results.answer import Answer
from queryard.results.estimate import Estimate
from queryard.results.explanation import Explanation
from queryard.sql.catalog.canonical import is_text_table

from .client import Client, check_types
from .estimating import ESTIMATED, expected_tasks, native_estimate, staged_estimate
from .request import Plan, QueryRequest, checked_plan
from .sharing import Choice
from .ticket import Ticket

if TYPE_CHECKING:
    from queryard.sql.planner import StagedPlan

Submit = Callable[[str, Parameters, Plan], Ticket]
"""How statements are entered that are run to explain another one."""


def explain(
    client: Client,
    sql: str,
    parameters: Parameters = (),
    *,
    analyze: bool = False,
    plan: Plan | None = None,
    submit: Submit | None = None,
) -> Explanation:
    """How a client's statement would be run; with `analyze` it is run, for the real figures.

    DuckDB is asked by statements that go through the queue; `submit` enters them, where that is
    not the client's own affair.
    """
    submit = submit or _by(client)
    check_types(sql, parameters)
    statement = _only_statement(sql)
    if client.reach.sealed:
        client.checked(sql)
    client.host.look_at_files([statement])
    wanted = checked_plan(plan or client.plan)
    request = client.with_scans(
        QueryRequest(sql, [statement], parameters, wanted, reach=client.reach)
    )
    if request.plan == "auto" and client.host.spreads:
        return _explain_on_cluster(client, request, submit, analyze)
    if request.plan == "auto":
        request = request.chosen(client.host.ask(lambda coordinator: coordinator.choice(request)))
    chosen = _chosen(request)
    if request.plan == "native":
        found = native_explanation(client, request, submit, analyze=analyze)
        return _noted(found, chosen)
    reason = client.not_staged(request)
    if reason is None:
        # The planner takes half a second to import, and most sessions never need it.
        from queryard.sql.planner import NotStageable

        from .planning import check_kept, complete_columns, planned, unsplit_columns

        segments, catalog = client.host.engine.segments, client.catalog
        plan_found = None
        kept: KeptColumns = ()
        try:
            plan_found, _ = planned(request, catalog, segments.target_bytes)
        except NotStageable as error:
            reason = error.reason
            kept = unsplit_columns(request, catalog, segments)
        if plan_found is not None and request.choice is not None:
            kept = complete_columns(plan_found, catalog, segments)
            try:
                if not kept:
                    check_kept(request.choice, plan_found, catalog, segments)
            except NotStageable as error:
                plan_found, reason = None, error.reason
        if kept:
            request = request.over_kept(kept)
            found = native_explanation(client, request, submit, analyze=analyze)
            return _noted(found, _chosen(request))
        if plan_found is not None:
            expected = _noted(_staged(client, request, plan_found), chosen)
            return _run_staged(client, request, expected, submit) if analyze else expected
    assert reason is not None
    return native_explanation(client, request, submit, (reason,), analyze=analyze)


def _explain_on_cluster(
    client: Client, request: QueryRequest, submit: Submit, analyze: bool
) -> Explanation:
    """A statement that leaves its plan open: both are predicted, and compared as a query's are."""
    found = native_explanation(client, request, submit)
    choice, plan = _cluster_choice(client, request)
    request = request.chosen(choice)
    if plan is not None and choice.plan == "staged":
        expected = _noted(_staged(client, request, plan), _chosen(request))
        return _run_staged(client, request, expected, submit) if analyze else expected
    if analyze:
        found = native_explanation(client, request, submit, analyze=True)
    return _noted(found, _chosen(request))


def _cluster_choice(client: Client, request: QueryRequest) -> tuple[Choice, StagedPlan | None]:
    """What would be chosen now, and the staged plan, if one was made for it."""
    host = client.host
    prediction = host.estimator.first(request)
    choice = host.ask(lambda coordinator: coordinator.spread_choice(request, prediction))
    if choice is not None:
        return choice, None
    from queryard.sql.planner import NotStageable

    from .planning import planned
    from .work.staged import StagedOutline

    try:
        plan, tables = planned(request, client.catalog, host.engine.segments.target_bytes)
        if any(is_text_table(table) for table in tables.values()):
            raise NotStageable("large tables of text are not cut into segments on a cluster")
    except NotStageable as error:
        return Choice("native", f"it cannot be split: {error.reason}"), None
    outline = StagedOutline(ESTIMATED, plan)
    choice = host.ask(lambda coordinator: coordinator.spread_choice(request, prediction, outline))
    assert choice is not None, "all is known"
    return choice, plan


def _by(client: Client) -> Submit:
    return lambda sql, parameters, plan: client.submit(sql, parameters, plan=plan)


def _chosen(request: QueryRequest) -> tuple[str, ...]:
    """Why a plan was chosen, where that was left open."""
    choice = request.choice
    return (f"{choice.plan}: {choice.reason}",) if choice is not None and choice.reason else ()


def _noted(found: Explanation, notes: tuple[str, ...]) -> Explanation:
    return replace(found, notes=(*notes, *found.notes))


def estimate(
    client: Client,
    sql: str,
    parameters: Parameters = (),
    *,
    plan: Plan | None = None,
    submit: Submit | None = None,
) -> Estimate:
    """What is expected of a client's statement, which is planned and not run."""
    found = explain(client, sql, parameters, plan=plan, submit=submit).estimate
    assert found is not None, "what was planned here is estimated"
    return found


def explain_query(
    client: Client, ticket: Ticket, submit: Submit | None = None
) -> Explanation | None:
    """How a query is run; None while it is queued for its client's own connection."""
    facts = ticket.facts
    if facts.work is None:
        return None
    found = facts.work.explanation()
    chosen = _chosen(facts.request)
    if found is not None:
        return _noted(found, chosen)
    last = facts.request.statements[-1]  # the answer is that of the last
    request = replace(facts.request, sql=last.sql, statements=[last])
    found = native_explanation(client, request, submit or _by(client), facts.reasons)
    return _noted(found, chosen)


def _only_statement(sql: str) -> Classified:
    statements = classify(sql)
    if len(statements) > 1:
        raise QueryardError(
            f"{len(statements)} statements cannot be explained together; explain one at a time"
        )
    if statements[0].kind == "EXPLAIN":
        raise QueryardError("write the statement itself, without EXPLAIN in front of it")
    return statements[0]


def _staged(client: Client, request: QueryRequest, plan: StagedPlan) -> Explanation:
    """A staged plan, with what is expected of it."""
    from queryard.engine.staged.explained import staged_explanation

    seconds, doubts = expected_tasks(client, request, plan)
    found = staged_explanation(plan, seconds=seconds, doubts=doubts)
    return replace(found, estimate=staged_estimate(client, plan, found.jobs, seconds))


def _run_staged(
    client: Client, request: QueryRequest, expected: Explanation, submit: Submit
) -> Explanation:
    """Run a statement of which it is known that it only reads and can be staged; once."""
    began = time.perf_counter()
    ticket = submit(request.statements[0].sql, request.parameters, "staged")
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
    found = explain_query(client, ticket, submit)
    assert found is not None, "it has run"
    if ticket.facts.reasons:  # a table has changed since it was planned
        return replace(found, seconds=seconds, notes=("it ran, but DuckDB measured nothing",))
    return replace(_beside(expected, found), seconds=seconds)


def _beside(expected: Explanation, found: Explanation) -> Explanation:
    """What was expected beforehand, with what came of it; as found if it was planned anew."""
    if [job.what for job in expected.jobs] != [job.what for job in found.jobs]:
        return found
    jobs = tuple(
        replace(before, rows=after.rows, bytes=after.bytes, seconds=after.seconds)
        for before, after in zip(expected.jobs, found.jobs, strict=True)
    )
    return replace(expected, jobs=jobs)


def native_explanation(
    client: Client,
    request: QueryRequest,
    submit: Submit,
    reasons: Sequence[str] = (),
    *,
    analyze: bool = False,
) -> Explanation:
    """DuckDB's own plan; its operators run as one job."""
    statement = request.statements[-1]
    began = time.perf_counter()
    root = None
    notes: tuple[str, ...] = ()
    if analyze:
        root = _ask(submit, "EXPLAIN (ANALYZE, FORMAT json)", statement, request.parameters)
        notes = () if root is not None else ("DuckDB measured nothing for this statement",)
    seconds = time.perf_counter() - began if analyze else None
    if root is None:
        root = _ask(submit, "EXPLAIN (FORMAT json)", statement, request.parameters)
    told = tuple(reason.removeprefix("not staged: ") for reason in reasons)
    expected = native_estimate(client, request, statement, root, told)
    return Explanation(statement.sql, "native", expected.jobs, told, seconds, notes, expected)


def _ask(
    submit: Submit, prefix: str, statement: Classified, parameters: Parameters
) -> Mapping[str, Any] | None:
    """The topmost operator as DuckDB writes it; None where it gives no plan."""
    try:
        # On a line of its own, so that a line an error shows is one of the user's.
        ticket = submit(f"{prefix}\n{statement.sql}", parameters, "native")
        rows: dict[str, str] = dict(Answer(ticket.output, lambda: None).fetchall())
    except QueryFailed as error:
        raise without_first_line(error) from None
    document = rows.get("physical_plan") or rows.get("analyzed_plan") or "[]"
    return root_of(json.loads(document))
