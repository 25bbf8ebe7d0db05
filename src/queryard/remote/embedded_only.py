"""What only an embedded session has: a session on a server names it, with what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from .errors import NotOnServer


class _NoAttribute(NotOnServer, AttributeError):
    """Of attributes: what asks whether there is one is told that there is none."""


def _method(name: str, why: str, remedy: str) -> Callable[..., NoReturn]:
    def refused(self: object, *given: Any, **options: Any) -> NoReturn:
        raise NotOnServer(_text(name, remedy))

    refused.__name__ = name
    refused.__doc__ = f"Refused: {why}."
    return refused


def _attribute(name: str, why: str, remedy: str) -> property:
    def refused(self: object) -> NoReturn:
        raise _NoAttribute(_text(name, remedy))

    return property(refused, doc=f"Refused: {why}.")


def _text(name: str, remedy: str) -> str:
    return f"{name}: a session on a server cannot do this; {remedy}"


_CATALOG = "the tables of a server are named in its catalog file"
_ADMINS = "what a server does is changed by its admins, on record"
_SHOWN = "what a server does is told as documents"
_INSIDE = "the server is another process"
_CONTROLS = "an admin's token has controls.show(), and `queryard control` shows it"
_SCHEDULER = "scheduler() has the policy, its changes and the decisions of a portfolio"
_METRICS = "GET /metrics has the figures of the server"


class EmbeddedOnly:
    """The names of an embedded session that a server does not offer."""

    create_function = _method(
        "create_function",
        "a Python function cannot run on a server",
        "write it as a macro: CREATE TEMP MACRO …",
    )
    register = _method(
        "register",
        _CATALOG,
        "name the table in the server's catalog file, or CREATE TEMP TABLE …",
    )
    unregister = _method("unregister", _CATALOG, _CATALOG)
    iterate = _method(
        "iterate", "a Python program cannot run on a server", "run it in an embedded session"
    )
    shuffle = _method(
        "shuffle",
        "shuffled copies are made where the data is",
        "run `queryard shuffle TABLE` on the server's machine",
    )
    report = _method("report", "what a server costs is in its metrics", _METRICS)
    overview = _method(
        "overview", _SHOWN, "GET /v1/now has it, and `queryard top` and the server's page show it"
    )
    expected = _method(
        "expected", _SHOWN, "`queries` has each query's forecast, GET /v1/now starts and ends"
    )
    cluster = _method(
        "cluster", _SHOWN, "GET /v1/cluster has it, and `queryard cluster` and the page show it"
    )
    policy_state = _method("policy_state", _SHOWN, _SCHEDULER)
    policy_changes = _method("policy_changes", _SHOWN, _SCHEDULER)
    policy_decisions = _method("policy_decisions", _SHOWN, _SCHEDULER)
    use_tenants = _method(
        "use_tenants",
        _ADMINS,
        "use controls.tenant(NAME, weight=…), or change the server's catalog file and send SIGHUP",
    )
    pause = _method("pause", _ADMINS, "use controls.pause() with an admin's token")
    resume = _method("resume", _ADMINS, "use controls.resume() with an admin's token")
    reset_models = _method(
        "reset_models", _ADMINS, "use controls.reset_models() with an admin's token"
    )

    profile = _attribute("profile", _SHOWN, _SCHEDULER)
    portfolio = _attribute("portfolio", _SHOWN, _SCHEDULER)
    chosen_profile = _attribute("chosen_profile", _SHOWN, _SCHEDULER)
    tenants = _attribute("tenants", _SHOWN, "GET /v1/tenants has them; " + _CONTROLS)
    limits = _attribute("limits", _SHOWN, _CONTROLS)
    tenant_limits = _attribute("tenant_limits", _SHOWN, _CONTROLS)
    paused_by = _attribute("paused_by", _SHOWN, _CONTROLS)
    slots = _attribute("slots", _SHOWN, _METRICS)
    memory_bytes = _attribute("memory_bytes", _SHOWN, _METRICS)
    own_bytes = _attribute("own_bytes", _SHOWN, _METRICS)
    host = _attribute("host", _INSIDE, "the methods of the session ask the server")
    client = _attribute("client", _INSIDE, "the methods of the session ask the server")
    steering = _attribute("steering", _INSIDE, "controls has what an admin can change")
