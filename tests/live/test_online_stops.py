"""When online queries stop, what they say of the time left, and riders on changing files."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import duckdb
import pytest

import queryard
from queryard.core.errors import QueryardError
from queryard.live import Session

ROWS = 200_000
PARTS = 50
# All of it takes long enough to be stopped on the way: each row meets all of `few`.
SLOW = "SELECT sum(v) AS total FROM plain JOIN few ON (plain.v + 1) * few.w % 7 = 3"


def write(folder: Path, value: str) -> None:
    """The table `plain`, put in the place of the one before."""
    duckdb.execute(
        f"COPY (SELECT i, i % 4 AS kind, {value} AS v FROM range({ROWS}) t(i)) "
        f"TO '{folder}/newer.tmp' (FORMAT parquet, ROW_GROUP_SIZE {ROWS // PARTS})"
    )
    (folder / "newer.tmp").replace(folder / "plain.parquet")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("stops")
    write(folder, "i % 10")
    duckdb.execute(f"COPY (SELECT w FROM range(1000) t(w)) TO '{folder}/few.parquet'")
    with queryard.connect(folder, slots=2, history=False, statistics="off") as found:
        yield found


def test_at_the_end_of_within_there_is_what_was_read_by_then(session: Session):
    began = time.monotonic()
    *_, last = session.online(SLOW, within="0.1 s", every=0)
    assert time.monotonic() - began >= 0.1
    assert not last.exact
    assert 1 / PARTS <= last.fraction < 1


def test_it_stops_by_interval_after_five_parts_at_the_earliest(session: Session):
    # All parts are alike, so that the first interval is near enough at once.
    for sql in ("SELECT count(*) AS n FROM plain", "SELECT avg(v) AS mean FROM plain"):
        *early, last = session.online(sql, stop_at=0.9, every=0)
        assert not last.exact
        assert last.fraction >= 5 / PARTS
        assert all(answer.error is None for answer in early if answer.fraction < 5 / PARTS)


def test_the_time_that_is_left_is_told_and_runs_down(session: Session):
    answers = session.online(SLOW, stop_at=0.001, every=0)
    told = []
    for answer in answers:
        told.append(answer)
        if answer.fraction > 0.3:
            break
    answers.stop()
    first, last = told[0], told[-1]
    assert first.eta_s.wanted_s is None, "without an interval it is not known"
    for answer in told[1:]:
        assert answer.eta_s.exact_s is not None
        assert answer.eta_s.exact_s > 0
        if answer.error is not None and answer.eta_s.wanted_s is not None:
            assert 0 <= answer.eta_s.wanted_s <= answer.eta_s.exact_s
    # By a factor of ten: other programs come and go.
    taken_s = (last.elapsed_s - first.elapsed_s) / (last.fraction - first.fraction)
    left_s = taken_s * (1 - last.fraction)
    assert left_s / 10 < last.eta_s.exact_s < 10 * left_s


def test_an_exact_answer_leaves_nothing_to_wait_for(session: Session):
    *_, last = session.online("SELECT count(*) AS n FROM plain", every=0)
    assert last.exact
    assert not last.eta_s.exact_s


@pytest.mark.parametrize("seed", range(3))
def test_riders_at_random_give_the_answers_of_one_state_of_files_that_change(
    tmp_path: Path, seed: int
):
    """Several at once, some stopped or cancelled, while the table is replaced again and again."""
    draw = random.Random(seed)
    write(tmp_path, "0 + i % 10")
    states = [0]
    wrong: list[object] = []
    riding: set[int] = set()
    disturbed: set[int] = set()
    replacing = threading.Event()
    with queryard.connect(tmp_path, slots=2, history=False, statistics="off") as session:

        def ride(number: int, kind: int, pause_s: float, how: str) -> None:
            time.sleep(pause_s)
            riding.add(number)
            sql = f"SELECT sum(v) AS s, count(*) AS n FROM plain WHERE kind <> {kind}"
            stop_at = 0.2 if how == "near" else None
            answers = session.online(sql, every=0, stop_at=stop_at)
            try:
                for _ in answers:
                    if how == "stopped":
                        answers.stop()
            except QueryardError as error:
                # A file that is replaced while DuckDB reads it may fail the statement.
                if number not in disturbed and not replacing.is_set():
                    wrong.append((number, error))
                return
            finally:
                riding.discard(number)
            last = answers.last
            if last is None or (how != "stopped" and not last.exact and stop_at is None):
                wrong.append((number, last))
            elif last.exact and last.rows() not in [exactly(kind, state) for state in states]:
                wrong.append((number, kind, last.rows()))

        riders = [
            threading.Thread(
                target=ride,
                args=(
                    number,
                    draw.randrange(4),
                    draw.uniform(0, 0.8),
                    draw.choice(["exact", "exact", "near", "stopped"]),
                ),
            )
            for number in range(8)
        ]
        for rider in riders:
            rider.start()
        for state in (1, 2):
            time.sleep(draw.uniform(0.1, 0.5))
            states.append(state)
            replacing.set()
            write(tmp_path, f"{state} + i % 10")
            disturbed |= riding
            replacing.clear()
        for rider in riders:
            rider.join()
        assert wrong == []
        answers = session.online("SELECT sum(v) AS s, count(*) AS n FROM plain WHERE kind <> 0")
        assert list(answers)[-1].rows() == exactly(0, states[-1])


def exactly(kind: int, state: int) -> list[tuple[int, int]]:
    values = [state + i % 10 for i in range(ROWS) if i % 4 != kind]
    return [(sum(values), len(values))]
