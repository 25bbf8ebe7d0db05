"""Divisible jobs at nodes, as the driver knows them: where each runs, and its rows.

A run lives at one node, from its first slot on. If the node is lost before any row has come, the
run begins again where the kernel grants it the next slot; else its reader meets an error. No
query joins the run of another: the kernel may give the two slots of different nodes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from queryard.backends.protocol import NATIVE_JOB, JoinRefused, Leased, Post, RunEnded
from queryard.core.commands import Grant, Revoke
from queryard.core.events import LeaseEnded
from queryard.core.model import JobId
from queryard.engine.errors import QueryFailed

from .link import Link
from .messages import Forget, Lease, News, Obey, Room, RowsBegan, RowsCame, RowsEnded, Stop


class NodeGone(QueryFailed):
    """A node was lost, and with it the rest of an answer of which rows were given out."""


class PlacedRun:
    """One query under leases, and the stream of its reader."""

    def __init__(self, query: str, work: Leased) -> None:
        self.query = query
        self.statement = work.statement
        self.width = work.width
        self.link: Link | None = None
        self.ended = False
        self.gave_rows = False
        self.held = 0
        """Slots that the kernel counts for it."""
        self._output = work.output
        self._output.wakes = self.reader_has_room
        self._credit = threading.Lock()
        self._taken_bytes = 0

    def hear_rows(self, news: RowsBegan | RowsCame | RowsEnded) -> None:
        """Pass rows on to the reader; on the thread that hears from the node."""
        match news:
            case RowsBegan():
                self._output.start(news.schema, news.types, news.returns)
            case RowsCame():
                self.gave_rows = True
                self._output.put(news.batch)
                with self._credit:
                    self._taken_bytes += news.bytes
                self.reader_has_room()
            case RowsEnded():
                self._output.finish()

    def reader_has_room(self) -> None:
        """Let the node send as many bytes as the reader has room for; never blocks."""
        with self._credit:
            link = self.link
            if link is not None and self._taken_bytes and not self._output.full:
                link.send(Room(self.query, self._taken_bytes))
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
        if run.link is None:
            run.link = link
            self._prepared(link)
            link.send(Lease(run.query, run.width, run.statement))
        assert run.link is link, f"{run.query} runs at {run.link.name}, and cannot at {link.name}"
        run.held += command.slots
        link.send(Obey(command))

    def revoke(self, command: Revoke, link: Link) -> None:
        run = self._runs.get(JobId.of(command.job).query)
        if run is not None and run.link is link:
            link.send(Obey(command))

    def stop(self, query: str, error: BaseException) -> None:
        run = self._runs.get(query)
        if run is not None and run.link is not None:
            run.link.send(Stop(query, error))

    def forget(self, query: str) -> None:
        run = self._runs.pop(query, None)
        if run is not None and run.link is not None:
            run.link.send(Forget(query))

    # --- what nodes tell ----------------------------------------------------------------------

    def hear(self, news: News) -> None:
        """Pass on what the local backend of a node has posted."""
        if isinstance(news, RunEnded) and (run := self._runs.get(news.run)) is not None:
            run.ended = True
        if isinstance(news, LeaseEnded):
            run = self._runs.get(JobId.of(news.job).query)
            if run is not None:
                run.held -= news.slots
        self._post(news)  # type: ignore[arg-type]

    def lose(self, link: Link, reason: str) -> None:
        """A node is lost: its runs begin again later, or end with an error."""
        for run in self:
            if run.link is link:
                if run.gave_rows and not run.ended:
                    self._fail(run, link, reason)
                run.begin_again()

    def _fail(self, run: PlacedRun, link: Link, reason: str) -> None:
        error = NodeGone(
            f"node {link.name} was lost ({reason}) after rows of the answer had been given out; "
            "run the query again"
        )
        run.ended = True
        self._post(RunEnded(run.query, error, True))
        job = str(JobId(run.query, NATIVE_JOB))
        # A slot at a time, as they would have come back; or none, if it had none.
        for _ in range(run.held):
            self._post(LeaseEnded(0.0, job, link.name, 1, "failed", str(error)))
        if not run.held:
            self._post(LeaseEnded(0.0, job, link.name, 0, "failed", str(error)))


def _nothing(event: object) -> None:
    pass
