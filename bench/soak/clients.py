"""Clients: threads that do one thing after another, and check that it ends as it must."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from queryard.core.errors import QueryardError
from queryard.engine.errors import (
    NotAllowed,
    OutOfMemory,
    QueryCancelled,
    QueryFailed,
    QueryTimedOut,
)
from queryard.live import Handle, Session
from queryard.live.admission.limits import Refused
from queryard.policies.profiles import PROFILES

from .faults import MARK
from .questions import BAD, BROKEN, LONG, MANY_ROWS, UNKNOWN, Question, Questions

TENANTS: dict[str, Any] = {
    "web": {"guarantee": 0.3, "weight": 2},
    "lab": {"guarantee": 0.2, "tenants": {"night": {"cap": 0.8}, "day": {}}},
    "guest": {"limits": {"waiting": 2}},
}
NAMES = ("web", "lab/night", "lab/day", "guest", "default")
SLOW_S = 2.0

Action = Callable[["Client"], str]


class Violation(Exception):
    """Something ended as it must not."""


class Client:
    """One thread. `doing` and `since` tell what it does, to report a client that hangs."""

    def __init__(self, number: int, session: Session, questions: Questions, seed: str) -> None:
        self.rng = Random(f"client/{seed}/{number}")
        self.number = number
        self.session = session
        self.questions = questions
        self.outcomes: Counter[str] = Counter()
        self.violations: list[str] = []
        self.doing = ""
        self.since = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"soak-client-{number}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def wait(self, timeout_s: float) -> bool:
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        actions, weights = zip(*ACTIONS.items(), strict=True)
        while not self._stop.is_set():
            (action,) = self.rng.choices(actions, weights)
            self.doing, self.since = action.__name__, time.monotonic()
            try:
                ending = action(self)
            except Violation as violation:
                self.violations.append(f"{self.doing}: {violation}")
            except BaseException as error:
                self.violations.append(f"{self.doing}: {type(error).__name__}: {error}")
            else:
                self.outcomes[f"{self.doing}: {ending}"] += 1
            self.doing = ""

    # --- asking --------------------------------------------------------------------------------

    def submit(self, sql: str, **options: Any) -> Handle:
        """Submit a query with a random tenant and a random urgency."""
        options.setdefault("tenant", self.rng.choice(NAMES[:3]))
        if self.rng.random() < 0.2:
            options["deadline"] = self.rng.uniform(0.01, 5.0)
        if self.rng.random() < 0.2:
            options["priority"] = self.rng.uniform(-1.0, 1.0)
        return self.session.submit(sql, **options)

    def usual(self) -> Question:
        return self.rng.choice(self.questions.usual)

    def ending(self, ask: Callable[[], str], *allowed: type[BaseException]) -> str:
        """What came of it: an answer, or an error that may be here and says something."""
        try:
            return ask()
        except Violation:
            raise
        except BaseException as error:
            if MARK in str(error):
                return "failed on purpose"
            if isinstance(error, allowed) and len(str(error)) > 5:
                return type(error).__name__
            raise Violation(f"{type(error).__name__}: {error}") from error


def _right(question: Question, handle: Handle) -> str:
    if not question.is_answered_by(handle.result().arrow()):
        raise Violation(f"wrong answer to {question.sql}")
    return "answered"


def _later(client: Client, longest_s: float, do: Callable[[], None]) -> threading.Timer:
    timer = threading.Timer(client.rng.uniform(0.0, longest_s), do)
    timer.daemon = True
    timer.start()
    return timer


# --- what clients do -----------------------------------------------------------------------------


def ask(client: Client) -> str:
    question = client.usual()
    return client.ending(lambda: _right(question, client.submit(question.sql)))


def ask_staged(client: Client) -> str:
    question = client.usual()
    return client.ending(lambda: _right(question, client.submit(question.sql, plan="staged")))


def ask_on_little_memory(client: Client) -> str:
    question = client.usual()
    return client.ending(
        lambda: _right(question, client.submit(question.sql, memory="32 MB")), OutOfMemory
    )


def ask_asynchronously(client: Client) -> str:
    questions = [client.usual() for _ in range(3)]

    async def gather() -> str:
        handles = [client.submit(question.sql) for question in questions]
        for question, handle in zip(questions, handles, strict=True):
            await handle
            _right(question, handle)
        return "answered"

    return client.ending(lambda: asyncio.run(gather()))


def ask_as_guest(client: Client) -> str:
    """As a tenant with a limit on waiting queries."""
    question = client.usual()
    return client.ending(
        lambda: _right(question, client.submit(question.sql, tenant="guest")), Refused
    )


def ask_identical_queries(client: Client) -> str:
    """Submit identical queries; one of them may be cancelled."""
    question = client.usual()
    handles = [client.submit(question.sql) for _ in range(client.rng.randint(2, 6))]
    leaves = client.rng.choice((True, False))
    if leaves:
        handles[client.rng.randrange(len(handles))].cancel()
    endings = Counter(
        client.ending(lambda handle=handle: _right(question, handle), QueryCancelled)  # type: ignore[misc]
        for handle in handles
    )
    if endings["QueryCancelled"] > leaves:
        raise Violation(f"more than the one that left were cancelled: {endings}")
    return "answered" if endings["answered"] else endings.most_common(1)[0][0]


def cancel(client: Client) -> str:
    question = client.rng.choice((client.usual(), client.rng.choice(client.questions.long)))
    plan = client.rng.choice(("native", "staged"))

    def run() -> str:
        handle = client.submit(question.sql, plan=plan)
        _later(client, 0.3, handle.cancel)
        return _right(question, handle)

    return client.ending(run, QueryCancelled)


def run_into_a_limit(client: Client) -> str:
    question = client.rng.choice(client.questions.long)
    plan = client.rng.choice(("native", "staged"))
    limit_s = client.rng.uniform(0.001, 0.5)
    return client.ending(
        lambda: _right(question, client.submit(question.sql, plan=plan, time_limit=limit_s)),
        QueryTimedOut,
    )


def drop_the_handle(client: Client) -> str:
    handle = client.submit(LONG.format(client.rng.uniform(0.0, 40.0)))
    time.sleep(client.rng.choice((0.0, 0.05)))
    del handle
    return "dropped"


def read_slowly(client: Client) -> str:
    """Batch by batch, with pauses; sometimes only the first ones."""
    patience = client.rng.choice((1, 3, 10**9))
    pause_s = client.rng.uniform(0.0, 0.1)
    plan = client.rng.choice(("native", "native", "staged"))

    def run() -> str:
        until = time.monotonic() + SLOW_S
        rows, total = 0, 0
        with client.submit(MANY_ROWS, plan=plan).result() as answer:
            for number, batch in enumerate(answer.batches()):
                rows += batch.num_rows
                total += sum(_sum(column) for column in batch.columns)
                if number >= patience:
                    return "left early"
                time.sleep(pause_s if time.monotonic() < until else 0.0)
        if (rows, total) != client.questions.many_rows:
            raise Violation(f"{rows} rows that add up to {total}, not {client.questions.many_rows}")
        return "answered"

    return client.ending(run)


def _sum(column: Any) -> int:
    import pyarrow.compute

    return int(pyarrow.compute.sum(column).as_py() or 0)


def write_badly(client: Client) -> str:
    def run() -> str:
        client.submit(client.rng.choice(BAD)).result().arrow()
        raise Violation("bad SQL was answered")

    return client.ending(run, QueryardError)


def fail_on_the_way(client: Client) -> str:
    plan = client.rng.choice(("native", "staged"))

    def run() -> str:
        client.submit(BROKEN, plan=plan).result().arrow()
        raise Violation("a text became a number")

    return client.ending(run, QueryFailed)


def name_no_table(client: Client) -> str:
    def run() -> str:
        try:
            client.submit(UNKNOWN, plan=client.rng.choice(("native", "staged"))).result().arrow()
        except QueryardError as error:
            if "no_such_table" not in str(error) and MARK not in str(error):
                raise Violation(f"the error does not name the table: {error}") from error
            raise
        raise Violation("a table that does not exist was read")

    return client.ending(run, QueryardError)


def do_what_is_not_allowed(client: Client) -> str:
    def run() -> str:
        client.submit("COPY orders TO 'soak-must-not-exist.csv'").wait()
        raise Violation("a session that only reads wrote a file")

    return client.ending(run, NotAllowed)


def keep_a_table(client: Client) -> str:
    """On the session's own connection, where one statement runs at a time."""
    name = f"kept_{client.number}_{client.rng.randrange(1 << 30)}"

    def run() -> str:
        session = client.session
        session.sql(f"CREATE TEMP TABLE {name} AS SELECT o_custkey FROM orders")
        try:
            rows = session.sql(f"SELECT count(*) FROM {name}").fetchall()
        finally:
            # As often as it takes: a slot may fail here, too.
            for _ in range(50):
                try:
                    session.sql(f"DROP TABLE IF EXISTS {name}")
                except QueryFailed:
                    continue
                break
        if rows != [(client.questions.orders,)]:
            raise Violation(f"the table has {rows}, not {client.questions.orders}")
        return "answered"

    return client.ending(run)


def bind_parameters(client: Client) -> str:
    def run() -> str:
        sql = "SELECT count(*) FROM orders WHERE o_orderkey > $1"
        rows = client.submit(sql, parameters=[0]).result().fetchall()
        if rows != [(client.questions.orders,)]:
            raise Violation(f"counted {rows}, not {client.questions.orders}")
        return "answered"

    return client.ending(run)


def look_on(client: Client) -> str:
    """Read everything that a user can look at."""
    session = client.session
    views = session.queries()
    session.forecasts()
    session.report()
    for view in views[:2]:
        try:
            str(session.why(view.id))
        except QueryardError as error:
            if "active query" not in str(error):  # it may have ended meanwhile
                raise
    time.sleep(0.1)
    return "seen"


def change_the_profile(client: Client) -> str:
    client.session.use_profile(next(_profiles(client)))
    time.sleep(client.rng.uniform(0.0, 0.5))
    return "changed"


def _profiles(client: Client) -> Iterator[str]:
    """At random, the default more often; those that scale need a session that can."""
    fixed = [name for name, profile in PROFILES.items() if "provisioning" not in profile]
    while True:
        yield client.rng.choice(("marshal", client.rng.choice(fixed)))


ACTIONS: dict[Action, float] = {
    ask: 20,
    ask_staged: 12,
    ask_on_little_memory: 3,
    ask_asynchronously: 3,
    ask_as_guest: 6,
    ask_identical_queries: 6,
    cancel: 8,
    run_into_a_limit: 4,
    drop_the_handle: 4,
    read_slowly: 4,
    write_badly: 3,
    fail_on_the_way: 3,
    name_no_table: 3,
    do_what_is_not_allowed: 1,
    keep_a_table: 2,
    bind_parameters: 3,
    look_on: 3,
    change_the_profile: 3,
}
