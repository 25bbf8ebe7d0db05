"""What the cluster costs: the hours its nodes are there, and the hours one is billed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .rows import RunRows

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Cost:
    """`node_hours` as they are; `leased_hours` with every stay of a node rounded up."""

    nodes: int
    node_hours: float
    leased_hours: float


def cost(run: RunRows, unit_s: float = HOUR_S) -> Cost:
    """Hours from a node's joining to its loss or the run's end, billed in units of `unit_s`."""
    if not unit_s > 0:
        raise ValueError(f"unit_s must be above 0, got {unit_s!r}")
    stays_s = node_stays_s(run)
    # A hair less, so that the rounding of floats does not open a new unit.
    units = sum(math.ceil(stay_s / unit_s - 1e-9) for stay_s in stays_s)
    return Cost(
        nodes=len({row.node.id for row in run.nodes}),
        node_hours=math.fsum(stays_s) / HOUR_S,
        leased_hours=units * unit_s / HOUR_S,
    )


def node_stays_s(run: RunRows) -> list[float]:
    """For how long each node was there, to the end of the run at most."""
    found = []
    for row in run.nodes:
        end_s = run.closed_s if row.lost_s is None else min(row.lost_s, run.closed_s)
        found.append(max(0.0, end_s - row.joined_s))
    return found
