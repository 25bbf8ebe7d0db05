"""The shortest way of a query: a plain submission does not pass FastAPI's routing.

Routing, dependencies and middleware take longer than entering a query. What is plain, a body that
the model accepts and no parameter but `wait`, goes to the function of the route at once. Everything
else, whatever is wrong with it included, takes the usual way: errors are made there and only there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from pydantic import ValidationError

from queryard.core.errors import QueryardError

from .bodies import QueryBody
from .guard import Application, Message, Receive, Scope, Send, replayed
from .queries import MOST_WAIT_S
from .replies import problem_reply
from .submitting import submit

_PATH = "/v1/queries"
_WAIT = re.compile(rb"wait=(\d{1,3}(?:\.\d{1,6})?)")


def with_quick_way(app: FastAPI) -> Application:
    """The application, with the short way before it."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        wait_s = _wait_s(scope)
        if wait_s is None:
            await app(scope, receive, send)
            return
        first = await receive()
        body = _body(first)
        if body is None:
            await app(scope, replayed(first, receive), send)
            return
        scope["app"] = app
        try:
            answer = await submit(Request(scope, receive), body, wait_s)
        except QueryardError as error:
            answer = problem_reply(error)
        await answer(scope, receive, send)

    return application


def _wait_s(scope: Mapping[str, Any]) -> float | None:
    """The seconds to wait of a plain submission; None for everything else.

    >>> asked = {"type": "http", "method": "POST", "path": "/v1/queries", "query_string": b""}
    >>> asked["headers"] = [(b"content-type", b"application/json")]
    >>> _wait_s(asked), _wait_s({**asked, "query_string": b"wait=0.5"})
    (0.0, 0.5)
    >>> _wait_s({**asked, "query_string": b"wait=1e3"})
    >>> _wait_s({**asked, "headers": []})
    """
    if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != _PATH:
        return None
    if (b"content-type", b"application/json") not in scope["headers"]:
        return None
    given: bytes = scope["query_string"]
    if not given:
        return 0.0
    found = _WAIT.fullmatch(given)
    wait_s = None if found is None else float(found.group(1))
    return None if wait_s is None or wait_s > MOST_WAIT_S else wait_s


def _body(message: Message) -> QueryBody | None:
    """The body of a request that came in one message; None if the model does not accept it."""
    if message["type"] != "http.request" or message.get("more_body"):
        return None
    try:
        return QueryBody.model_validate(json.loads(message["body"]))
    except (ValueError, RecursionError, ValidationError):
        return None
