"""Which parts of a policy have nothing to go by in a live session, as it is today.

They decide in simulations, where workloads name places of data and online queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .compose import compose
from .sharing.circular import Circular

_NO_PLACES = "the data of a session in one process is as near to one slot as to another"
_IDLE: Mapping[tuple[str, str], str] = {
    ("placement", "locf"): _NO_PLACES,
    ("placement", "rack"): _NO_PLACES,
}


_NO_RIDES = "tasks at the nodes of a cluster share no scans"


def idle_in_sessions(profile: Mapping[str, Any], on_cluster: bool = False) -> tuple[str, ...]:
    """One sentence per part that has no effect in a session; none for most policies.

    On a cluster placement has an effect, and scans are not shared.

    >>> idle_in_sessions({"order": "fifo", "placement": "locf"})[0].partition(":")[0]
    "placement 'locf' has no effect"
    >>> idle_in_sessions({"order": "fifo", "placement": "locf"}, on_cluster=True)
    ()
    """
    policy = compose(profile)
    if on_cluster:
        sharing = policy.sharing
        if sharing.name == "none" or (isinstance(sharing, Circular) and sharing.when == "pays"):
            return ()
        return (f"sharing {sharing.name!r} has no effect: {_NO_RIDES}",)
    parts = [
        *(("order", order.name) for order in policy.pools.orders),
        ("placement", policy.placement.name),
    ]
    idle = [
        f"{decision} {name!r} has no effect: {_IDLE[decision, name]}"
        for decision, name in dict.fromkeys(parts)
        if (decision, name) in _IDLE
    ]
    if isinstance(policy.sharing, Circular) and policy.sharing.reduces == "early":
        idle.append(
            "reduces = 'early' of sharing 'circular' has no effect: a session puts partial "
            "aggregates together as tasks end"
        )
    return tuple(idle)
