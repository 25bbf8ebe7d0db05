"""What the server does, looked at once per second and kept for a day."""

from __future__ import annotations

import threading
import time

from queryard.live.session import Session

from ..own_cpu import PARTS, own_cpu
from .holds import Holds
from .memory import resident_bytes
from .ring import Cell, Ring

# Sums over a second: slots, queries and bytes times seconds; processor seconds; decisions.
GAUGES = ("slots_busy", "slots_total", "waiting", "running", "memory_bytes", "reserved_bytes")
TOTALS = ("process_cpu", *PARTS, "decide_s", "decisions")
FIGURES = GAUGES + TOTALS
# An hour by seconds, a day by half minutes.
FINE = (3600, 1.0)
COARSE = (2880, 30.0)
# After a longer pause, as of a laptop that slept, nothing is known of the time between.
LONGEST_S = 10.0


class Sampler:
    """`look` is called about once per second, by one thread; any may read."""

    def __init__(self, session: Session, holds: Holds) -> None:
        """`holds` hears what holds waiting queries, while there are some."""
        self._session = session
        self._holds = holds
        self._lock = threading.Lock()
        self._rings = tuple(Ring(cells, cell_s, len(FIGURES)) for cells, cell_s in (FINE, COARSE))
        self._before: tuple[float, dict[str, float]] | None = None

    def look(self) -> None:
        """Note what there is now, and what has been used since the last look."""
        load = self._session.host.looking.load()
        at, now_s = time.time(), time.monotonic()
        totals = {
            "process_cpu": time.process_time(),
            **own_cpu(self._session.host.policy.beside_cpu_s),
            "decide_s": load.decide_s,
            "decisions": load.decisions,
        }
        before, self._before = self._before, (now_s, totals)
        if before is None or not 0 < (seconds := now_s - before[0]) <= LONGEST_S:
            return
        if load.waiting:
            self._holds.look(self._session.host.looking.overview(), seconds)
        gauges = {
            "slots_busy": load.busy_slots,
            "slots_total": load.slots,
            "waiting": load.waiting,
            "running": load.running,
            "memory_bytes": resident_bytes(),
            "reserved_bytes": load.reserved_bytes,
        }
        sums = [gauges[name] * seconds for name in GAUGES]
        # What is counted never falls; a part that is measured anew begins at 0.
        sums += [max(0.0, totals[name] - before[1][name]) for name in TOTALS]
        with self._lock:
            for ring in self._rings:
                ring.add(at, seconds, sums)

    def cells(self, since: float) -> tuple[list[Cell], float]:
        """Cells from a time on, and their length: a second, or more if that is long ago."""
        with self._lock:
            fine, coarse = self._rings
            began_at = fine.began_at
            is_fine = not fine.has_forgotten or began_at is None or since >= began_at
            ring = fine if is_fine else coarse
            return list(ring.since(since)), ring.cell_s

    @property
    def began_at(self) -> float:
        """Since when something is known here; what was before is in the history."""
        with self._lock:
            found = self._rings[-1].began_at
        return time.time() if found is None else found
