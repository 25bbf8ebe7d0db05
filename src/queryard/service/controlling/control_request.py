"""From what an admin asks for to a change: names and values are checked here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, get_args

from queryard.core.errors import QueryardError, unknown_name
from queryard.core.tenants import SHARES, read_tenant
from queryard.live.admission.limits import FIELDS as LIMITS
from queryard.live.admission.limits import read_limits
from queryard.live.operated import MODELS

from ..problems import InvalidRequest
from .steered import Key, tenant_key

What = Literal[
    "profile", "tenant", "pause", "resume", "drain", "open", "cancel-tenant", "reset-models"
]
WHAT: tuple[What, ...] = get_args(What)
LONGEST_REASON = 200
_LIMIT_FIELDS = {"waiting": "waiting", "wait": "wait_s", "memory": "memory_bytes"}
_ARGUMENTS: Mapping[What, tuple[str, ...]] = {
    "profile": ("profile",),
    "tenant": ("tenant", *SHARES, "limits"),
    "cancel-tenant": ("tenant",),
    "reset-models": ("models",),
}


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """A change that is asked for.

    `values` are settings of a tenant by key, None for no limit, and for the share that the file of
    settings has, or the usual one; `seen` is the last change that the admin knew of.
    """

    what: What
    reason: str = ""
    seen: int | None = None
    tenant: str = ""
    profile: str | Mapping[str, Any] = ""
    values: tuple[tuple[Key, Any], ...] = ()
    models: tuple[str, ...] = ()


def read_control(given: object) -> ControlRequest:
    """A change from plain data, as `{"change": "tenant", "tenant": "sales", "weight": 3}`.

    >>> read_control({"change": "tenant", "tenant": "sales", "weight": 3}).values
    ((('tenant', 'sales', 'weight'), 3),)
    """
    if not isinstance(given, Mapping):
        raise InvalidRequest(f'a change is an object such as {{"change": "pause"}}, got {given!r}')
    what = given.get("change")
    if what not in WHAT:
        raise InvalidRequest(f"change: {unknown_name('change', str(what), WHAT)}")
    own = _ARGUMENTS.get(what, ())
    for key in given:
        if key not in ("change", "reason", "seen", *own):
            known = ("reason", "seen", *own)
            raise InvalidRequest(f"{what}: {unknown_name('argument', str(key), known)}")
    reason = " ".join(_text(given, "reason").split())
    if len(reason) > LONGEST_REASON:
        raise InvalidRequest(f"reason: at most {LONGEST_REASON} characters, got {len(reason)}")
    seen = given.get("seen")
    if seen is not None and (isinstance(seen, bool) or not isinstance(seen, int)):
        raise InvalidRequest(f"seen: must be the number of a change, got {seen!r}")
    request = ControlRequest(what, reason, seen)
    match what:
        case "profile":
            return _profile(request, given)
        case "tenant":
            return _tenant(request, given)
        case "cancel-tenant":
            return ControlRequest(what, reason, seen, tenant=_name(given))
        case "reset-models":
            return _models(request, given)
    return request


def _text(given: Mapping[Any, Any], key: str) -> str:
    value = given.get(key) or ""
    if not isinstance(value, str):
        raise InvalidRequest(f"{key}: must be a text, got {value!r}")
    return value


def _name(given: Mapping[Any, Any]) -> str:
    name = _text(given, "tenant")
    if not name:
        raise InvalidRequest("tenant: name one, such as sales or sales/emea")
    return name


def _profile(request: ControlRequest, given: Mapping[Any, Any]) -> ControlRequest:
    profile = given.get("profile")
    if not isinstance(profile, str | Mapping) or not profile:
        raise InvalidRequest(
            f"profile: must be the name of a policy or a document of one, got {profile!r}"
        )
    return ControlRequest(request.what, request.reason, request.seen, profile=profile)


def _tenant(request: ControlRequest, given: Mapping[Any, Any]) -> ControlRequest:
    name = _name(given)
    # None is what there would be without changes.
    shares = {field: given[field] for field in SHARES if field in given}
    # Each by itself: together with the other shares of the tenant they are checked when they are
    # taken into use.
    for field, value in shares.items():
        if value is None:
            continue
        fitting = {"guarantee": 0.0, "cap": 1.0} | {field: value}
        read_tenant(name, fitting, lambda field, problem: _fail(name, field, problem))
    values: list[tuple[Key, Any]] = [
        (tenant_key(name, field), value) for field, value in shares.items()
    ]
    if "limits" in given:
        values += _limits(name, given["limits"])
    if not values:
        fields = ", ".join((*SHARES, "limits"))
        raise InvalidRequest(f"tenant {name!r}: nothing is to be changed; give one of {fields}")
    return ControlRequest(
        request.what, request.reason, request.seen, tenant=name, values=tuple(values)
    )


def _limits(name: str, given: object) -> list[tuple[Key, Any]]:
    """Limits that are named, None for none; without a table, no limit at all."""
    table = dict.fromkeys(LIMITS) if given is None else given
    try:
        read = read_limits(table, f"tenant {name!r}: limits")
    except QueryardError as error:
        raise InvalidRequest(str(error)) from error
    assert isinstance(table, Mapping)
    return [
        (tenant_key(name, _LIMIT_FIELDS[key]), getattr(read, _LIMIT_FIELDS[key])) for key in table
    ]


def _models(request: ControlRequest, given: Mapping[Any, Any]) -> ControlRequest:
    wanted = given.get("models", list(MODELS))
    if not isinstance(wanted, list | tuple) or not wanted:
        raise InvalidRequest(f"models: must be a list of {', '.join(MODELS)}, got {wanted!r}")
    for each in wanted:
        if each not in MODELS:
            raise InvalidRequest(f"models: {unknown_name('model', str(each), MODELS)}")
    chosen = tuple(model for model in MODELS if model in wanted)
    return ControlRequest(request.what, request.reason, request.seen, models=chosen)


def _fail(name: str, field: str | None, problem: str) -> NoReturn:
    raise InvalidRequest(f"tenant {name!r}: {'' if field is None else f'{field}: '}{problem}")
