"""A session in a forked process: it says which process it belongs to, and never hangs."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from engine.native_driving import write_facts

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
SOURCES = Path(__file__).parents[2] / "src"

PREAMBLE = """
import gc, os, sys, time, traceback, warnings
import queryard
from queryard import dbapi
from queryard.core.errors import QueryardError
warnings.simplefilter("ignore")
LONG = "SELECT sum(hash(words, r)::HUGEINT) FROM facts, range(99999) t(r)"
MANY = "SELECT id, r FROM facts, range(1000) t(r)"

def in_child(act):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            act()
            sys.stdout.flush()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
    until = time.monotonic() + 20.0
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert status == 0, f"the child ended with {status}"
            return
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    sys.exit("the child hangs")

def refused(act, kind=QueryardError):
    try:
        found = act()
    except kind as error:
        assert f"belongs to process {os.getppid()}" in str(error), error
        assert "queryard.connect" in str(error), error
    else:
        sys.exit(f"it was not refused: {found!r}")
"""


def run(place: Path, code: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", PREAMBLE + textwrap.dedent(code), str(place)],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("forks")
    write_facts(made, 20_000)
    return made


def test_everything_that_would_wait_is_refused_and_the_parent_goes_on(place: Path) -> None:
    run(
        place,
        """
        import asyncio
        qy = queryard.connect(sys.argv[1], slots=2)
        handle = qy.submit(LONG)
        rows = qy.sql(MANY)
        fetched = qy.sql(MANY)
        fetched.fetchmany(3)
        all_there = qy.sql("SELECT 1 AS one")
        all_there.arrow()

        async def wait():
            return await handle

        def child():
            for act in (
                lambda: qy.sql("SELECT 1"),
                lambda: qy.submit("SELECT 1"),
                lambda: qy.explain("SELECT 1"),
                lambda: qy.cancel(handle.id),
                lambda: qy.queries(),
                lambda: qy.forecasts(),
                lambda: qy.why(handle.id),
                lambda: qy.report(),
                lambda: qy.use_profile("fifo"),
                lambda: qy.refresh(),
                lambda: qy.register("t", sys.argv[1] + "/facts.parquet"),
                lambda: qy.create_function("f", abs, ["BIGINT"], "BIGINT"),
                lambda: handle.result(),
                lambda: handle.wait(),
                lambda: handle.why(),
                lambda: handle.cancel(),
                lambda: asyncio.run(wait()),
                lambda: rows.fetchall(),
                lambda: rows.columns,
                lambda: list(rows),
                lambda: fetched.fetchmany(10_000_000),
            ):
                refused(act)
            # What has been handed over is the child's as well.
            assert all_there.fetchall() == [(1,)]
            assert all_there.columns == ["one"]
            repr(handle), repr(rows), handle.status

        in_child(child)
        assert rows.fetchone() is not None
        assert qy.sql("SELECT count(*) FROM facts").fetchall() == [(20_000,)]
        handle.cancel()
        assert handle.wait(30)
        qy.close()
        """,
    )


def test_closing_in_the_child_changes_nothing(place: Path) -> None:
    run(
        place,
        """
        qy = queryard.connect(sys.argv[1], slots=2)
        handle = qy.submit(LONG)
        rows = qy.sql(MANY)

        def child():
            rows.close()
            qy.close()
            with qy:
                pass

        in_child(child)
        assert not handle.ended
        assert rows.fetchone() is not None
        assert qy.sql("SELECT count(*) FROM facts").fetchall() == [(20_000,)]
        qy.close()
        """,
    )


@pytest.mark.parametrize("leave", ["os._exit(0)", "sys.exit(0)"])
def test_the_garbage_collector_of_the_child_does_not_hang(place: Path, leave: str) -> None:
    run(
        place,
        f"""
        held = dict(qy=queryard.connect(sys.argv[1], slots=2))
        held["handle"] = held["qy"].submit(LONG)
        held["rows"] = held["qy"].sql(MANY)

        def child():
            held.clear()
            gc.collect()
            {leave}

        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            child()
        until = time.monotonic() + 30
        while not (done := os.waitpid(pid, os.WNOHANG))[0]:
            if time.monotonic() > until:
                os.kill(pid, 9)
                sys.exit("the child hangs")
            time.sleep(0.01)
        assert done[1] == 0, done
        assert held["qy"].sql("SELECT count(*) FROM facts").fetchall() == [(20_000,)]
        assert not held["handle"].ended
        held["qy"].close()
        """,
    )


def test_a_child_opens_a_session_of_its_own(place: Path) -> None:
    run(
        place,
        """
        qy = queryard.connect(sys.argv[1], slots=2)
        assert qy.sql("SELECT count(*) FROM facts").fetchall() == [(20_000,)]

        def child():
            with queryard.connect(sys.argv[1], slots=1) as own:
                assert own.sql("SELECT count(*) FROM facts").fetchall() == [(20_000,)]

        in_child(child)
        assert qy.sql("SELECT count(*) FROM facts").fetchall() == [(20_000,)]
        qy.close()
        """,
    )


def test_a_connection_of_pep_249_is_refused_in_the_child(place: Path) -> None:
    run(
        place,
        """
        connection = dbapi.connect(sys.argv[1], slots=2)
        cursor = connection.cursor()
        cursor.execute(MANY)
        cursor.fetchone()

        def child():
            for act in (
                lambda: connection.execute("SELECT 1"),
                lambda: connection.commit(),
                lambda: connection.cursor(),
                lambda: cursor.fetchall(),
                lambda: cursor.execute("SELECT 1"),
            ):
                refused(act, dbapi.Error)
            cursor.close()
            with connection:
                pass
            connection.close()

        in_child(child)
        assert cursor.fetchone() is not None
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
        connection.close()
        """,
    )
