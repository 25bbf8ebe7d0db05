"""A node of the cluster as the kernel knows it: slots, memory, speed, rack, and its names."""

from __future__ import annotations

import statistics

from queryard.core.model import Node
from queryard.engine.calibration import machine_rates
from queryard.estimate.prices import Rates
from queryard.sql.statistics.store import cache_folder

from .cluster import RayNode
from .messages import NodeFacts

# Labels of a Ray node that say where it is, the first that is there counts; and how a catalog may
# call it, beside its address and its name.
RACK_LABELS = ("rack", "ray.io/availability-zone")
PLACE_LABEL = "place"
# Differences below this are taken for noise of the calibration.
STEP = 0.05


def described(name: str, slots: int, node: RayNode, facts: NodeFacts) -> Node:
    """What is known of a node that has joined under this name.

    Its memory is that of its queries: Ray's object store is counted before.
    """
    speed = 1.0
    if facts.rates is not None:
        speed = relative_speed(machine_rates(cache_folder() / "rates.json"), facts.rates)
    labels = node.labels
    places = (node.address, node.hostname, labels.get(PLACE_LABEL, ""))
    return Node(
        name,
        slots,
        float(facts.pool_bytes),
        map_speed=speed,
        reduce_speed=speed,
        rack=next((labels[key] for key in RACK_LABELS if labels.get(key)), ""),
        host=name,
        places=tuple(dict.fromkeys(place for place in places if place)),
    )


def relative_speed(here: Rates, there: Rates) -> float:
    """How fast a node is, where the driver's machine has the speed 1: all predictions are for it.

    >>> relative_speed(Rates(1.0, 1.0, 1.0), Rates(2.0, 2.0, 2.0))
    0.5
    >>> relative_speed(Rates(1.0, 1.0, 1.0), Rates(1.02, 0.99, 1.0))
    1.0
    """
    kinds = ("computing", "hashing", "sorting")
    ratios = [getattr(here, kind) / getattr(there, kind) for kind in kinds]
    return max(STEP, round(round(statistics.geometric_mean(ratios) / STEP) * STEP, 2))
