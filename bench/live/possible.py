"""What is possible with all queries at once: plain DuckDB, the shortest first by their real work.

As many at a time as there are slots, each on one thread. It knows what no scheduler can know; only
widths (several threads for one query) could make the last finish earlier.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

from queryard.engine.plain import PlainDuckDB
from queryard.load import Ground, Outcome, Played, Request

POSSIBLE = "possible"


def shortest_first(
    requests: Sequence[Request], work_s: Mapping[str, float], ground: Ground
) -> Played:
    """Run all, in the order of the work of their templates."""
    waiting = [
        Outcome(request, state="under way", sent_s=0.0)
        for request in sorted(requests, key=lambda request: -work_s[request.template])
    ]
    outcomes = tuple(waiting)
    # With one thread, DuckDB has none of its own: each query runs on the thread that asks.
    with PlainDuckDB(ground.catalog(), 1, ground.memory_bytes) as duck:
        began, began_cpu = time.perf_counter(), time.process_time()

        def serve() -> None:
            while waiting:
                outcome = waiting.pop()
                outcome.started_s = time.perf_counter() - began
                cursor = duck.cursor()
                try:
                    outcome.rows = int(cursor.arrow(outcome.request.sql).num_rows)
                    outcome.state = "finished"
                except Exception as error:
                    outcome.state, outcome.error = "failed", str(error)
                outcome.ended_s = time.perf_counter() - began
                outcome.held_s = outcome.ended_s - outcome.started_s
                cursor.close()

        threads = [threading.Thread(target=serve) for _ in range(ground.slots)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        cpu_s = time.process_time() - began_cpu
    return Played(POSSIBLE, ground.slots, outcomes, cpu_s)
