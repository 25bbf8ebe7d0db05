"""A session under a random mix of all that can happen to queries."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from queryard.core.errors import QueryardError
from queryard.live.handle import Handle
from queryard.live.session import Session

PROFILES = ("fifo", "query-fair", "srtf", "tls", "marshal", "hlfet", "deadline-first")
PATIENCE_S = 60.0


def ask(session: Session, draw: random.Random, number: int) -> Handle | None:
    """One query of a random kind; None if it was refused."""
    tenant = draw.choice(("web", "sales/emea", "sales/apac", "default"))
    more: dict[str, object] = {"tenant": tenant, "priority": float(draw.randint(0, 2))}
    if draw.random() < 0.2:
        more["deadline"] = draw.uniform(0.05, 2.0)
    if draw.random() < 0.1:
        more["time_limit"] = draw.uniform(0.01, 0.2)
    kind = draw.randrange(8)
    if kind == 0:
        sql = "SELECT key, count(*) AS n FROM facts GROUP BY key"
        more["plan"] = "staged"
    elif kind == 1:
        sql = "SELECT sum(price), 'twin' FROM facts WHERE small < 50"
    elif kind == 2:
        sql = f"SELECT error('bad luck {number}') FROM dims"
    elif kind == 3:
        sql = f"SELECT id, words, {number} AS n FROM facts, range(3)"
    elif kind == 4:
        sql = f"CREATE OR REPLACE TEMP TABLE t{number % 3} AS FROM dims WHERE key < {number}"
    elif kind == 5:
        sql = f"SELECT sum(hash(words, r)::HUGEINT), {number} FROM facts, range(8) t(r)"
    else:
        sql = f"SELECT count(*) FROM dims WHERE key > {number}"
    try:
        return session.submit(sql, **more)  # type: ignore[arg-type]
    except QueryardError:
        return None


def disturb(session: Session, draw: random.Random, handles: Sequence[Handle]) -> None:
    """Cancel, read a little, change the policy, look on, or forget a handle."""
    chance = draw.random()
    handle = draw.choice(handles)
    if chance < 0.15:
        handle.cancel()
    elif chance < 0.25:
        session.use_profile(draw.choice(PROFILES))
    elif chance < 0.35:
        session.forecasts()
    elif chance < 0.45:
        str(handle.why())
    elif chance < 0.5:
        session.queries()


def play(session: Session, draw: random.Random, queries: int = 25) -> list[Handle]:
    """Queries one after another, with whatever else happens; all of them have ended."""
    handles: list[Handle] = []
    for number in range(queries):
        handle = ask(session, draw, number)
        if handle is not None:
            handles.append(handle)
        if handles:
            disturb(session, draw, handles)
        time.sleep(draw.choice((0.0, 0.0, 0.002, 0.01)))
    read(handles, draw)
    for handle in handles:
        assert handle.wait(PATIENCE_S), f"{handle!r} hangs: {handle.why()}"
    return handles


def read(handles: Sequence[Handle], draw: random.Random) -> None:
    """Read all answers, some of them only in part."""
    for handle in draw.sample(handles, len(handles)):
        try:
            answer = handle.result(PATIENCE_S)
            if draw.random() < 0.2:
                answer.fetchmany(10)
                handle.cancel()
            else:
                for _ in answer.batches():
                    pass
        except QueryardError:
            pass
