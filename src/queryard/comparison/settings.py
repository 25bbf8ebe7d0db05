"""What all runs of a comparison have in common, and what was run, in a line and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from queryard.core import readable
from queryard.core.errors import InvalidRecord, unknown_name
from queryard.estimate.tasks import PREDICTORS
from queryard.sim import Conditions
from queryard.sim.estimates import estimate_source
from queryard.workload import Workload
from queryard.workload.traces import Trace

# S³'s cost of riders, a remote read a third slower, a cache that holds a few splits per node.
DEMO_CONDITIONS = {
    "noise": 0.1,
    "remote_penalty": 0.3,
    "memory_gain": 0.3,
    "memory_cache_bytes": 2e9,
    "task_start_s": 0.2,
    "rider_cost": 0.0283,
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What all runs of a comparison have in common."""

    estimates: str
    seed: int
    slow_start: float
    by_tenant: bool
    conditions: Conditions

    def __post_init__(self) -> None:
        estimate_source(self.estimates)  # rejects an unknown name before anything is simulated
        if not 0 <= self.slow_start <= 1:
            raise InvalidRecord(f"slow_start must lie between 0 and 1, got {self.slow_start!r}")


def make_conditions(given: Conditions | Mapping[str, float] | None, demo: bool) -> Conditions:
    """Conditions by name; the others are as in an ideal world, or as usual for the demo."""
    if isinstance(given, Conditions):
        return given
    known = [field.name for field in fields(Conditions)]
    for name in given or ():
        if name not in known:
            raise InvalidRecord(unknown_name("condition", name, known))
    return Conditions(**{**(DEMO_CONDITIONS if demo else {}), **(given or {})})


def describe(workload: Workload) -> str:
    """A workload and its cluster in a line: "demo: 100 queries, 7,955 tasks on 8x8 slots"."""
    groups = Counter(
        (node.slots, node.map_speed, node.reduce_speed, node.memory_bytes)
        for node in workload.nodes
    )
    cluster = " + ".join(
        f"{count}x{slots}" + (f"@{speed:g}" if speed != 1 else "")
        for (slots, speed, _, _), count in groups.items()
    )
    queries = readable.several(len(workload.arrivals), "query")
    tasks = f", {readable.several(workload.tasks, 'task')}" if workload.tasks else ""
    slots = "slot" if cluster == "1x1" else "slots"
    return f"{workload.name}: {queries}{tasks} on {cluster} {slots}"


def knowledge(estimates: str) -> str:
    """What policies know of the work of queries, in words; empty if that is told by the name.

    >>> knowledge("oracle:0.13")
    'policies know what every task takes, wrong by about 13 %'
    """
    kind, _, error = estimates.partition(":")
    if estimates in PREDICTORS:
        return "policies learn from tasks that have ended what others will take"
    if kind != "oracle" or error == "no-curves":
        return ""
    wrong = f", wrong by about {100 * float(error):.0f} %" if error else ""
    return f"policies know what every task takes{wrong}"


def differences(settings: Settings, trace: Trace | None = None) -> str:
    """What differs from an ideal world: "noise 0.1, rider_cost 0.0283"; empty if nothing does.

    What policies knew of a recorded workload is always told: it decides how far to trust a replay.
    """
    ideal = asdict(type(settings.conditions)())
    found = [
        f"{name} {value:g}"
        for name, value in asdict(settings.conditions).items()
        if value != ideal[name]
    ]
    if settings.estimates != "oracle" or trace is not None:
        known = knowledge(settings.estimates)
        found.insert(0, f"estimates {settings.estimates}" + (f" ({known})" if known else ""))
    if settings.slow_start != 1:
        found.append(f"slow start {settings.slow_start:g}")
    if settings.by_tenant:
        found.append("slots shared by tenant")
    return ", ".join(found)


def setting(workload: Workload, settings: Settings) -> dict[str, Any]:
    """The part of the JSON output that says what was run."""
    return {
        "workload": {
            "name": workload.name,
            "queries": len(workload.arrivals),
            "tasks": workload.tasks,
            "nodes": len(workload.nodes),
            "slots": sum(node.slots for node in workload.nodes),
            "tenants": [asdict(tenant) for tenant in workload.tenants],
        },
        "settings": {
            "estimates": settings.estimates,
            "seed": settings.seed,
            "slow_start": settings.slow_start,
            "by_tenant": settings.by_tenant,
            "conditions": asdict(settings.conditions),
        },
    }
