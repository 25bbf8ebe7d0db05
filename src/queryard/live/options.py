"""The named options of `connect` and `submit`, for the functions that hand them on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypedDict

from queryard.core.errors import unknown_name
from queryard.core.model import Tenant

from .request import Plan
from .settings import Collecting


class QueryOptions(TypedDict, total=False):
    """Those of `Session.submit`."""

    plan: Plan | None
    tenant: str | None
    priority: float
    memory: int | str | None
    time_limit: float | str | None
    deadline: float | str | timedelta | datetime | None
    idempotency_key: str
    keep: float | str | None


# Those that `Session.online` has besides.
ONLINE_OPTIONS = ("stop_at", "confidence", "every", "within", "columns", "groups", "measure")


class SessionOptions(TypedDict, total=False):
    """Those of `queryard.connect`."""

    tables: Mapping[str, object] | None
    slots: int | tuple[int, int] | None
    memory: int | str | None
    write: bool
    temp: str | Path | None
    plan: Plan | None
    profile: str | Mapping[str, Any] | None
    tenants: Mapping[str, Any] | Sequence[Tenant] | None
    limits: Mapping[str, Any] | None
    history: bool | str | Path | None
    retention: Mapping[str, Any] | None
    fresh: float | str | None
    slow_start: float | None
    statistics: Collecting | None
    backend: str | Mapping[str, Any] | None
    address: str | None


def check_options(given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a name that is no option, as Python does, and say which there are.

    >>> check_options(["tenent"], ["plan", "tenant"])
    Traceback (most recent call last):
    TypeError: unknown option 'tenent'; did you mean 'tenant'? (valid: plan, tenant)
    """
    names = tuple(known)
    for name in given:
        if name not in names:
            raise TypeError(unknown_name("option", name, names))
