"""The queries of a server, as `queryard why` shows them."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from queryard.remote.session import RemoteSession


def list_on_server(session: RemoteSession) -> list[dict[str, Any]]:
    """Those on their way that the token may see, with when they will end."""
    views = session.queries()
    ends_s = {query: forecast.end_s for query, forecast in session.forecasts().items()}
    now_s = session.now()
    return [
        {"forecast_end_s": ends_s.get(view.id), **asdict(view), "now_s": now_s} for view in views
    ]


def why_on_server(session: RemoteSession, query: str, as_json: bool) -> str:
    """What a query waits for; what became of it, if it has ended."""
    from queryard.remote.errors import NotKnown

    from .past_queries import told_of_past

    try:
        report = session.why(query)
    except NotKnown:
        past = session.past_query(query)
        return json.dumps(asdict(past), indent=1) if as_json else told_of_past(past)
    return json.dumps(asdict(report), indent=1) if as_json else str(report)
