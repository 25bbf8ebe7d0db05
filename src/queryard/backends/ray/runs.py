"""Divisible jobs at nodes, as the driver knows them: where each runs, and its rows.

A run lives at one node, from its first slot on. If the node is lost before the reader has taken any
row, the run begins again where the kernel grants it the next slot; else its reader meets an error.
No query joins the run of another: the kernel may give the two slots of different nodes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Literal

from queryard.backends.protocol import NATIVE_JOB, JoinRefused, Leased, Post, RunEnded
from queryard.core.commands import Grant, Revoke
from queryard.core.events import LeaseEnded
from queryard.core.model import JobId
from queryard.engine.errors import QueryFailed

from .link import Link
from .messages import (
    Credit,
    Execute,
    Forget,
    Lease,
    NodeEvent,
    RowsBegan,
    RowsCame,
    RowsEnded,
    Stop,
)


class NodeGone(QueryFailed):
    """A node was lost, and with it the rest of an answer of which rows were read."""


class PlacedRun:
    """One query under leases, and the stream of its reader."""

    def __init__(self, query: str, work: Leased) -> None:
        self.query = query
        self.statement = work.statement
        self.width = work.width
        self.link: Link | None = None
        self.ended = False
        self.error: BaseException | None = None
        # Whether the kernel has heard of its end.
        self.end_told = False
        # Whether rows have come; and whether all have.
        self.gave_rows = False
        self.gave_all = False
        self.held = 0
        """Slots that the kernel counts for it."""
        self._output = work.output
        self._output.wakes = self.reader_has_room
        # Held while rows are passed on: those of a node that was lost must not follow later.
        self._passing = threading.Lock()
        self._credit = threading.Lock()
        self._taken_bytes = 0

    def note_rows(self, event: RowsBegan | RowsCame | RowsEnded) -> None:
        """Rows are about to be passed on."""
        self.gave_rows = self.gave_rows or isinstance(event, RowsCame)
        self.gave_all = self.gave_all or isinstance(event, RowsEnded)

    def hear_rows(self, event: RowsBegan | RowsCame | RowsEnded, link: Link) -> None:
        """Pass rows on to the reader; on the thread that hears from the node."""
        with self._passing:
            if self.link is not link and not isinstance(event, RowsEnded):
                return  # it was lost meanwhile, before all rows had come
            match event:
                case RowsBegan():
                    self._output.start(event.schema, event.types, event.returns)
                case RowsCame():
                    self._output.put(event.batch)
                    with self._credit:
                        self._taken_bytes += event.bytes
                case RowsEnded():
                    self._output.finish()
        self.reader_has_room()

    def take_back(self) -> bool:
        """Forget rows that no reader has taken; False if that is too late for the run to begin
        again.
        """
        with self._passing:
            if self.gave_all or not self._output.take_back():
                return False
            self.gave_rows = False
            self.link = None
            return True

    def reader_has_room(self) -> None:
        """Let the node send as many bytes as the reader has room for; never blocks."""
        with self._credit:
            link = self.link
            if link is not None and self._taken_bytes and not self._output.full:
                link.send(Credit(self.query, self._taken_bytes))
                self._taken_bytes = 0

    def begin_again(self) -> None:
        """Its node is lost: it is nowhere."""
        with self._credit:
            self.link = None
            self._taken_bytes = 0
        self.held = 0


class Runs:
    """All runs at nodes; its owner makes one call at a time."""

    def __init__(self, prepared: Callable[[Link], None]) -> None:
        """`prepared` sends what a node must know before a statement."""
        self._prepared = prepared
        self._post: Post = _nothing
        self._runs: dict[str, PlacedRun] = {}

    def begin(self, post: Post) -> None:
        self._post = post

    def __iter__(self) -> Iterator[PlacedRun]:
        return iter(tuple(self._runs.values()))

    def find(self, query: str) -> PlacedRun | None:
        return self._runs.get(query)

    def add(self, query: str, work: Leased) -> None:
        if work.statement is None:
            self._post(JoinRefused(query))
        else:
            self._runs[query] = PlacedRun(query, work)

    def grant(self, command: Grant, link: Link) -> None:
        run = self._runs[JobId.of(command.job).query]
        if run.error is not None:
            self._begin_anew(run)
        if run.link is None:
            run.link = link
            self._prepared(link)
            link.send(Lease(run.query, run.width, run.statement))
        assert run.link is link, f"{run.query} runs at {run.link.name}, and cannot at {link.name}"
        run.held += command.slots
        link.send(Execute(command))

    def _begin_anew(self, run: PlacedRun) -> None:
        """A run has failed without rows, and is to be tried again, at another node most often."""
        if run.link is not None:
            run.link.send(Forget(run.query))
        run.begin_again()
        run.ended, run.error, run.end_told = False, None, False

    def revoke(self, command: Revoke, link: Link) -> None:
        run = self._runs.get(JobId.of(command.job).query)
        if run is not None and run.link is link:
            link.send(Execute(command))

    def stop(self, query: str, error: BaseException) -> None:
        run = self._runs.get(query)
        if run is not None and run.link is not None:
            run.link.send(Stop(query, error))

    def forget(self, query: str) -> None:
        run = self._runs.pop(query, None)
        if run is not None and run.link is not None:
            run.link.send(Forget(query))

    # --- what nodes tell ----------------------------------------------------------------------

    def hear(self, event: NodeEvent) -> None:
        """Pass on what the local backend of a node has posted."""
        if isinstance(event, RunEnded):
            run = self._runs.get(event.run)
            if run is not None and not run.ended and run.link is not None:
                run.ended, run.error = True, event.error
                has_rows = run.gave_rows or run.gave_all
                event = event._replace(rows_out=has_rows, node=run.link.name)
        if isinstance(event, LeaseEnded):
            run = self._runs.get(JobId.of(event.job).query)
            if run is not None:
                run.held -= event.slots
                run.end_told = run.end_told or event.outcome != "revoked"
        self._post(event)  # type: ignore[arg-type]

    def break_off(self, run: PlacedRun, error: BaseException) -> None:
        """The rows of a run cannot be passed on: it fails, and nothing else at its node does."""
        if run.ended or run.link is None:
            return
        run.ended, run.error = True, error
        run.link.send(Stop(run.query, error))
        # Its leases end when the node has stopped it.
        self._post(RunEnded(run.query, error, True))

    def has_any_at(self, link: Link) -> bool:
        """Whether a run that has not ended is at a node."""
        return any(run.link is link and not run.ended for run in self)

    def lose(self, link: Link, reason: str) -> None:
        """A node is lost: its runs begin again later, or end with an error."""
        for run in self:
            if run.link is not link:
                continue
            if not run.ended and not run.take_back():
                self._end(run, link, reason)
            if run.ended:
                self._end_leases(run, link)
            run.begin_again()

    def _end(self, run: PlacedRun, link: Link, reason: str) -> None:
        """A run ends with its node: all its rows have come, or some will never come."""
        run.ended = True
        if not run.gave_all:
            run.error = NodeGone(
                f"node {link.name} was lost ({reason}) after rows of the answer had been read; "
                "run the query again"
            )
        self._post(RunEnded(run.query, run.error, True))

    def _end_leases(self, run: PlacedRun, link: Link) -> None:
        """Slots of a run that has ended come back, one by one, as they would have."""
        job = str(JobId(run.query, NATIVE_JOB))
        outcome: Literal["finished", "failed"] = "finished" if run.error is None else "failed"
        cause = "" if run.error is None else str(run.error)
        for slots in [1] * run.held or ([] if run.end_told else [0]):
            self._post(LeaseEnded(0.0, job, link.name, slots, outcome, cause))
        run.end_told = True


def _nothing(event: object) -> None:
    pass
