"""A session's instance is not closed under what works there."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from queryard.engine.errors import QueryFailed
from queryard.engine.places import OnReadConnection, OnSession
from queryard.engine.sealing.access import Access, Reach
from queryard.engine.session.session import SessionInstance
from queryard.engine.syntax.classify import classify
from queryard.sql.catalog import open_catalog


def a_session(folder):
    reach = Reach(Access(), open_catalog(folder, {"frame": pa.table({"a": [1]})}))
    return SessionInstance(2, 64 << 20, folder, reach, writes=False)


def test_the_last_that_leaves_closes_the_instance(tmp_path):
    session = a_session(tmp_path)
    places = [OnSession(session), OnReadConnection(session, ())]
    connections = [place.enter() for place in places]
    instance = connections[0].instance
    session.close()
    for place, connection in zip(places, connections, strict=True):
        # A slot that overstays goes on to its next step.
        assert connection.rows("SELECT 42 AS a") == [{"a": 42}]
        place.leave()
    assert instance.database.value is None
    assert all(connection.handle.value is None for connection in connections)


def test_a_closed_session_takes_nothing_and_opens_nothing(tmp_path):
    session = a_session(tmp_path)
    session.close()
    for act in (
        OnSession(session).enter,
        OnReadConnection(session, ()).enter,
        lambda: session.connection,
        lambda: session.describe(classify("SELECT 1 AS a")[0], None),
    ):
        with pytest.raises(QueryFailed, match="the session is closed"):
            act()


def test_describing_while_the_session_closes_is_described_or_refused(tmp_path):
    statement = classify("SELECT 1 AS a, 'x' AS b")[0]
    for _ in range(20):
        session = a_session(tmp_path)
        session.connection  # noqa: B018  # it is open
        seen: list[object] = []

        def describe(session: SessionInstance = session, seen: list[object] = seen) -> None:
            try:
                while True:
                    seen.append(session.describe(statement, None).names)
            except QueryFailed as error:
                seen.append(str(error))

        thread = threading.Thread(target=describe)
        thread.start()
        session.close()
        thread.join()
        assert set(seen) <= {("a", "b"), "the session is closed; connect again"}
