"""The tenants of a session with their shares and limits, from a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, NoReturn

from queryard.core.errors import QueryardError, unknown_name
from queryard.core.model import Tenant
from queryard.core.tenants import SHARES, read_tenant

from .limits import Limits, read_limits

# What a tenant of a server may reach, which the server reads; a session's own client reaches all.
GRANTS = ("tables", "write", "output")
FIELDS = (*SHARES, "limits", "tenants", *GRANTS)


class Tenants:
    """Shares for the policy, limits for admission; tenants not named here have neither."""

    def __init__(self, shares: tuple[Tenant, ...] = (), limits: Mapping[str, Limits] = {}) -> None:
        self.shares = shares
        self.limits = dict(limits)


def read_tenants(given: object, where: str = "tenants") -> Tenants:
    """Tenants by name, each with its shares, its limits and the tenants below it.

    >>> found = read_tenants({"sales": {"weight": 3, "tenants": {"emea": {"guarantee": 0.25}}}})
    >>> [(tenant.name, tenant.weight, tenant.guarantee) for tenant in found.shares]
    [('sales', 3, 0.0), ('sales/emea', 1.0, 0.25)]
    """
    if given is None:
        return Tenants()
    if isinstance(given, Tenants):
        return given
    if not isinstance(given, Mapping):
        if isinstance(given, Iterable) and not isinstance(given, str):
            listed = tuple(given)
            if all(isinstance(tenant, Tenant) for tenant in listed):
                return Tenants(listed)
        raise QueryardError(f"{where}: must be a table of tenants by name, got {given!r}")
    shares: list[Tenant] = []
    limits: dict[str, Limits] = {}
    _read(given, "", where, shares, limits)
    return Tenants(tuple(shares), limits)


def _read(
    given: Mapping[Any, Any],
    above: str,
    where: str,
    shares: list[Tenant],
    limits: dict[str, Limits],
) -> None:
    for name, value in given.items():
        path, place = f"{above}{name}", f"{where}.{name}"
        if not isinstance(value, Mapping):
            raise QueryardError(f"{place}: must be a table such as {{weight = 2}}, got {value!r}")
        for key in value:
            if key not in FIELDS:
                raise QueryardError(f"{place}: {unknown_name('key', str(key), FIELDS)}")
        shares.append(read_tenant(path, value, partial(_fail, place)))
        if "limits" in value:
            limits[path] = read_limits(value["limits"], f"{place}.limits")
        below = value.get("tenants", {})
        if not isinstance(below, Mapping):
            raise QueryardError(f"{place}.tenants: must be a table of tenants, got {below!r}")
        _read(below, f"{path}/", f"{place}.tenants", shares, limits)


def _fail(place: str, field: str | None, problem: str) -> NoReturn:
    raise QueryardError(f"{place}{'' if field is None else f'.{field}'}: {problem}")
