"""What queries over shared scans wait for, from the journal of a session and a log of its parsing.

The response of a query is divided into: planning, until the scheduler knows it; waiting for a slot,
while none of its scan tasks runs; parsing, while one runs whose segment is being parsed (for all
riders of the launch); riding, while its scan tasks run on what was parsed; and finishing, all that
comes after the last of them. A query that DuckDB ran as a whole has only planning, slot and riding.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from queryard.core.commands import Grant, Launch
from queryard.core.events import LeaseEnded, QuerySubmitted, TaskFailed, TaskFinished
from queryard.core.journal import Journal
from queryard.core.model import MAP, JobId

Span = tuple[float, float]


class Parsed(NamedTuple):
    """A segment was parsed, or waited for, in this span of the session's time."""

    number: int
    span: Span


class Waits(NamedTuple):
    """Seconds of one response, or of a mean one."""

    planning: float
    slot: float
    parsing: float
    riding: float
    finishing: float

    def __str__(self) -> str:
        return ", ".join(f"{name} {seconds:.2f}" for name, seconds in self._asdict().items())


class Parsing:
    """Notes when the segments of a session's store are read; `spans` is what it noted."""

    def __init__(self, store: Any, now: Callable[[], float]) -> None:
        self.spans: list[Parsed] = []
        self._lock = threading.Lock()
        self._now = now
        self._reading = store.reading
        store.reading = self._noted

    @contextmanager
    def _noted(self, table: Any, segment: Any, *rest: Any) -> Iterator[str]:
        began_s = self._now()
        with self._reading(table, segment, *rest) as relation:
            with self._lock:
                self.spans.append(Parsed(segment.number, (began_s, self._now())))
            yield relation


def mean_waits(
    journal: Journal, parsed: Sequence[Parsed], asked: Mapping[str, Span]
) -> Waits | None:
    """The mean of the queries in `asked`, each with when it was submitted and answered."""
    found = [waits_of(query, journal, parsed, span) for query, span in asked.items()]
    if not found:
        return None
    return Waits(*(sum(values) / len(found) for values in zip(*found, strict=True)))


def waits_of(query: str, journal: Journal, parsed: Sequence[Parsed], asked: Span) -> Waits:
    """What one query waited for."""
    submitted_s, answered_s = asked
    entered_s, runs = _runs(query, journal, answered_s)
    busy = _united(span for _, span in runs)
    if entered_s is None or not busy:  # what an identical query answers never runs
        return Waits(answered_s - submitted_s, 0.0, 0.0, 0.0, 0.0)
    last_s = busy[-1][1]
    running_s = _length(busy)
    parsing = (
        (max(began, other), min(ended, until))
        for number, (began, ended) in runs
        for segment, (other, until) in parsed
        if segment == number and other < ended and until > began
    )
    parsing_s = _length(_united(parsing))
    return Waits(
        entered_s - submitted_s,
        max(0.0, last_s - entered_s - running_s),
        parsing_s,
        running_s - parsing_s,
        max(0.0, answered_s - last_s),  # rows may be read before the slots are back
    )


def _runs(
    query: str, journal: Journal, answered_s: float
) -> tuple[float | None, list[tuple[int, Span]]]:
    """When the scheduler heard of a query, and when its scan tasks ran: segment and span.

    A lease is a run of no segment: -1.
    """
    entered_s = None
    launched: dict[int, tuple[list[int], float]] = {}
    runs: list[tuple[int, Span]] = []
    held, held_since_s = 0, 0.0
    for step in journal.steps:
        for event in step.events:
            match event:
                case QuerySubmitted() if event.query.id == query:
                    entered_s = event.time_s
                case TaskFinished() | TaskFailed() if event.launch in launched:
                    segments, began_s = launched.pop(event.launch)
                    runs += [(number, (began_s, event.time_s)) for number in segments]
                case LeaseEnded() if held and JobId.of(event.job).query == query:
                    held -= event.slots
                    if held <= 0:
                        runs.append((-1, (held_since_s, event.time_s)))
        for command in step.commands:
            if isinstance(command, Launch):
                scans = (task for task in command.tasks if task.kind == MAP)
                segments = [task.index for task in scans if JobId.of(task.job).query == query]
                if segments:
                    launched[command.number] = (segments, step.time_s)
            elif isinstance(command, Grant) and JobId.of(command.job).query == query:
                held_since_s = held_since_s if held > 0 else step.time_s
                held = max(held, 0) + command.slots
    for segments, began_s in launched.values():
        runs += [(number, (began_s, answered_s)) for number in segments]
    if held > 0:
        runs.append((-1, (held_since_s, answered_s)))
    return entered_s, runs


def _united(spans: Iterable[Span]) -> list[Span]:
    """The same time in spans that do not overlap, in order.

    >>> _united([(3, 4), (0, 2), (1, 2.5)])
    [(0, 2.5), (3, 4)]
    """
    found: list[Span] = []
    for began, ended in sorted(spans):
        if found and began <= found[-1][1]:
            found[-1] = (found[-1][0], max(ended, found[-1][1]))
        else:
            found.append((began, ended))
    return found


def _length(spans: Iterable[Span]) -> float:
    return sum(ended - began for began, ended in spans)
