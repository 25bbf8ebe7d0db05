"""The settings that controls change, one by one, each with a key and a plain value.

A value of the file of settings holds until a control changes it. Values are JSON: the policy by
name or as a document, shares as numbers, limits in seconds and bytes, None for no limit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from queryard.core.model import Tenant
from queryard.core.tenants import SHARES
from queryard.live.admission.limits import Limits
from queryard.live.admission.tenants import Tenants

Key = tuple[str, ...]
PROFILE: Key = ("profile",)
PAUSED: Key = ("paused",)
DRAINING: Key = ("draining",)
LIMITS = ("waiting", "wait_s", "memory_bytes")
FIELDS = (*SHARES, *LIMITS)


def tenant_key(name: str, field: str) -> Key:
    """The key of one setting of a tenant."""
    return ("tenant", name, field)


class FromFile(NamedTuple):
    """What the file of settings says, as a session takes it."""

    profile: str | Mapping[str, Any]
    tenants: Tenants
    limits: Limits

    def value(self, key: Key) -> Any:
        """The value of a setting; of what the file does not name, the usual one.

        >>> said = FromFile("fair", Tenants((Tenant("sales", 2),)), Limits())
        >>> said.value(tenant_key("sales", "weight")), said.value(tenant_key("web", "cap"))
        (2, 1.0)
        """
        if key == PROFILE:
            return plain(self.profile)
        if key[0] != "tenant":
            return None
        _, name, field = key
        if field in LIMITS:
            return getattr(self.tenants.limits.get(name, Limits()), field)
        found = next((tenant for tenant in self.tenants.shares if tenant.name == name), None)
        return SHARES[field] if found is None else getattr(found, field)


def tenants_with(said: FromFile, changed: Mapping[Key, Any]) -> Tenants:
    """The tenants of the file with what controls have changed of them.

    A limit alone gives a tenant no share: the policy stays as it is.

    >>> said = FromFile("fair", Tenants((Tenant("sales", 2),)), Limits())
    >>> found = tenants_with(said, {("tenant", "web", "waiting"): 5})
    >>> [tenant.name for tenant in found.shares], found.limits["web"].waiting
    (['sales'], 5)
    """
    names = [tenant.name for tenant in said.tenants.shares]
    of_tenants = [key for key in changed if key[0] == "tenant"]
    names += [name for _, name, field in of_tenants if field in SHARES]

    def value(name: str, field: str) -> Any:
        key = tenant_key(name, field)
        return changed[key] if key in changed else said.value(key)

    shares: list[Tenant] = []
    limits: dict[str, Limits] = {}
    limited = (*said.tenants.limits, *(key[1] for key in of_tenants))
    for name in dict.fromkeys([*names, *limited]):
        if name in names:
            shares.append(Tenant(name, *(value(name, field) for field in SHARES)))
        held = Limits(*(value(name, field) for field in LIMITS))
        if held != Limits() or name in said.tenants.limits:
            limits[name] = held
    return Tenants(tuple(shares), limits)


def plain(value: Any) -> Any:
    """A value as JSON has it, so that values can be compared across a restart."""
    return json.loads(json.dumps(value, default=_plain))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable):
        return list(value)
    return str(value)
