"""What a host itself has cost, and how busy it is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionReport:
    """What the session itself has cost so far, and how often it used a burst slot.

    `sprints` are queries that were handed to DuckDB in one call, because they were expected to be
    very short; `restarts` those that were not, and begun again after `restart_s` in all.

    Processor seconds: `decide_s` of the kernel, which is part of `driver_cpu_s`; `watch_cpu_s` of
    the thread that polls running statements; `history_cpu_s` of the thread that writes the history;
    `portfolio_cpu_s` of all decisions of a portfolio, those of its worker process included.
    `history_error` says why the history is incomplete, `problems` are errors that failed no query.
    """

    now_s: float
    waiting: int
    running: int
    decisions: int
    decide_s: float
    driver_cpu_s: float
    watch_cpu_s: float
    history_cpu_s: float
    bursts: int
    burst_s: float
    sprints: int = 0
    restarts: int = 0
    restart_s: float = 0.0
    history_error: str | None = None
    problems: tuple[str, ...] = ()
    portfolio_cpu_s: float = 0.0
