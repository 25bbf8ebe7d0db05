"""TuMM's clusters: four equal slaves, and two clusters of nine in three groups (Table 3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt

from queryard.core.model import Node
from queryard.sim import Conditions
from queryard.workload import Workload
from research.trials import Setting

from .jobs import BASE_UNITS, CONTENTION, NOISE

# Hadoop 0.20: reduces may start, and hold their slots, once so many of the maps are done.
SLOW_START = 0.05
# TuMM knows nothing beforehand: it goes by the tasks that have ended.
ESTIMATES = "observed"
CONDITIONS = Conditions(noise=NOISE, contention=CONTENTION)

HOMOGENEOUS = tuple(Node(f"n{number}", 4) for number in range(1, 5))
BASE_MEMORY_GB = 3.75


@dataclass(frozen=True, slots=True)
class Group:
    """Three equal nodes: the slots FIFO has on each, and what a slot has of the machine."""

    instance: str
    maps: int
    reduces: int
    compute_units: float
    memory_gb: float
    nodes: int = 3


Groups = tuple[Group, ...]
HETER1 = (
    Group("m1.xlarge, 1:2", 1, 2, 2.67, 5.0),
    Group("m1.xlarge, 2:2", 2, 2, 2.0, 3.75),
    Group("m1.large, 2:1", 2, 1, 1.33, 2.5),
)
HETER2 = (
    Group("m1.xlarge", 2, 2, 2.0, 3.75),
    Group("c1.xlarge", 2, 2, 5.0, 1.75),
    Group("m2.xlarge", 2, 2, 1.63, 4.25),
)
HETEROGENEOUS = {"Heter1": HETER1, "Heter2": HETER2}


def by_units(group: Group) -> float:
    """The speed of a slot by its compute units."""
    return group.compute_units / BASE_UNITS


def by_memory(group: Group) -> float:
    """The speed of a slot by its memory, which §5 says is what reduces gain from."""
    return group.memory_gb / BASE_MEMORY_GB


def by_both(group: Group) -> float:
    """The speed of a slot for reduces that need both alike."""
    return sqrt(by_units(group) * by_memory(group))


ReduceSpeed = Callable[[Group], float]


def group_nodes(groups: Groups) -> dict[str, Group]:
    """The ids of all nodes, each with its group."""
    found: dict[str, Group] = {}
    for group in groups:
        for _ in range(group.nodes):
            found[f"n{len(found) + 1}"] = group
    return found


def make_nodes(groups: Groups, reduce_speed: ReduceSpeed = by_memory) -> tuple[Node, ...]:
    """The slaves of a heterogeneous cluster; maps are as fast as the compute units say."""
    return tuple(
        Node(
            name,
            group.maps + group.reduces,
            map_speed=by_units(group),
            reduce_speed=reduce_speed(group),
        )
        for name, group in group_nodes(groups).items()
    )


def setting(
    workload: Workload,
    nodes: tuple[Node, ...] = HOMOGENEOUS,
    conditions: Conditions = CONDITIONS,
    slow_start: float = SLOW_START,
) -> Setting:
    """A batch on a cluster as TuMM's evaluation has it."""
    return Setting(workload, nodes, conditions, slow_start, ESTIMATES)


@dataclass(frozen=True, slots=True)
class World:
    """What is varied of a heterogeneous cluster."""

    conditions: Conditions = CONDITIONS
    slow_start: float = SLOW_START
    reduce_speed: ReduceSpeed = by_memory

    def setting(self, workload: Workload, groups: Groups) -> Setting:
        nodes = make_nodes(groups, self.reduce_speed)
        return setting(workload, nodes, self.conditions, self.slow_start)


# What the paper leaves open, halved, doubled or left out.
OTHER_WORLDS = {
    "as above": World(),
    "contention 0": World(replace(CONDITIONS, contention=0.0)),
    "contention 0.125": World(replace(CONDITIONS, contention=CONTENTION / 2)),
    "contention 0.5": World(replace(CONDITIONS, contention=CONTENTION * 2)),
    "slow start 1": World(slow_start=1.0),
    "spread of task times 0.4": World(replace(CONDITIONS, noise=0.4)),
    "reduces as fast as compute units say": World(reduce_speed=by_units),
    "reduces as fast as both say": World(reduce_speed=by_both),
}
