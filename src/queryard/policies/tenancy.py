"""Any profile, shared between tenants: slots by tenant first, then the profile's own order.

>>> profile = for_tenants("tls", [Tenant("web", weight=3, guarantee=0.25)])
>>> profile["pools"]["children"]
{'web': {'order': 'qef', 'weight': 3, 'guarantee': 0.25}}
>>> profile["pools"]["default"]
{'order': 'qef'}

Tenants may be a tree. The queries of "sales" itself find their place beside its children:

>>> profile = for_tenants("fifo", [Tenant("sales", weight=2), Tenant("sales/emea", weight=3)])
>>> profile["pools"]["children"]["sales"]["children"]
{'emea': {'order': 'fifo', 'weight': 3}}
>>> profile["pools"]["children"]["sales"]["weight"]
2
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from queryard.core.errors import InvalidProfile
from queryard.core.model import Tenant
from queryard.core.tenants import SHARES, problem_of

from .catalogue import resolve_profile
from .compose import DEFAULTS, compose


def for_tenants(profile: str | Mapping[str, Any], tenants: Sequence[Tenant]) -> dict[str, Any]:
    """The profile with a pool for each tenant, in which its own order (or its pools) decides.

    Tenants that are not given have weight 1, no guarantee and no cap; so have parents that are
    only named in a path. A profile that already divides by tenant keeps its pools; those of the
    given tenants take their shares from here. Guarantees and caps, those inside the profile
    included, are shares of all slots; those of a parent bound all that is below it.
    """
    _check(tenants)
    shared = copy.deepcopy(dict(resolve_profile(profile)))
    order = shared.pop("order", DEFAULTS["order"])
    root = _table(shared.pop("pools", {"order": order}))
    if root.get("by") != "tenant":
        # What bounds the whole goes on bounding the whole.
        root = _divided(root, {})
    root.setdefault("children", {})
    for tenant in sorted(tenants, key=lambda tenant: tenant.name.count("/")):
        root = _place(root, tenant.name.split("/"), tenant)
    shared["pools"] = root
    compose(shared)
    return shared


def _place(pool: dict[str, Any], path: list[str], tenant: Tenant) -> dict[str, Any]:
    """A pool by tenant in which the tenant has its place, however deep."""
    name, *rest = path
    children = dict(pool.get("children", {}))
    child = _table(children[name]) if name in children else _rule(pool["default"])
    if rest:
        if child.get("by") != "tenant":
            child = _divided(child, {"choice": pool["choice"]} if "choice" in pool else {})
        children[name] = _place(child, rest, tenant)
    else:
        shares = {key: getattr(tenant, key) for key in SHARES}
        given = {key: value for key, value in shares.items() if value != SHARES[key]}
        children[name] = _rule(child) | given
    return {**pool, "children": children}


def _divided(pool: dict[str, Any], how: Mapping[str, Any]) -> dict[str, Any]:
    """The pool with its shares, divided by tenant, each of which follows its rule."""
    shares = {key: value for key, value in pool.items() if key in SHARES}
    return {"by": "tenant", **how, **shares, "default": _rule(pool)}


def _table(given: Any) -> dict[str, Any]:
    """A pool as a table; a leaf may be just the name of its order."""
    return dict(given) if isinstance(given, Mapping) else {"order": given}


def _rule(pool: Any) -> dict[str, Any]:
    """A pool without its shares."""
    return {key: value for key, value in _table(pool).items() if key not in SHARES}


def _check(tenants: Sequence[Tenant]) -> None:
    if (problem := problem_of(tenants)) is not None:
        raise InvalidProfile(f"tenants: {problem[1]}")
