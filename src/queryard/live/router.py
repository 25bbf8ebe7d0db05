"""The questions a session answers from outside, by name; independent of the transport.

Questions about the present (`queries`, `profile`) never wait for a forecast; `forecasts` is a
question of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from queryard.core.errors import QueryardError, unknown_name
from queryard.sim.forecast import Forecast

from .cluster_view import ClusterView
from .facts import QueryView
from .why import WaitReport

Request = Mapping[str, Any]
Reply = dict[str, Any]
"""Either `answer` or `error`."""


class Askable(Protocol):
    """As much of a session as questions need."""

    @property
    def profile(self) -> Mapping[str, Any]: ...
    def now(self) -> float: ...
    def queries(self) -> Sequence[QueryView]: ...
    def forecasts(self) -> Mapping[str, Forecast]: ...
    def why(self, query: str) -> WaitReport: ...
    def use_profile(self, profile: Mapping[str, Any]) -> None: ...
    def cancel(self, query: str) -> None: ...
    def cluster(self) -> ClusterView: ...


def _queries(session: Askable, request: Request) -> Any:
    now_s = session.now()
    return [{**asdict(view), "now_s": now_s} for view in session.queries()]


def _forecasts(session: Askable, request: Request) -> Any:
    return {query: asdict(forecast) for query, forecast in session.forecasts().items()}


def _why(session: Askable, request: Request) -> Any:
    report = session.why(str(request.get("query", "")))
    return {**asdict(report), "text": str(report)}


def _profile(session: Askable, request: Request) -> Any:
    if request.get("profile") is not None:
        session.use_profile(request["profile"])
    return dict(session.profile)


def _cluster(session: Askable, request: Request) -> Any:
    return asdict(session.cluster())


def _cancel(session: Askable, request: Request) -> Any:
    query = str(request.get("query", ""))
    session.why(query)  # it must be active
    session.cancel(query)
    return {"query": query}


QUESTIONS: Mapping[str, Callable[[Askable, Request], Any]] = {
    "queries": _queries,
    "forecasts": _forecasts,
    "why": _why,
    "profile": _profile,
    "cluster": _cluster,
    "cancel": _cancel,
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
