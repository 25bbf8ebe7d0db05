"""Which slot of a node ran what: launches and leases laid out in lanes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from queryard.core.model import JobId
from queryard.metrics.rows import RunRows

UNSUCCESSFUL = frozenset({"failed", "killed", "lost"})


class Piece(NamedTuple):
    """A stay of one query in one lane, in part `part` of `parts` of its height."""

    start_s: float
    end_s: float
    lane: int
    part: int
    parts: int
    query: str
    what: str
    wasted: bool


class Lanes(NamedTuple):
    """The pieces, and for each lane the node it belongs to."""

    pieces: list[Piece]
    nodes: list[str]


class _Stay(NamedTuple):
    """A launch or a lease before it has its lanes; `riders` share it, as (query, what)."""

    start_s: float
    end_s: float
    node: str
    slots: int
    riders: tuple[tuple[str, str], ...]
    wasted: bool


def lay_out(run: RunRows) -> Lanes:
    """Give everything that ran a lane of its node, the lowest that is free.

    The journal does not say which slot of a node was used, as the kernel does not care; so the
    lanes show how many were in use, and by which queries. Tasks that share a launch divide its
    height.
    """
    places: dict[str, _Node] = {row.node.id: _Node() for row in run.nodes}
    laid: list[tuple[_Stay, int]] = []
    for stay in _stays(run):
        node = places.setdefault(stay.node, _Node())
        laid.extend((stay, lane) for lane in node.take(stay))
    for row in run.nodes:
        places[row.node.id].lanes = max(places[row.node.id].lanes, row.node.slots)
    first: dict[str, int] = {}
    nodes: list[str] = []
    for name, node in places.items():
        first[name] = len(nodes)
        nodes.extend([name] * node.lanes)
    pieces = [
        Piece(
            stay.start_s,
            stay.end_s,
            first[stay.node] + lane,
            part,
            len(stay.riders),
            query,
            what,
            stay.wasted,
        )
        for stay, lane in laid
        for part, (query, what) in enumerate(stay.riders)
    ]
    return Lanes(pieces, nodes)


def _stays(run: RunRows) -> list[_Stay]:
    """Everything that held a slot, in the order of its start."""
    found: list[_Stay] = []
    for launch in run.launches:
        end_s = run.last_step_s if launch.end_s is None else launch.end_s
        riders = tuple((JobId.of(task.job).query, str(task)) for task in launch.tasks)
        wasted = launch.outcome in UNSUCCESSFUL
        found.append(_Stay(launch.start_s, end_s, launch.node, 1, riders, wasted))
    for lease in run.leases:
        end_s = run.last_step_s if lease.end_s is None else lease.end_s
        riders = ((JobId.of(lease.job).query, f"{lease.job} (leased)"),)
        wasted = lease.outcome in UNSUCCESSFUL
        found.append(_Stay(lease.start_s, end_s, lease.node, lease.slots, riders, wasted))
    return sorted(found, key=lambda stay: stay.start_s)


class _Node:
    """The lanes of one node: how many there are, which are free, and until when others are busy."""

    def __init__(self) -> None:
        self.lanes = 0
        self._free: list[int] = []
        self._busy: list[tuple[float, int]] = []

    def take(self, stay: _Stay) -> list[int]:
        while self._busy and self._busy[0][0] <= stay.start_s:
            heappush(self._free, heappop(self._busy)[1])
        taken = []
        for _ in range(stay.slots):
            if self._free:
                lane = heappop(self._free)
            else:
                lane = self.lanes
                self.lanes += 1
            heappush(self._busy, (stay.end_s, lane))
            taken.append(lane)
        return taken


Cell = tuple[int, int]


def busiest(
    pieces: list[Piece],
    subjects: Mapping[str, str],
    rows: Sequence[int],
    cell_s: float,
    start_s: float,
) -> dict[Cell, tuple[str, float]]:
    """For each cell of (row, time) the subject that used it most, and all slot-seconds used.

    `subjects` gives what a query counts for (itself, its tenant), `rows` the row of each lane,
    `start_s` where the first cell begins.
    """
    used: defaultdict[Cell, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for piece in pieces:
        first, last = (int((at_s - start_s) / cell_s) for at_s in (piece.start_s, piece.end_s))
        for place in range(first, last + 1):
            low_s = start_s + place * cell_s
            inside_s = min(piece.end_s, low_s + cell_s) - max(piece.start_s, low_s)
            if inside_s > 0:
                subject = subjects.get(piece.query, piece.query)
                used[rows[piece.lane], place][subject] += inside_s / piece.parts
    return {
        cell: (max(found, key=found.__getitem__), sum(found.values()))
        for cell, found in used.items()
    }
