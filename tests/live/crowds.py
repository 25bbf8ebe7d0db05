"""Queries of known duration, and what must hold while many are active."""

from __future__ import annotations

import itertools
from contextlib import ExitStack, contextmanager

from waiting import wait_until

import queryard

# So much longer than any test that it is always cancelled.
ENDLESS = "SELECT count(*) FROM range(100000000000) AS r(i) WHERE hash(i) % 7 = 0"
# About 0.3 s of two cores; its answer has 1,000 rows.
HEAVY = (
    "SELECT key, count(*) AS n, sum(hash(words, range)::HUGEINT) AS h FROM facts, range(30) "
    "GROUP BY key ORDER BY key"
)
_numbers = itertools.count()


@contextmanager
def sessions(data, temp, **usual):
    """Makes sessions, with options that are usual to a test, and closes them at its end."""
    with ExitStack() as held:

        def make(where=data, **options):
            return held.enter_context(queryard.connect(where, temp=temp, **{**usual, **options}))

        yield make


def spin(millions: float = 1.0) -> str:
    """A query of its own over so many million numbers; each takes about 20 ms of a core."""
    source = f"range({spun(millions)}) AS r(i)"
    return f"SELECT {next(_numbers)} AS n, count(*) FROM {source} WHERE hash(i) % 7 < 9"


def spun(millions: float = 1.0) -> int:
    """The count that `spin` answers."""
    return int(millions * 1e6)


def busy(session, **options):
    """A query that has every slot until it is cancelled, unless a policy prefers another."""
    handle = session.submit(ENDLESS, **options)
    wait_until(lambda: handle.status == "running", 30.0, "the start of the blocking query")
    return handle


def kernel(session, question):
    """What the session's kernel answers, on its own thread."""
    return session.host.ask(lambda coordinator: question(coordinator.kernel))


def check_kernel(session) -> None:
    """All invariants of the kernel hold, and no more memory is handed out than there is."""
    kernel(session, lambda scheduler: scheduler.validate())
    pool = session.host.engine.pool
    assert pool.limits_bytes <= pool._memory_bytes


def check_empty(session) -> None:
    """Nothing is left of any query."""
    host = session.host
    wait_until(lambda: not session.queries(), 30.0, "the end of all queries")
    check_kernel(session)
    wait_until(
        lambda: kernel(session, lambda k: not k.state.queries and not k.state.reservations),
        30.0,
        "an empty kernel",
    )
    wait_until(lambda: host.engine.pool._used_bytes == 0, 30.0, "the return of all memory")
    assert host.ask(lambda coordinator: coordinator.idle)
    assert not host.backend._leases._runs
    assert not host.backend._leases._jobs


def end_order(handles) -> list[int]:
    """The places of queries in the order in which they ended."""
    for handle in handles:
        assert handle.wait(60), handle
    ended = [handle.timing.ended_s for handle in handles]
    return sorted(range(len(handles)), key=lambda place: ended[place])


def start_order(handles) -> list[int]:
    """The places of queries in the order in which they started."""
    for handle in handles:
        assert handle.wait(60), handle
    started = [handle.timing.started_s for handle in handles]
    return sorted(range(len(handles)), key=lambda place: started[place])


def runs(*handles) -> int:
    """How many native queries answer these."""
    for handle in handles:
        wait_until(lambda: handle.ended or handle._ticket.facts.work is not None, 30.0)  # noqa: B023
    return len({handle._ticket.facts.shares_with or handle.id for handle in handles})
