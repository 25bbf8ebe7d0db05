"""One statement that writes, run by threads that can be taken away and given back at any time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from queryard.engine.capi import library
from queryard.engine.instances.instance import Connection
from queryard.engine.statement import Lease, Statement
from queryard.results.streams import ResultStream

POLL_S = 0.005
LOOK_S = 0.1
"""How often the caller is asked how many threads may work."""


def run(connection: Connection, sql: str, threads: Callable[[float], int]) -> None:
    """Run a statement whose rows are not wanted; its error is raised.

    `threads` is called from the calling thread with the share that is done, about ten times per
    second, and says how many threads may work now; with 0 the statement pauses. What it raises ends
    the statement.
    """
    statement = Statement(connection, sql, ResultStream())
    crew: list[tuple[threading.Thread, Lease]] = []
    try:
        asked_s = float("-inf")
        while not statement.gone:
            statement.poll()
            crew = [(thread, lease) for thread, lease in crew if thread.is_alive()]
            if time.monotonic() - asked_s >= LOOK_S:
                _resize(statement, crew, threads(statement.progress()))
                asked_s = time.monotonic()
            time.sleep(POLL_S)
    finally:
        statement.cancel()
        while not statement.gone or any(thread.is_alive() for thread, _ in crew):
            statement.poll()
            # Again and again: an interrupt that comes just as a step begins is forgotten.
            connection.interrupt()
            time.sleep(POLL_S)
    if statement.error is not None:
        raise statement.error


def _resize(statement: Statement, crew: list[tuple[threading.Thread, Lease]], wanted: int) -> None:
    """Call threads or withdraw some; those that are called run at the caller's priority."""
    if not library().leases:
        wanted = 1  # one thread runs it whole; it cannot pause
    working = [lease for _, lease in crew if not lease.withdrawn]
    for lease in working[wanted:]:
        statement.withdraw(lease)
    for _ in range(wanted - len(working)):
        lease = Lease()
        thread = threading.Thread(
            target=statement.serve, args=(lease,), name="queryard-shuffle", daemon=True
        )
        thread.start()
        crew.append((thread, lease))
