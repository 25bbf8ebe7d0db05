"""What held queries before their first slot, as far as a look per second tells."""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping

from queryard.live.overview import Hold, Overview

from ..submitted import Submitted

# Queries that wait, and queries that have ended or begun, of which it is remembered.
MOST_WAITING = 20_000
KEPT = 5_000
PAUSED = "the server, which was paused"
REASONS: Mapping[Hold, str] = {
    "memory": "memory",
    "cap": "the cap of its pool",
    "order": "slots that other queries had",
    "shared": "an identical query",
}


class Holds:
    """One thread looks, any may ask."""

    def __init__(self, keep: Callable[[str, Mapping[str, float]], None]) -> None:
        """`keep` is told of each query that has begun or ended what had held it."""
        self._keep = keep
        self._lock = threading.Lock()
        self._waiting: dict[str, defaultdict[str, float]] = {}
        self._over: OrderedDict[str, defaultdict[str, float]] = OrderedDict()

    def look(self, overview: Overview, seconds: float) -> None:
        """Note what has held each waiting query for the last seconds."""
        is_paused = overview.paused_by is not None
        with self._lock:
            for facts in overview.facts:
                if facts.started_s is not None:
                    self._end(facts.id)
                    continue
                hold = overview.hold(facts)
                reason = PAUSED if is_paused and hold == "order" else REASONS.get(hold)
                if reason is None:
                    continue
                found = self._waiting.get(facts.id)
                if found is None:
                    if len(self._waiting) >= MOST_WAITING:
                        continue
                    found = self._waiting[facts.id] = defaultdict(float)
                # Of a query that has just come, less than all of it.
                found[reason] += min(seconds, overview.now_s - facts.submitted_s)

    def began(self, submitted: Submitted) -> None:
        """Nothing has held it yet."""

    def ended(self, submitted: Submitted) -> None:
        with self._lock:
            self._end(submitted.id)

    def _end(self, query: str) -> None:
        found = self._waiting.pop(query, None)
        if found is not None:
            self._keep(query, found)
            self._over[query] = found
            if len(self._over) > KEPT:
                self._over.popitem(last=False)

    def of(self, query: str) -> dict[str, float]:
        """Seconds by reason; none for a query that hardly waited."""
        with self._lock:
            return dict(self._waiting.get(query) or self._over.get(query) or {})
