"""Where map tasks ran, and what they read."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .rows import RunRows


@dataclass(frozen=True, slots=True)
class Locality:
    """Launched map tasks with a preferred node for their split, and how many ran on such a node.

    Every attempt counts, because each was placed anew. `share` is None where no task had a
    preference.
    """

    placed: int
    local: int
    share: float | None


@dataclass(frozen=True, slots=True)
class Scanned:
    """Bytes that finished map tasks read from tables, and what they had read without riding.

    A merged launch reads its split once, and a task that had to run again reads again. What a
    launch without a result read is not known and not counted; nor is the reading of divisible
    work, which runs no tasks.
    """

    bytes: float
    alone_bytes: float


def locality(run: RunRows) -> Locality:
    placed = sum(launch.reading.placed for launch in run.launches)
    local = sum(launch.reading.local for launch in run.launches)
    return Locality(placed, local, local / placed if placed else None)


def scanned(run: RunRows) -> Scanned:
    readings = [launch.reading for launch in run.launches if launch.outcome == "finished"]
    return Scanned(
        bytes=math.fsum(reading.bytes for reading in readings),
        alone_bytes=math.fsum(reading.alone_bytes for reading in readings),
    )
