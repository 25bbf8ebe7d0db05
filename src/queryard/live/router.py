"""The questions a session answers from outside, by name; independent of the transport.

Questions about the present (`queries`, `overview`, `profile`) never wait for a forecast;
`forecasts` is a question of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from queryard.backends.protocol import NodeNote
from queryard.core.errors import QueryardError, unknown_name
from queryard.sim.forecast import Forecast

from .choosing.state import PolicyChange, PolicyState
from .expected import Expected
from .facts import QueryView
from .overview import Overview, SessionNodes
from .why import WaitReport

Request = Mapping[str, Any]
Reply = dict[str, Any]
"""Either `answer` or `error`."""
# How many decisions are told, unless the caller says so.
LIMIT = 50


Steering = Callable[[Request], Any]
"""Answers questions about the controls of a server, and makes changes there."""


class Askable(Protocol):
    """As much of a session as questions need."""

    @property
    def profile(self) -> Mapping[str, Any]: ...
    @property
    def steering(self) -> Steering | None: ...
    def now(self) -> float: ...
    def queries(self) -> Sequence[QueryView]: ...
    def overview(self) -> Overview: ...
    def expected(self, overview: Overview) -> Mapping[str, Expected]: ...
    def forecasts(self) -> Mapping[str, Forecast]: ...
    def why(self, query: str) -> WaitReport: ...
    def use_profile(self, profile: str | Mapping[str, Any]) -> None: ...
    def policy_state(self) -> PolicyState: ...
    def policy_changes(self, limit: int) -> Sequence[PolicyChange]: ...
    def policy_decisions(self, limit: int) -> list[dict[str, Any]]: ...
    def cancel(self, query: str) -> None: ...
    def cluster(self) -> SessionNodes: ...


def _queries(session: Askable, request: Request) -> Any:
    now_s = session.now()
    return [{**asdict(view), "now_s": now_s} for view in session.queries()]


def _overview(session: Askable, request: Request) -> Any:
    """All active queries, with what holds each, and the cluster, at one moment."""
    found = session.overview()
    about = session.expected(found)
    queries = [
        {
            "id": each.id,
            "sql": each.request.sql,
            "tenant": each.request.tenant,
            "slots": each.slots,
            "progress": each.progress,
            "submitted_s": each.submitted_s,
            "started_s": each.started_s,
            "deadline_s": each.request.deadline_s,
            "predicted_work_s": each.predicted_work_s,
            "work_s": each.work_s,
            "hold": each.hold,
            "position": each.position,
            "turn": each.turn,
            "starts_in_s": about[each.id].start_s,
            "ends_in_s": about[each.id].end_s,
        }
        for each in found.queries
    ]
    return {
        "now_s": found.now_s,
        "slots": found.slots,
        "busy_slots": found.busy_slots,
        "memory_bytes": found.memory_bytes,
        "reserved_bytes": found.reserved_bytes,
        "policy": found.policy.name,
        "paused_by": found.paused_by,
        "queries": queries,
    }


def _forecasts(session: Askable, request: Request) -> Any:
    return {query: asdict(forecast) for query, forecast in session.forecasts().items()}


def _why(session: Askable, request: Request) -> Any:
    report = session.why(str(request.get("query", "")))
    return {**asdict(report), "text": str(report)}


def _profile(session: Askable, request: Request) -> Any:
    profile = request.get("profile")
    if profile is not None and session.steering is not None:
        session.steering({"do": "change", "body": {"change": "profile", "profile": profile}})
    elif profile is not None:
        session.use_profile(profile)
    return dict(session.profile)


def _cluster(session: Askable, request: Request) -> Any:
    found = session.cluster()
    nodes = [
        {**node._asdict(), **found.notes.get(node.name, NodeNote())._asdict()}
        for node in found.nodes
    ]
    return {"nodes": nodes, "refused": list(found.refused)}


def _policy(session: Askable, request: Request) -> Any:
    """The policy in force, how it came to that, and the last decisions of a portfolio."""
    limit = int(request.get("limit", LIMIT))
    ahead_s = time.time() - session.now()
    state = session.policy_state()
    return {
        "policy": {
            "name": state.name,
            "since_at": state.since_s + ahead_s,
            "by": state.by,
            "reason": state.reason,
        },
        "portfolio": None if state.portfolio is None else dict(state.portfolio),
        "changes": [
            {
                "at": change.time_s + ahead_s,
                "from": change.before,
                "to": change.after,
                "by": change.by,
                "reason": change.reason,
            }
            for change in session.policy_changes(limit)
        ],
        "decisions": session.policy_decisions(limit),
    }


def _control(session: Askable, request: Request) -> Any:
    if session.steering is None:
        raise QueryardError(
            "the session is not served, and has no controls; its program can call "
            "Session.pause, use_tenants or use_profile"
        )
    return session.steering(request)


def _cancel(session: Askable, request: Request) -> Any:
    query = str(request.get("query", ""))
    session.why(query)  # it must be active
    session.cancel(query)
    return {"query": query}


QUESTIONS: Mapping[str, Callable[[Askable, Request], Any]] = {
    "queries": _queries,
    "overview": _overview,
    "forecasts": _forecasts,
    "why": _why,
    "profile": _profile,
    "cluster": _cluster,
    "policy": _policy,
    "cancel": _cancel,
    "control": _control,
}


def reply_to(session: Askable | None, request: object) -> Reply:
    """The answer of a session, or what is wrong; it raises nothing."""
    if session is None:
        return {"error": "the session is closed"}
    try:
        if not isinstance(request, Mapping):
            raise QueryardError(f"a question is an object with the key 'ask', got {request!r}")
        name = request.get("ask")
        if not isinstance(name, str) or name not in QUESTIONS:
            raise QueryardError(unknown_name("question", str(name), QUESTIONS))
        return {"answer": QUESTIONS[name](session, request)}
    except QueryardError as error:
        return {"error": str(error)}
    except Exception as error:
        # The caller is of another version, or the session is closing.
        return {"error": f"the session cannot answer ({type(error).__name__}: {error})"}
