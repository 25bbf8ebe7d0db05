"""How long a decision takes: over fifty waiting queries, and from memory."""

from __future__ import annotations

import time
from collections.abc import Callable

import queryard
from queryard.live import Handle, Session

WAITING = 50
# One that has every slot, and does not end.
ENDLESS = "SELECT count(*) FROM range(100000000000) AS r(i) WHERE hash(i) % 7 = {}"
SHORT = "SELECT count(*) FROM range({}) AS r(i) WHERE hash(i) % 7 < 9"
MILLION = 1_000_000
LARGE = "SELECT count(*) FROM range(40000000) AS r(i) WHERE hash(i) % 7 < 9 + {}"
SMALL = "SELECT sum(i) FROM range(1000000) AS r(i) WHERE i % 7 < 9 + {}"
PATIENCE_S = 120.0


def over_fifty(slots: int, decisions: int) -> tuple[list[float], list[float]]:
    """Seconds from the look at a queue of fifty to the choice, all candidates tried; and the
    processor seconds of each decision.

    Another session keeps the machine busy meanwhile.
    """
    with queryard.connect(tables={}, slots=slots, history=False) as other:
        busy = other.submit(ENDLESS.format(1))
        try:
            return _over_fifty(slots, decisions)
        finally:
            _end([busy])


def _over_fifty(slots: int, decisions: int) -> tuple[list[float], list[float]]:
    document = {"portfolio": {"period_s": 1.0, "share": 1.0, "patterns": 0}}
    with queryard.connect(tables={}, slots=slots, profile=document, history=False) as session:
        session.pause("the bench")
        handles = [session.submit(ENDLESS.format(0))]
        handles += [session.submit(SHORT.format(n * MILLION)) for n in range(1, WAITING)]

        def found() -> list[tuple[float, float]]:
            return [
                (each["took_s"], each["cpu_s"])
                for each in session.policy_decisions(1000)
                if each["dropped"] is None and each["waiting"] >= WAITING
            ]

        # In a pause nothing of the queue is served, and it stays as long as it is.
        _wait(lambda: len(found()) >= decisions)
        _end(handles)
        made = found()[:decisions]
        return [took_s for took_s, _ in made], [cpu_s for _, cpu_s in made]


def from_memory(slots: int, times: int) -> list[float]:
    """Seconds from the look at a queue that was seen before to the choice."""
    document = {
        "portfolio": {
            "candidates": ["fifo", "priority"],
            "period_s": 0.5,
            "share": 1.0,
            "late_s": 20.0,
        }
    }
    with queryard.connect(tables={}, slots=slots, profile=document, history=False) as session:
        for sql in (LARGE, SMALL):  # what they take is known from now on
            session.sql(sql.format(0)).fetchall()
        session.pause("the bench")
        # Small queries are better first: by priority, and in the order in which they came.
        by_priority = [(LARGE, 1.0), *[(SMALL, 2.0)] * 5]
        as_they_came = [*[(SMALL, 1.0)] * 20, (LARGE, 2.0)]
        for _ in range(times + 1):
            _queue(session, by_priority, "priority")
            _queue(session, as_they_came, "fifo")
        return [each["took_s"] for each in session.policy_decisions(1000) if each["remembered"]]


def _queue(session: Session, asked: list[tuple[str, float]], best: str) -> None:
    """A queue for which a policy is the best, until that is in force."""
    handles = [
        session.submit(sql.format(number), priority=priority)
        for number, (sql, priority) in enumerate(asked)
    ]
    _wait(lambda: session.policy_state().name == best)
    _end(handles)


def _end(handles: list[Handle]) -> None:
    for handle in handles:
        handle.cancel()
    for handle in handles:
        handle.wait(PATIENCE_S)


def _wait(true: Callable[[], bool]) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not true():
        if time.monotonic() > until_s:
            raise SystemExit(f"error: no decision within {PATIENCE_S:g} s")
        time.sleep(0.02)
