"""Thousands of random histories of a host, each step checked: whatever happens, every query that
was let in ends once, nothing is left behind, and no slot is used twice.
"""

from __future__ import annotations

import random

import pytest

from queryard.backends.fake import Script
from queryard.core.errors import QueryardError
from queryard.core.model import Node
from queryard.engine.errors import OutOfMemory, QueryCancelled, QueryFailed
from queryard.live import inputs
from queryard.live.admission.limits import Limits
from queryard.live.sharing import TextScan
from queryard.policies import resolve_profile

from .fake_host import MIB, FakeClient, FakeHost

# Tasks run a second time at every occasion.
EAGER = {"name": "late", "factor": 1.0, "done": 0.0, "share": 1.0, "least_s": 0.0}
PROFILES = (
    *("fifo", "fair", "marshal", "srtf", "tls", "swrd", "s3", "mrshare"),
    {"base": "fair", "speculation": EAGER},
    {"base": "marshal", "speculation": EAGER},
)
STATEMENTS = (
    *("reads", "reads", "reads", "own", "own writes", "beside", "impossible", "defect"),
    *("scans", "scans", "scans"),
    *("db?a", "own writes db!a", "own db?a db!b", "db?b scans"),
)
SCANS = (TextScan("t", 4.0, 6.0, 0.2),)
CLUSTERS = (
    (Node("local", 2, 1024.0 * MIB),),
    (Node("local", 1, 512.0 * MIB),),
    tuple(Node(f"local-{n}", 1, 400.0 * MIB, host="local") for n in range(3)),
    (Node("east", 2, 512.0 * MIB), Node("west", 1, 512.0 * MIB)),
)
SHORT, LONG = 300, 6000


def scripted(draw: random.Random) -> Script:
    """What happens, from the same generator, so that a seed is a history."""
    failing = draw.choice((0.0, 0.1, 0.5))
    greedy = draw.choice((0.0, 0.2))

    def error(run: str) -> BaseException | None:
        if draw.random() < greedy:
            return OutOfMemory("no more")
        return QueryFailed("bad") if draw.random() < failing else None

    def task_error(task: object, attempt: int) -> BaseException | None:
        if draw.random() >= failing:
            return None
        return draw.choice((QueryFailed("bad"), OSError("disk")))

    return Script(
        work_s=lambda run: draw.choice((0.0, 0.01, 0.3, 2.0, 9.0)),
        error=error,
        rows_out=lambda run: draw.random() < 0.3,
        joinable=lambda run: draw.random() < 0.7,
        join_s=lambda: draw.choice((0.0, 0.0, 0.1)),
        leave_s=lambda: draw.choice((0.0, 0.0, 0.05, 1.0)),
        task_s=lambda task, attempt: draw.choice((0.0, 0.1, 1.0)),
        task_error=task_error,
        read_s=lambda launch: draw.choice((0.0, 0.1)),
    )


def act(host: FakeHost, draw: random.Random, clients: list[FakeClient], turns: list[str]) -> None:
    """One thing that a user, a reader or an operator does."""
    on_their_way = list(host.open)
    match draw.choice("ssssccrrprtkwwnbf"):
        case "f":
            host.table_version = f"version {draw.random()}"
            host.table_splits = draw.choice((1, 3, 3, 8))
        case "s":
            key = draw.choice((None, None, "a", "b"))
            host.submit(
                draw.choice(STATEMENTS),
                draw.choice(clients),
                key,
                work_s=draw.choice((0.001, 0.5, 5.0)),
                plan=draw.choice(("native", "native", "staged", "auto")),
                scans=SCANS,
                memory_bytes=draw.choice((None, None, 64 * MIB, 300 * MIB)),
                tenant=draw.choice("xyz"),
                priority=draw.choice((0.0, 0.0, 1.0)),
                deadline_s=draw.choice((None, host.now_s + 3.0)),
                time_limit_s=draw.choice((None, None, None, 0.4)),
                idempotency_key=draw.choice(("", "", "", "once")),
            )
        case "c" if on_their_way:
            host.cancel(draw.choice(on_their_way))
        case "r" if on_their_way:
            host.post(inputs.ReaderState(draw.choice(on_their_way), draw.random() < 0.5))
        case "p":
            host.post(inputs.ChoosePolicy(resolve_profile(draw.choice(PROFILES))))
        case "t":
            turns.append(f"turn {len(host.replies)} {draw.random()}")
            host.post(inputs.AcquireConnection(turns[-1], clients[0]))
        case "k" if on_their_way:
            query = draw.choice(on_their_way)
            host.post(inputs.Release(query, _Closed(), draw.random() < 0.5))
        case "n":
            nodes = sorted(host.backend._nodes)
            host.backend.lose(draw.choice(nodes))
            host.step()
            if draw.random() < 0.7:
                host.run(host.now_s + draw.choice((0.0, 0.5)))
                join_all(host)
        case "b" if len(on_their_way) > 1:
            # Several things in one instant.
            first, second = draw.sample(on_their_way, 2)
            host.post(
                inputs.Cancel(first, QueryCancelled("cancelled")),
                inputs.ReaderState(second, True),
                inputs.Cancel(first, QueryCancelled("again")),
            )
        case "w":
            host.run(host.now_s + draw.choice((0.01, 0.2, 1.0)))
    for turn in [turn for turn in turns if turn in host.replies]:
        turns.remove(turn)
        host.post(inputs.ReleaseConnection(turn, clients[0]))


def join_all(host: FakeHost) -> None:
    for node in sorted(host.backend._nodes):
        host.backend.join(node)
    host.step()


class _Closed:
    def discard(self) -> None:
        pass


def history(seed: int) -> FakeHost:
    draw = random.Random(seed)
    host = FakeHost(
        draw.choice(CLUSTERS),
        scripted(draw),
        dict(resolve_profile(draw.choice(PROFILES))),
        draw.choice((None, Limits(waiting=5))),
        lag=lambda: draw.choice((0.0, 0.0, 0.2)),
    )
    clients = [FakeClient("a"), FakeClient("b")]
    turns: list[str] = []
    for _ in range(draw.choice((5, 20, 60))):
        act(host, draw, clients, turns)
    join_all(host)
    if draw.random() < 0.3:
        host.post(inputs.Close(QueryCancelled("closed")))
    # A reader that never comes back holds its query for good, as it should.
    for query in list(host.open):
        host.post(inputs.ReaderState(query, False))
    for _ in range(len(turns) + 1):
        host.run()
        for turn in [turn for turn in turns if turn in host.replies]:
            turns.remove(turn)
            host.post(inputs.ReleaseConnection(turn, clients[0]))
        for query in list(host.open):
            host.post(inputs.ReaderState(query, False))
    host.run()
    return host


def check(host: FakeHost) -> None:
    let_in = {query for query, reply in host.replies.items() if reply.query == query}
    assert set(host.ended) == let_in
    host.check_idle()
    for query, facts in host.ended.items():
        if facts.error is None:
            assert query not in host.failed_outputs
        else:
            assert query in host.failed_outputs
        assert host.asked[query] <= 1
    for reply in host.replies.values():
        assert reply.error is None or isinstance(reply.error, QueryardError)
    for plan in host.plans.values():
        assert plan.closed <= 1


def run_histories(first: int, count: int) -> None:
    for seed in range(first, first + count):
        try:
            check(history(seed))
        except BaseException as error:
            error.add_note(f"in the history of seed {seed}")
            raise


@pytest.mark.parametrize("part", range(3))
def test_whatever_happens_every_query_ends_once_and_nothing_is_left(part):
    run_histories(part * SHORT, SHORT)


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_whatever_happens_in_many_more_histories(part):
    run_histories(10_000 + part * LONG, LONG)


def test_the_same_seed_is_the_same_history():
    for seed in (3, 14, 159):
        one, other = history(seed), history(seed)
        assert one.journal.steps == other.journal.steps
        assert list(one.ended) == list(other.ended)
