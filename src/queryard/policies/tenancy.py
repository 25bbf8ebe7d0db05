"""Any profile, shared between tenants: whose slots first, then the profile's own order.

>>> profile = for_tenants("tls", [Tenant("web", weight=3, guarantee=0.25)])
>>> profile["pools"]["children"]
{'web': {'order': 'qef', 'weight': 3, 'guarantee': 0.25}}
>>> profile["pools"]["default"]
{'order': 'qef'}
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from queryard.core.errors import InvalidProfile
from queryard.core.model import Tenant

from .catalogue import resolve_profile
from .compose import DEFAULTS, compose

SHARES = {"weight": 1.0, "guarantee": 0.0, "cap": 1.0}


def for_tenants(profile: str | Mapping[str, Any], tenants: Sequence[Tenant]) -> dict[str, Any]:
    """The profile with a pool for each tenant, in which its own order (or its pools) decides.

    Tenants that are not given have weight 1, no guarantee and no cap. A profile that already
    divides by tenant keeps its pools; those of the given tenants take their shares from here.
    Guarantees and caps inside the profile stay what they are, shares of all slots.
    """
    _check(tenants)
    shared = copy.deepcopy(dict(resolve_profile(profile)))
    order = shared.pop("order", DEFAULTS["order"])
    root = _table(shared.pop("pools", {"order": order}))
    if root.get("by") != "tenant":
        # What bounds the whole goes on bounding the whole.
        whole = {key: root.pop(key) for key in SHARES if key in root}
        root = {"by": "tenant", **whole, "default": root}
    own = root.get("children", {})
    given = {t.name: _of_tenant(own.get(t.name, root["default"]), t) for t in tenants}
    shared["pools"] = {**root, "children": {**own, **given}}
    compose(shared)
    return shared


def _table(given: Any) -> dict[str, Any]:
    """A pool as a table; a leaf may be just the name of its order."""
    return dict(given) if isinstance(given, Mapping) else {"order": given}


def _of_tenant(pool: Any, tenant: Tenant) -> dict[str, Any]:
    rule = {key: value for key, value in _table(pool).items() if key not in SHARES}
    shares = {key: getattr(tenant, key) for key in SHARES}
    return rule | {key: value for key, value in shares.items() if value != SHARES[key]}


def _check(tenants: Sequence[Tenant]) -> None:
    for name, times in Counter(tenant.name for tenant in tenants).items():
        if times > 1:
            raise InvalidProfile(f"tenants: {name!r} is given {times} times; give it once")
    total = sum(tenant.guarantee for tenant in tenants)
    if total > 1 + 1e-9:
        each = ", ".join(f"{t.name} {t.guarantee:g}" for t in tenants if t.guarantee)
        raise InvalidProfile(f"tenants: the guarantees add up to {total:g}, more than 1 ({each})")
