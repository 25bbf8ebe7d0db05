"""Divisible jobs at nodes, as the driver knows them: where each runs, and its rows.

A run lives at one node, from its first slot on. If the node is lost before any row has come, the
run begins again where the kernel grants it the next slot; else its readers meet an error.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from queryard.backends.protocol import (
    NATIVE_JOB,
    JoinRefused,
    Leased,
    Post,
    RunEnded,
    RunJoined,
)
from queryard.core.commands import Grant, Revoke
from queryard.core.events import LeaseEnded
from queryard.core.model import JobId
from queryard.engine.errors import QueryFailed
from queryard.results.fan import Fan

from .link import Link
from .messages import Forget, Lease, News, Obey, Room, RowsBegan, RowsCame, RowsEnded, Stop


class NodeGone(QueryFailed):
    """A node was lost, and with it the rest of an answer of which rows were given out."""


class PlacedRun:
    """One run, and the queries that it answers."""

    def __init__(self, name: str, statement: Any, width: int, output: Any) -> None:
        self.name = name
        self.statement = statement
        self.width = width
        self.fan = Fan(output)
        self.fan.on_room = self.reader_has_room
        self.link: Link | None = None
        # By query, in the order in which they came.
        self.outputs: dict[str, Any] = {}
        self.wanted: set[str] = set()
        # Those that its node has yet to let join.
        self.joining: set[str] = set()
        self.ended = False
        self.gave_rows = False
        # Slots that the kernel counts, by job.
        self.held: Counter[str] = Counter()
        self._credit = threading.Lock()
        self._taken_bytes = 0

    def enter(self, query: str, output: Any) -> None:
        self.outputs[query] = output
        self.wanted.add(query)

    def hear_rows(self, news: RowsBegan | RowsCame | RowsEnded) -> None:
        """Pass rows on to the readers; on the thread that hears from the node."""
        match news:
            case RowsBegan():
                self.fan.start(news.schema, news.types, news.returns)
            case RowsCame():
                self.gave_rows = True
                self.fan.put(news.batch)
                with self._credit:
                    self._taken_bytes += news.bytes
                self.reader_has_room()
            case RowsEnded():
                self.fan.finish()

    def reader_has_room(self) -> None:
        """Let the node send as many bytes as readers have room for; never blocks."""
        with self._credit:
            link = self.link
            if link is not None and self._taken_bytes and not self.fan.full:
                link.send(Room(self.name, self._taken_bytes))
                self._taken_bytes = 0

    def begin_again(self) -> None:
        """Its node is lost: it is nowhere."""
        with self._credit:
            self.link = None
            self._taken_bytes = 0
        self.held.clear()


class Runs:
    """All runs at nodes; its owner makes one call at a time, but for `hear_rows`."""

    def __init__(self, prepared: Callable[[Link], None]) -> None:
        """`prepared` sends what a node must know before a statement."""
        self._prepared = prepared
        self._post: Post = _nothing
        self._runs: dict[str, PlacedRun] = {}
        self._jobs: dict[str, PlacedRun] = {}

    def begin(self, post: Post) -> None:
        self._post = post

    def __contains__(self, job: object) -> bool:
        return job in self._jobs

    def find(self, run: str) -> PlacedRun | None:
        return self._runs.get(run)

    def add(self, query: str, work: Leased) -> None:
        """A new run, or a query that joins one."""
        if work.statement is not None:
            run = PlacedRun(work.run, work.statement, work.width, work.output)
            self._runs[run.name] = run
            self._enter(run, query, work.output)
            return
        found = self._runs.get(work.run)
        open_to_all = found is not None and not found.ended and found.wanted
        if found is None or not open_to_all or not found.fan.join(work.output):
            self._post(JoinRefused(query))
            return
        self._enter(found, query, work.output)
        if found.link is None:
            self._post(RunJoined(query))
        else:
            # The node says whether it is in time.
            found.joining.add(query)
            found.link.send(Lease(query, found.name, found.width, None))

    def _enter(self, run: PlacedRun, query: str, output: Any) -> None:
        run.enter(query, output)
        self._jobs[_job(query)] = run

    def grant(self, command: Grant, link: Link) -> None:
        run = self._jobs[command.job]
        if run.link is None:
            run.link = link
            self._prepared(link)
            statement = run.statement
            for query in run.outputs:
                link.send(Lease(query, run.name, run.width, statement))
                statement = None
        assert run.link is link, f"{run.name} runs at {run.link.name}, and cannot at {link.name}"
        run.held[command.job] += command.slots
        link.send(Obey(command))

    def revoke(self, command: Revoke, link: Link) -> None:
        run = self._jobs.get(command.job)
        if run is not None and run.link is link:
            link.send(Obey(command))

    def stop(self, query: str, error: BaseException) -> None:
        run = self._jobs.get(_job(query))
        if run is None:
            return
        run.fan.leave(run.outputs[query])
        run.wanted.discard(query)
        if run.link is not None:
            run.link.send(Stop(query, error))

    def forget(self, query: str) -> None:
        run = self._jobs.pop(_job(query), None)
        if run is None:
            return
        run.outputs.pop(query, None)
        run.wanted.discard(query)
        if run.link is not None:
            run.link.send(Forget(query))
        if not run.outputs:
            self._runs.pop(run.name, None)

    # --- what nodes tell ----------------------------------------------------------------------

    def hear(self, link: Link, news: News) -> None:
        """Pass on what the local backend of a node has posted."""
        match news:
            case RunJoined() | JoinRefused():
                self._joined(news)
                return
            case RunEnded():
                run = self._runs.get(news.run)
                if run is not None:
                    run.ended = True
                    if news.error is not None:
                        run.fan.fail(news.error)
            case LeaseEnded():
                run = self._jobs.get(news.job)
                if run is not None:
                    run.held[news.job] -= news.slots
        self._post(news)  # type: ignore[arg-type]

    def _joined(self, news: RunJoined | JoinRefused) -> None:
        run = self._jobs.get(_job(news.query))
        if run is None:
            return
        run.joining.discard(news.query)
        if isinstance(news, RunJoined):
            self._post(news)
            return
        run.fan.leave(run.outputs[news.query])
        del self._jobs[_job(news.query)]
        run.outputs.pop(news.query, None)
        run.wanted.discard(news.query)
        self._post(news)

    def lose(self, link: Link, reason: str) -> None:
        """A node is lost: its runs begin again later, or end with an error."""
        for run in list(self._runs.values()):
            if run.link is not link:
                continue
            if run.gave_rows and not run.ended:
                self._fail(run, link, reason)
            for query in run.joining:
                self._post(JoinRefused(query) if run.ended else RunJoined(query))
            run.joining.clear()
            run.begin_again()

    def _fail(self, run: PlacedRun, link: Link, reason: str) -> None:
        error = NodeGone(
            f"node {link.name} was lost ({reason}) after rows of the answer had been given out; "
            "run the query again"
        )
        run.ended = True
        run.fan.fail(error)
        self._post(RunEnded(run.name, error, True))
        for query in run.outputs:
            job = _job(query)
            # A slot at a time, as they would have come back.
            for _ in range(run.held[job]):
                self._post(LeaseEnded(0.0, job, link.name, 1, "failed", str(error)))
            if not run.held[job]:
                self._post(LeaseEnded(0.0, job, link.name, 0, "failed", str(error)))


def _job(query: str) -> str:
    return str(JobId(query, NATIVE_JOB))


def _nothing(event: object) -> None:
    pass
