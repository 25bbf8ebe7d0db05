"""Answers that refine: from the first part of a sample to the exact answer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from waiting import wait_until

import queryard
from queryard.core.errors import QueryardError
from queryard.core.events import AnswerReported
from queryard.history import HistoryReader
from queryard.live import Session
from queryard.live.work.online import OnlineWork
from queryard.replay import recorded
from queryard.results.online import OnlineAnswer
from queryard.sim import replay

ROWS = 200_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("online")
    duckdb.execute(
        f"COPY (SELECT i, i % 4 AS kind, hash(i) % 1000 / 10.0 AS price, hash(i, 7) % 50 AS shop "
        f"FROM range({ROWS}) t(i)) TO '{found}/sales.parquet' (ROW_GROUP_SIZE 5000)"
    )
    duckdb.execute(
        f"COPY (SELECT i AS shop, 'town ' || (i % 5) AS town FROM range(50) t(i)) "
        f"TO '{found}/shops.parquet'"
    )
    with queryard.connect(found, slots=2, history=False) as session:
        session.shuffle("sales")
    return found


@pytest.fixture(scope="module")
def session(folder: Path):
    with queryard.connect(folder, slots=2, history=False, statistics="off") as found:
        yield found


def exactly(folder: Path, sql: str) -> list[tuple]:
    connection = duckdb.connect()
    for file in folder.glob("*.parquet"):
        connection.execute(f"CREATE VIEW {file.stem} AS FROM '{file}'")
    return connection.execute(sql).fetchall()


def about(rows: list[tuple]) -> list[tuple]:
    """Rows of which fractions may differ in the last digits."""
    return [tuple(pytest.approx(v) if isinstance(v, float) else v for v in row) for row in rows]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(price) AS total FROM sales",
        "SELECT kind, count(*) AS n, avg(price) AS p FROM sales GROUP BY kind ORDER BY kind",
        "SELECT town, sum(price) / count(*) AS p FROM sales JOIN shops USING (shop) "
        "WHERE price > 20 GROUP BY town ORDER BY p DESC LIMIT 3",
        "SELECT kind, stddev(price) AS s FROM sales GROUP BY kind HAVING count(*) > 10 ORDER BY 1",
    ],
)
def test_without_a_wish_it_ends_with_the_exact_answer(session: Session, folder: Path, sql: str):
    *early, last = session.online(sql, every=0)

    assert last.exact
    assert (last.fraction, last.error) == (1.0, 0.0)
    assert last.rows() == about(exactly(folder, sql))
    assert last.low == last.high
    assert set(last.low) == set(early[-1].low)
    assert early, "it answered before"
    assert all(not answer.exact and answer.sample == "shuffled copy" for answer in early)
    fractions = [answer.fraction for answer in early]
    assert fractions == sorted(fractions)


def test_intervals_hold_the_truth_and_shrink(session: Session, folder: Path):
    sql = "SELECT kind, sum(price) AS total FROM sales GROUP BY kind ORDER BY kind"
    truth = dict(exactly(folder, sql))

    answers = [a for a in session.online(sql, confidence=0.999, every=0) if a.error]

    assert answers[-1].error < answers[0].error
    last = answers[-1]
    for place, (kind, _) in enumerate(last.rows()):
        assert last.low["total"][place] <= truth[kind] <= last.high["total"][place]


def test_a_median_has_an_interval_and_ends_exact(session: Session, folder: Path):
    sql = "SELECT kind, median(price) AS middle FROM sales GROUP BY kind ORDER BY kind"

    answers = session.online(sql, every=0)
    *early, last = answers

    assert last.exact
    assert last.rows() == about(exactly(folder, sql))
    assert answers.last is last, "not the last estimate"
    with_interval = [answer for answer in early if answer.error is not None]
    assert with_interval
    for answer in with_interval:
        for (_, middle), low, high in zip(
            answer.rows(), answer.low["middle"], answer.high["middle"], strict=True
        ):
            assert low <= middle <= high


def test_it_stops_near_enough(session: Session, folder: Path):
    *_, last = session.online("SELECT sum(price) AS total FROM sales", stop_at=0.05, every=0)

    assert not last.exact
    assert last.error is not None
    assert last.error <= 0.05
    assert last.fraction < 0.9
    [(truth,)] = exactly(folder, "SELECT sum(price) FROM sales")
    assert last.rows()[0][0] == pytest.approx(truth, rel=0.1)


def test_it_stops_by_time(session: Session):
    *_, last = session.online("SELECT sum(price) AS total FROM sales", within="1 ms", every=0)

    assert isinstance(last, OnlineAnswer)
    assert not last.exact
    assert last.fraction <= 0.1, "the first answer, and no more"


def test_clients_that_know_only_final_answers_get_the_last(session: Session, folder: Path):
    answers = session.online("SELECT count(*) AS n FROM sales WHERE kind = 1")
    for _ in answers:
        pass
    assert answers.result().fetchall() == exactly(
        folder, "SELECT count(*) AS n FROM sales WHERE kind = 1"
    )


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT * FROM sales LIMIT 3", ""),
        ("SELECT sum(price) OVER () FROM sales LIMIT 1", "window"),
        ("SELECT sum(price) AS p FROM sales WHERE price > (SELECT avg(price) FROM sales)", ""),
        ("SELECT sum(price) AS p FROM sales WHERE i < 100", "too few"),
        ("SELECT i, sum(price) AS p FROM sales GROUP BY i ORDER BY i LIMIT 5", "groups"),
    ],
)
def test_what_cannot_be_estimated_runs_exactly_and_says_so(
    session: Session, folder: Path, sql: str, why: str
):
    answers = session.online(sql, every=0)
    [last] = answers

    assert last.exact
    assert answers.reason
    assert why in answers.reason
    assert f"run exactly: {answers.reason}" in last.notes
    assert last.rows() == about(exactly(folder, sql))


def test_errors_are_those_of_the_query(session: Session):
    with pytest.raises(QueryardError, match="nowhere"):
        list(session.online("SELECT sum(x) AS s FROM nowhere"))
    with pytest.raises(QueryardError, match="stop_at"):
        session.online("SELECT 1", stop_at=3)
    with pytest.raises(QueryardError, match="confidence"):
        session.online("SELECT 1", confidence=95)
    with pytest.raises(QueryardError, match="stop_at"):
        session.online("SELECT 1", stop_at="1%")  # type: ignore[arg-type]
    with pytest.raises(QueryardError, match="columns"):
        session.online("SELECT 1", columns=[1])  # type: ignore[list-item]


def test_columns_are_named_in_any_case_and_a_wrong_one_is_an_error(session: Session):
    sql = "SELECT kind, sum(price) AS total FROM sales GROUP BY kind"
    assert next(session.online(sql, columns="TOTAL")).columns == ["kind", "total"]
    with pytest.raises(
        QueryardError, match=r"columns: nothing is estimated in 'totl' \(estimated: total\)"
    ):
        next(session.online(sql, columns=["totl"]))


BY_KIND = "SELECT kind, sum(price) AS total FROM sales GROUP BY kind ORDER BY kind"
RARE = "avg(CASE WHEN kind = 3 AND i % 97 < 2 THEN price ELSE 3 + i % 2 END)"


def test_the_error_is_that_of_the_groups_that_are_named(session: Session):
    sql = f"SELECT kind, {RARE} AS total FROM sales GROUP BY kind ORDER BY kind"
    steady = [a for a in session.online(sql, groups=[1, 2], every=0) if a.error is not None]
    rare = [a for a in session.online(sql, groups=[3], every=0) if a.error is not None]
    assert len(steady[0]) == 4, "all groups are shown"
    assert 2 * steady[0].error < rare[0].error
    wanted = rare[0].error / 2
    *_, soon = session.online(sql, groups=[1, 2], stop_at=wanted, every=0)
    *_, late = session.online(sql, stop_at=wanted, every=0)
    assert soon.fraction < late.fraction, "the rare one needs more"


@pytest.mark.parametrize(
    ("sql", "groups", "told"),
    [
        (BY_KIND, [1, 17], r"groups: there is no group 17 in what was read \(groups: 0, 1, 2, 3\)"),
        (BY_KIND, [(1, 2)], r"groups: \(1, 2\) must be a value of each group column .* \(kind\)"),
        ("SELECT sum(price) AS p FROM sales", ["x"], "groups: 'x' is no group, as the answer has"),
        (BY_KIND, 5, "groups: must be a list of groups, got 5"),
        (BY_KIND, [{"kind": 1}], "groups: must be values of the group column"),
    ],
)
def test_a_wrong_group_is_an_error_that_says_what_there_is(
    session: Session, sql: str, groups: object, told: str
):
    with pytest.raises(QueryardError, match=told):
        list(session.online(sql, groups=groups, every=0))  # type: ignore[arg-type]


def test_the_kernel_hears_of_the_users_own_measure(folder: Path, tmp_path: Path):
    with queryard.connect(
        folder, slots=2, history=tmp_path / "h.sqlite", statistics="off"
    ) as session:
        list(session.online(BY_KIND, measure=lambda rows: rows.num_rows))
        with pytest.raises(QueryardError, match="measure: the function failed: division by zero"):
            list(session.online(BY_KIND, measure=lambda rows: 1 / 0))
        with pytest.raises(QueryardError, match="measure: must be a function of the rows, got 3"):
            session.online(BY_KIND, measure=3)  # type: ignore[arg-type]
    with HistoryReader(tmp_path / "h.sqlite") as history:
        steps = recorded(history).journal.steps
    reports = [e for step in steps for e in step.events if isinstance(e, AnswerReported)]
    assert [c for e in reports for c in (*e.before, e.change)] == [1.0] + [0.0] * 19


def test_a_table_without_rows(tmp_path: Path):
    duckdb.execute(f"COPY (SELECT 1 AS v WHERE false) TO '{tmp_path}/none.parquet'")
    with queryard.connect(tmp_path, slots=2, history=False) as session:
        session.shuffle("none")
        answers = session.online("SELECT count(*) AS n FROM none")
        assert [answer.rows() for answer in answers] == [[(0,)]]
        assert answers.reason == "none has no rows"


def test_a_frame_is_read_exactly(folder: Path):
    frame = pa.table({"a": range(1000), "b": [i % 5 for i in range(1000)]})
    with queryard.connect(folder, tables={"frame": frame}, slots=2, history=False) as session:
        answers = session.online("SELECT sum(a) AS s FROM frame")
        assert [answer.rows() for answer in answers] == [[(499_500,)]]
        assert "frame is a frame in memory" in answers.reason
        joined = session.online("SELECT count(*) AS n FROM sales JOIN frame ON a = kind")
        assert [answer.rows() for answer in joined] == [[(ROWS,)]]
        staged = session.submit("SELECT list(a) AS l FROM frame WHERE a < 2", plan="staged")
        assert staged.result().fetchall() == [([0, 1],)]


def test_a_failure_of_the_scheduler_reaches_who_waits(folder: Path, monkeypatch):
    def fails(work: OnlineWork) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(OnlineWork, "jobs", fails)
    session = queryard.connect(folder, slots=2, history=False, statistics="off")
    with pytest.raises(RuntimeError, match="a defect"):
        list(session.online("SELECT sum(price) AS total FROM sales"))
    session.close()


def test_it_can_be_stopped_and_the_last_answer_stays(session: Session):
    answers = session.online("SELECT sum(price) AS total FROM sales", every=0)
    first = next(answers)
    answers.stop()
    assert answers.last is not None
    assert answers.last.fraction >= first.fraction
    list(answers)  # ends, without an error
    with pytest.raises(
        QueryardError, match=r"stopped by stop\(\); its last answer is \.last: <Online"
    ):
        answers.result()


def test_columns_of_one_name_have_intervals_of_their_own(session: Session):
    sql = "SELECT sum(price) AS v, count(*) AS v FROM sales"
    *early, last = session.online(sql, every=0)
    assert last.labels == ["v", "v_1"]
    answer = early[-1]
    total, count = answer.rows()[0]
    assert answer.low["v"][0] <= total <= answer.high["v"][0]
    assert answer.low["v_1"][0] <= count <= answer.high["v_1"][0]
    assert "v_1" not in answer.columns


def test_a_sum_that_is_zero_does_not_keep_a_query_from_stopping(session: Session):
    sql = "SELECT sum(price) AS total, sum(price * 0) AS nothing FROM sales"
    *_, last = session.online(sql, stop_at=0.05, every=0)
    assert not last.exact
    assert last.low["nothing"] == [None]
    assert any("0 so far" in note for note in last.notes)


def test_types_of_early_answers_are_those_of_the_exact_one(session: Session):
    sql = (
        "SELECT kind, count(*) AS n, sum(i) AS whole, sum(price::DECIMAL(9, 2)) AS money, "
        "avg(price) AS mean, sum(i) // 7 AS part, max(i) AS most FROM sales GROUP BY kind"
    )
    *early, last = session.online(sql, every=0)
    assert {answer.types for answer in early} == {last.types}
    assert all(answer.arrow().schema.types == last.arrow().schema.types for answer in early)


def test_async(session: Session):
    async def ask() -> list[OnlineAnswer]:
        return [a async for a in session.online("SELECT sum(price) AS t FROM sales", every=0)]

    answers = asyncio.run(ask())
    assert answers[-1].exact


def test_random_blocks_without_a_copy(tmp_path: Path):
    duckdb.execute(
        f"COPY (SELECT i, hash(i) % 1000 AS v FROM range({ROWS}) t(i)) "
        f"TO '{tmp_path}/plain.parquet' (ROW_GROUP_SIZE 4000)"
    )
    with queryard.connect(tmp_path, slots=2, history=False, statistics="off") as session:
        *early, last = session.online("SELECT sum(v) AS s FROM plain", every=0)
        assert early[0].sample == "random blocks"
        assert (
            last.rows() == duckdb.sql(f"SELECT sum(v) FROM '{tmp_path}/plain.parquet'").fetchall()
        )


def test_files_that_change_meanwhile_are_read_again(tmp_path: Path):
    def write(name: str, value: int) -> Path:
        file = tmp_path / name
        duckdb.execute(
            f"COPY (SELECT i, {value} AS v FROM range({ROWS}) t(i)) TO '{file}' "
            "(FORMAT parquet, ROW_GROUP_SIZE 4000)"
        )
        return file

    table, newer = write("plain.parquet", 1), write("newer.tmp", 2)
    duckdb.execute(f"COPY (SELECT i FROM range(50) t(i)) TO '{tmp_path}/few.parquet'")
    sql = "SELECT sum(v) AS s FROM plain JOIN few ON plain.i >= few.i - 50"
    with queryard.connect(tmp_path, slots=1, history=False, statistics="off") as session:
        answers = session.online(sql, every=0)
        first = next(answers)
        assert not first.exact
        newer.replace(table)
        *_, last = answers
        assert last.exact
        assert last.rows() in ([(50 * ROWS,)], [(100 * ROWS,)])


def test_several_at_once_leave_nothing_behind(session: Session):
    answers = [
        session.online(f"SELECT sum(price) AS t FROM sales WHERE kind = {kind}", every=0)
        for kind in range(4)
    ]
    totals = [list(each)[-1].rows()[0][0] for each in answers]

    assert sum(totals) == pytest.approx(
        session.sql("SELECT sum(price) FROM sales").fetchall()[0][0]
    )
    wait_until(lambda: not session.queries())
    assert not session.queries()


@pytest.mark.parametrize("profile", ["relaqs", "online-tls", "marshal"])
def test_the_kernel_hears_of_answers_and_the_journal_replays(
    folder: Path, tmp_path: Path, profile: str
):
    with queryard.connect(
        folder, slots=2, history=tmp_path / "h.sqlite", profile=profile, statistics="off"
    ) as session:
        online = [
            session.online(
                f"SELECT shop, sum(price) AS t FROM sales WHERE kind <> {kind} GROUP BY shop"
            )
            for kind in range(3)
        ]
        session.sql("SELECT count(*) FROM sales").fetchall()
        for answers in online:
            assert list(answers)[-1].exact
    with HistoryReader(tmp_path / "h.sqlite") as history:
        found = recorded(history)
    reports = [
        event
        for step in found.journal.steps
        for event in step.events
        if isinstance(event, AnswerReported)
    ]
    assert len({event.job for event in reports}) == 3
    for job in {event.job for event in reports}:
        told = [event for event in reports if event.job == job]
        read = [n for e in told for n in range(e.batch - len(e.before), e.batch + 1)]
        assert read == list(range(1, 21)), "of each part, in order"
        changes = [change for event in told for change in (*event.before, event.change)]
        assert all(0 < change <= 1 for change in changes)
    assert replay(found.journal, lambda scheduler: scheduler.validate()) is None
