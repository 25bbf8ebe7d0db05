"""The one reader of tenants: their shares one by one, and what all of them together promise.

Files and callers give tenants in different forms. Each form has its own way to say where a mistake
stands, and hands it in as `fail`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

from .errors import InvalidModel
from .model import Tenant

SHARES: Mapping[str, float] = {"weight": 1.0, "guarantee": 0.0, "cap": 1.0}
"""The shares of a tenant of which nothing is said."""

Fail = Callable[[str | None, str], NoReturn]
"""Raises the error about a field (None: about the tenant as a whole)."""


class Given(Protocol):
    """The fields of one tenant."""

    def __contains__(self, field: str, /) -> bool: ...
    def __getitem__(self, field: str, /) -> Any: ...


def read_tenant(name: str, given: Given, fail: Fail) -> Tenant:
    """One tenant, with each of its shares checked."""
    shares = {field: _number(field, given, fail) for field in SHARES}
    if not 0 < shares["weight"] < math.inf:
        fail("weight", f"must be above 0, got {shares['weight']!r}")
    for field in ("guarantee", "cap"):
        if not 0 <= shares[field] <= 1:
            fail(field, f"a share lies between 0 and 1, got {shares[field]!r}")
    if not shares["cap"]:
        fail("cap", "0 would never let a query of this tenant run")
    if shares["guarantee"] > shares["cap"]:
        fail("guarantee", f"{shares['guarantee']:g} is above the cap of {shares['cap']:g}")
    try:
        return Tenant(name, **shares)
    except InvalidModel as error:
        fail(None, str(error))


def _number(field: str, given: Given, fail: Fail) -> float:
    value = given[field] if field in given else SHARES[field]
    if isinstance(value, bool) or not isinstance(value, int | float):
        fail(field, f"must be a number, got {value!r}")
    return value


def check_together(tenants: Sequence[tuple[Tenant, Fail]]) -> None:
    """Two of one name, or guarantees that add up to too much, are errors of the later tenant."""
    if problem_of([tenant for tenant, _ in tenants]) is None:
        return
    for end, (_, fail) in enumerate(tenants, 1):
        if (problem := problem_of([tenant for tenant, _ in tenants[:end]])) is not None:
            fail(*problem)


def problem_of(tenants: Sequence[Tenant]) -> tuple[str, str] | None:
    """The field at fault and what is wrong with the tenants together; None if nothing is.

    Guarantees are shares of all slots. Those inside a tenant may not be more than its cap.
    """
    for name, times in Counter(tenant.name for tenant in tenants).items():
        if times > 1:
            return "name", f"two tenants are called {name!r}; give it once"
    known = {tenant.name: tenant for tenant in tenants}
    # Parent ("" is all there is) -> what is promised to each of its children.
    promised: dict[str, dict[str, float]] = {"": {}}
    paths = [tenant.name.split("/") for tenant in tenants]
    names = {"/".join(path[:end]) for path in paths for end in range(1, len(path) + 1)}
    for name in sorted(names, key=lambda name: (-name.count("/"), name)):
        inside = promised.get(name, {})
        cap = known[name].cap if name in known else 1.0
        if sum(inside.values()) > cap + 1e-9:
            where = f"the guarantees inside {name!r}"
            return "guarantee", _too_much(where, inside, f"its cap of {cap:g}")
        own = known[name].guarantee if name in known else 0.0
        parent = name.rpartition("/")[0]
        promised.setdefault(parent, {})[name] = max(own, sum(inside.values()))
    if sum(promised[""].values()) > 1 + 1e-9:
        return "guarantee", _too_much("the guarantees", promised[""], "1")
    return None


def _too_much(where: str, promised: Mapping[str, float], most: str) -> str:
    each = ", ".join(f"{name} {share:g}" for name, share in promised.items() if share)
    return f"{where} add up to {sum(promised.values()):g}, more than {most} ({each})"
