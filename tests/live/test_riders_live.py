"""Queries that ride on shared scans of text, on the local backend; DuckDB's answers decide."""

from __future__ import annotations

import gzip
import math
import random
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import duckdb
import pytest
from long_forms import one_each
from waiting import wait_until

import queryard
from queryard.core.commands import Launch
from queryard.core.events import TableChanged, TaskFinished
from queryard.engine.errors import QueryCancelled, QueryFailed
from queryard.history import HistoryReader
from queryard.sim import replay

ROWS = 6000
SQL = (
    "SELECT k, count(*), sum(v) FROM {t} GROUP BY k ORDER BY k",
    "SELECT s, avg(f), min(d) FROM {t} WHERE v > {n} GROUP BY s ORDER BY s",
    "SELECT count(*), sum(v), max(s), stddev(f) FROM {t} WHERE k <> {m}",
    "SELECT id, s FROM {t} WHERE v = {n} ORDER BY id",
    "SELECT name, sum(v) FROM {t} JOIN names USING (k) GROUP BY name ORDER BY name",
    "WITH big AS (SELECT k, v FROM {t} WHERE v > {n}) SELECT k, count(*) FROM big GROUP BY k "
    "ORDER BY k",
    "SELECT k, count(DISTINCT s) FROM {t} GROUP BY k ORDER BY k",
    "SELECT s, v FROM {t} ORDER BY v DESC, id LIMIT 7",
)


def write(place: Path, name: str, seed: int) -> None:
    """A table of text: plain, gzip or JSON lines by its ending."""
    plain = place / "made.csv"
    select = (
        f"SELECT i AS id, (i * {seed} + 3) % 11 AS k, (i * 37 + {seed}) % 500 AS v, "
        f"'s,' || (i % 23) || '\"' AS s, i / 7.0 AS f, DATE '2020-01-01' + (i % 400)::INT AS d "
        f"FROM range({ROWS + seed}) r(i)"
    )
    target = place / name
    if name.endswith(".json"):
        duckdb.sql(f"COPY ({select}) TO '{target}' (FORMAT json)")
        return
    duckdb.sql(f"COPY ({select}) TO '{plain}'")
    if name.endswith(".gz"):
        target.write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    else:
        plain.replace(target)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for number, name in enumerate(("a.csv", "b.json", "c.csv.gz")):
        write(tmp_path, name, number + 1)
    duckdb.sql(
        f"COPY (SELECT i AS k, 'name' || i % 4 AS name FROM range(9) r(i)) "
        f"TO '{tmp_path / 'names.parquet'}'"
    )
    return tmp_path


def session_on(place: Path, segment_bytes: float, **options: Any) -> queryard.Session:
    session = queryard.connect(place, history=False, statistics="off", slots=2, **options)
    session.host.engine.segments.target_bytes = segment_bytes
    return session


PLAIN: dict[tuple[tuple[str, int], ...], duckdb.DuckDBPyConnection] = {}
"""DuckDB's own tables of a folder, by the state of its files."""


def expected(place: Path, sql: str) -> list[Any]:
    files = sorted(file for file in place.iterdir() if file.is_file())
    state = tuple((str(file), file.stat().st_mtime_ns) for file in files)
    if state not in PLAIN:
        PLAIN.clear()
        connection = PLAIN[state] = duckdb.connect()
        for file in files:
            name = file.name.partition(".")[0]
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM '{file}'")
    return PLAIN[state].execute(sql).fetchall()


def same(found: list[Any], wanted: list[Any]) -> bool:
    def near(a: Any, b: Any) -> bool:
        if isinstance(a, float) and isinstance(b, float):
            return math.isclose(a, b, rel_tol=1e-9)
        return bool(a == b)

    return len(found) == len(wanted) and all(
        all(map(near, row, other)) for row, other in zip(found, wanted, strict=True)
    )


def drawn(rng: random.Random, table: str) -> str:
    return rng.choice(SQL).format(t=table, n=rng.randrange(500), m=rng.randrange(11))


@pytest.mark.parametrize(
    ("profile", "seed"),
    one_each(["s3", "mrshare", "marshal"], range(2)),
)
def test_random_riders_get_duckdbs_answers_though_files_change(
    place: Path, profile: str, seed: int
) -> None:
    rng = random.Random(f"{profile}{seed}")
    chosen: Any = profile
    if profile == "mrshare":
        chosen = {"base": "mrshare", "sharing": {"name": "mrshare", "count": 4, "window_s": 0.2}}
    with session_on(place, rng.choice([40e3, 80e3, 200e3]), profile=chosen) as session:
        for turn in range(2):
            asked = []
            for _ in range(6):
                sql = drawn(rng, rng.choice("aabc"))
                asked.append((sql, session.submit(sql, plan="staged")))
                time.sleep(rng.choice([0, 0, 0.02]))
            found = [(sql, handle.result().fetchall()) for sql, handle in asked]
            for sql, rows in found:
                assert same(rows, expected(place, sql)), sql
            if turn == 0:
                write(place, rng.choice(["a.csv", "b.json", "c.csv.gz"]), rng.randrange(5, 40))


FAILING = "SELECT sum(CAST(CASE WHEN id = 5000 THEN 'x' ELSE '1' END AS INTEGER)) FROM a"


def recorded(file: Path) -> tuple[Any, list[Launch]]:
    with HistoryReader(file) as reader:
        journal = reader.journal(reader.session(None).session)
    commands = [command for step in journal.steps for command in step.commands]
    return journal, [command for command in commands if isinstance(command, Launch)]


def test_of_twenty_riders_one_fails_and_one_is_cancelled_and_the_others_are_right(
    place: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rng = random.Random(7)
    file = tmp_path_factory.mktemp("history") / "h.db"
    texts = [drawn(rng, "a") for _ in range(18)]
    with queryard.connect(place, history=file, statistics="off", slots=2, profile="s3") as session:
        session.host.engine.segments.target_bytes = 60e3
        handles = [session.submit(sql, plan="staged") for sql in texts[:9]]
        failing = session.submit(FAILING, plan="staged")
        cancelled = session.submit(texts[0], plan="staged")
        handles += [session.submit(sql, plan="staged") for sql in texts[9:]]
        threading.Timer(0.05, cancelled.cancel).start()
        for sql, handle in zip(texts, handles, strict=True):
            assert handle.reasons == (), sql
            assert same(handle.result().fetchall(), expected(place, sql)), sql
        with pytest.raises(QueryFailed, match="Could not convert"):
            failing.result().fetchall()
        try:
            rows = cancelled.result().fetchall()
        except QueryCancelled:
            pass
        else:
            assert same(rows, expected(place, texts[0]))
    journal, launched = recorded(file)
    with HistoryReader(file) as reader:
        rides = reader.rides(reader.session(None).session)
    assert len(rides[handles[3].id]) > 5
    assert replay(journal) is None
    assert any(len(launch.tasks) > 5 for launch in launched)
    check_riders_tell_what_each_has_left(journal, launched)
    check_nothing_is_read_twice(journal, launched, {handle.id for handle in handles})


def check_riders_tell_what_each_has_left(journal: Any, launched: list[Launch]) -> None:
    riders = {launch.number: {task.job for task in launch.tasks} for launch in launched}
    ended = [
        event
        for step in journal.steps
        for event in step.events
        if isinstance(event, TaskFinished) and len(riders[event.launch]) > 1
    ]
    assert ended
    for event in ended:
        assert event.rider_bytes is not None
        assert event.rider_bytes.keys() <= riders[event.launch]
        assert sum(event.rider_bytes.values()) == pytest.approx(event.output_bytes)


def check_nothing_is_read_twice(journal: Any, launched: list[Launch], finished: set[str]) -> None:
    """Each query that finished has read each split once, but for those that failed on the way."""
    retried = Counter(
        (task.job, task.index)
        for step in journal.steps
        for event in step.events
        if type(event).__name__ == "TaskFailed"
        for launch in launched
        if launch.number == event.launch
        for task in launch.tasks
        if event.job in ("", task.job)
    )
    splits = {}
    for step in journal.steps:
        for event in step.events:
            if isinstance(event, TableChanged):
                splits[event.table.name] = len(event.table.splits)
    read: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for launch in launched:
        for task in launch.tasks:
            if task.kind == "map" and task.job.partition("/")[0] in finished:
                read[task.job][task.index] += 1
    scans = {job: counts for job, counts in read.items() if len(counts) > 2}
    assert scans
    for job, counts in scans.items():
        assert counts.keys() == set(range(splits["a"])), job
        for index, times in counts.items():
            assert times == 1 + retried[job, index], (job, index)


def test_auto_chooses_native_alone_and_riding_in_company_and_says_why(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from queryard.live import sharing

    # For tables of a few KB the model would rightly say no.
    monkeypatch.setattr(sharing, "SMALL_S", 0.0)
    monkeypatch.setattr(
        sharing, "sharing_pays", lambda scans, make, rides, further: len(scans) + further >= 2
    )
    sql = SQL[0].format(t="a")
    with session_on(place, 20e3, plan="auto") as session:
        alone = session.explain(sql)
        assert alone.plan == "native"
        assert "no other query reads a" in str(alone)
        first = session.submit(sql)
        first.result().fetchall()
        assert first.explain().plan == "native"
        asked = [SQL[i].format(t="a", n=i, m=i) for i in (1, 2, 4)]
        handles = [session.submit(text) for text in asked]
        for text, handle in zip(asked, handles, strict=True):
            assert same(handle.result().fetchall(), expected(place, text))
        found = handles[-1].explain()
        assert found.plan == "staged"
        assert "rides on the shared scan of a" in str(found)
        # Parquet is never shared.
        assert session.explain("SELECT count(*) FROM names").plan == "native"
        # What cannot be split is not.
        other = session.explain("SELECT median(v) FROM a")
        assert other.plan == "native"


def test_what_is_kept_as_a_whole_is_read_by_duckdb_itself(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from queryard.live import sharing

    monkeypatch.setattr(sharing, "SMALL_S", 0.0)
    texts = [SQL[i].format(t="a", n=3, m=2) for i in (0, 1, 2)]
    # What cannot be split is, too; columns that are named but not read need not be kept.
    texts.append("SELECT median(v), quantile_disc(s, 0.3) FROM (SELECT id, v, s FROM a)")
    texts.append("SELECT median(x.v) FROM a x JOIN names USING (k) JOIN a y ON x.k = y.v")
    with session_on(place, 60e3) as session:
        store, table = session.host.engine.segments, session.catalog["a"]
        for segment in store.segments(table):
            with store.reading(table, segment, ["k", "v", "s", "f", "d"]):
                pass
        makes = store.makes
        for sql in texts:
            handle = session.submit(sql)
            assert same(handle.result().fetchall(), expected(place, sql))
            found = handle.explain()
            assert found.plan == "native"
            assert "is kept in parsed segments" in str(found)
            assert "is kept in parsed segments" in str(session.explain(sql))
        assert session.host.engine.segments.makes == makes
        # A column that was not parsed is not there: the scan is shared, or DuckDB's own.
        other = "SELECT sum(id) FROM a"
        assert session.submit(other).result().fetchall() == expected(place, other)
        write(place, "a.csv", 17)
        for sql in texts:
            assert same(session.submit(sql).result().fetchall(), expected(place, sql))


def test_a_segment_is_parsed_once_for_all_riders_and_kept_for_later_ones(place: Path) -> None:
    with session_on(place, 20e3, profile="s3") as session:
        texts = [SQL[0].format(t="a"), SQL[2].format(t="a", m=3)]
        for handle in [session.submit(sql, plan="staged") for sql in texts]:
            handle.result().fetchall()
        makes = session.host.engine.segments.makes
        for handle in [session.submit(sql, plan="staged") for sql in texts]:
            handle.result().fetchall()
        assert session.host.engine.segments.makes <= makes + 2


def test_why_tells_of_a_rider_with_which_queries_it_rides(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with session_on(place, 20e3, profile="s3") as session:
        store, go_on = session.host.engine.segments, threading.Event()
        reading = store.reading

        def held(*given: Any, **options: Any) -> Any:
            assert go_on.wait(60)
            return reading(*given, **options)

        monkeypatch.setattr(store, "reading", held)
        texts = [SQL[0].format(t="a"), SQL[2].format(t="a", m=3)]
        try:
            handles = [session.submit(sql, plan="staged") for sql in texts]
            for handle, other in (handles, reversed(handles)):
                told = f"rides on a shared scan with {other.id} and has read all in"
                wait_until(lambda told=told, handle=handle: told in str(handle.why()))
        finally:
            go_on.set()
        for handle, sql in zip(handles, texts, strict=True):
            assert same(handle.result().fetchall(), expected(place, sql))
        assert "rides" not in str(handles[0].why())
