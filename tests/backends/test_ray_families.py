"""TPC-H, the Star Schema Benchmark and random queries, staged on 1, 2 and 4 nodes, are answered as
by DuckDB, also while a node dies in every run.

The short form is on a Ray of this process, the long form on Ray.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow.parquet as pq
import pytest
from engine.staged.staged_driving import assert_same
from engine.staged.staged_grammar import TABLES as RANDOM_TABLES
from engine.staged.staged_grammar import Grammar, is_rounded
from engine.staged.staged_tables import make_tables
from waiting import wait_until

import queryard
import queryard.sql.planner
from bench.families import family
from queryard.backends.ray import members
from queryard.core.events import TaskFinished
from queryard.sql.planner import NotStageable
from queryard.workload import tpch

from .fake_ray import ray_faked
from .ray_cluster import ray_cluster, skip_without_ray

NODES = (1, 2, 4)
PATIENCE_S = 60.0
RANDOM_QUERIES = 25
PARTS = 6  # a test of the long form takes some seconds per query
# ORDER BY leaves rows of these in any order: ties, of TPC-H by its number.
TIES = {"tpch-02", "tpch-03", "tpch-10", "tpch-18", "tpch-21"}
# The death of a node is as likely early as late in a query.
KILL_AFTER = (1, 2, 4, 7, 11)


class Question(NamedTuple):
    name: str
    sql: str
    ordered: bool


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All tables, each in a few row groups; those of TPC-H in a folder, and a schema, below."""
    made, split = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("families")
    family("ssb").make(made / "ssb", 0.002, lambda share, line: None)
    tpch.generate(made / "tpch", 0.002)
    make_tables(split, RANDOM_TABLES, seed=1)
    (split / "tpch").mkdir()
    for source, place in ((made / "ssb", split), (made / "tpch", split / "tpch")):
        shutil.copytree(source / ".queryard", place / ".queryard")
        for file in source.glob("*.parquet"):
            table = pq.read_table(file)
            rows = max(table.num_rows // 4, 1)
            pq.write_table(table, place / file.name, row_group_size=rows)
    return split


def tables(folder: Path) -> dict[str, str]:
    here = {file.stem: str(file) for file in folder.glob("*.parquet")}
    return here | {f"tpch.{file.stem}": str(file) for file in folder.glob("tpch/*.parquet")}


@pytest.fixture(scope="module")
def plain(folder: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("CREATE SCHEMA tpch")
    for name, file in tables(folder).items():
        connection.execute(f"CREATE VIEW {name} AS FROM read_parquet('{file}')")
    return connection


@pytest.fixture(scope="module")
def questions(folder: Path) -> list[Question]:
    """All that is asked."""
    found = [
        Question(f"tpch-{number:02}", tpch.in_schema(tpch.query(number), "tpch"), True)
        for number in tpch.queries()
    ]
    # Rows of flight 3 with one revenue may come in any order.
    found += [
        Question(f"ssb-{one.name}", one.sql, not one.name.startswith("q3"))
        for one in family("ssb").queries(folder)
        if one.name == one.template
    ]
    for seed in range(RANDOM_QUERIES):
        sql = Grammar(seed).query()
        ordered = "ORDER BY" in sql.rsplit(")", 1)[-1] and not is_rounded(sql)
        found.append(Question(f"random-{seed}", sql, ordered))
    return found


class Ground:
    """A session on so many nodes, of which one can die in the middle of a query."""

    def __init__(self, session: queryard.Session, nodes: int, kill: Callable[[str], None]) -> None:
        self.session = session
        self._nodes = nodes
        self._kill = kill
        self._left = 0
        self.killed = 0
        launches: Any = session.host.backend._launches  # type: ignore[attr-defined]
        self._post = launches._post
        launches._post = self._hear

    def _hear(self, event: Any) -> None:
        if isinstance(event, TaskFinished):
            self._left -= 1
            if self._left == 0:
                self.killed += 1
                self._kill(event.place)
        self._post(event)

    def ask(self, question: Question, plain: Any, kill_after: int = 0) -> bool:
        """Compare an answer with DuckDB's; False if there is nothing to compare.

        A node dies after `kill_after` tasks. A query with fewer tasks runs again, and a node dies
        after the first.
        """
        try:
            expected = plain.sql(question.sql).to_arrow_table()
        except duckdb.Error:
            return False  # an overflow, a second row of a scalar subquery
        killed = self.killed
        if not self._answers(question, expected, kill_after):
            return False
        if kill_after and self.killed == killed:
            assert self._answers(question, expected, 1)
            assert self.killed == killed + 1
        return True

    def _answers(self, question: Question, expected: Any, kill_after: int) -> bool:
        """Whether the query can be staged; its answer must be the expected one."""
        self.settle()
        self._left = kill_after
        try:
            handle = self.session.submit(question.sql, plan="staged", time_limit=PATIENCE_S)
            found = handle.take().arrow()
        except NotStageable:
            return False
        finally:
            self._left = 0
        ordered = question.ordered and question.name not in TIES
        try:
            assert_same(found, expected, ordered and "order by" in question.sql.lower())
        except AssertionError as error:
            raise AssertionError(f"{question.name}: {question.sql}") from error
        return True

    def settle(self) -> None:
        """Wait until all nodes are there again."""
        wait_until(lambda: len(self.session.host.backend.nodes) == self._nodes)

    def idle(self) -> None:
        """Nothing is held at any node."""
        backend: Any = self.session.host.backend
        wait_until(lambda: not any(r.objects + r.queries for r in backend.reports().values()))


@pytest.fixture(scope="module")
def cut_small() -> Iterator[None]:
    """A task per row group, and all joins shuffled; a node may die as often as it likes."""
    small = partial(
        queryard.sql.planner.plan_staged, target_bytes=1, partitions=3, broadcast_bytes=0
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(queryard.sql.planner, "plan_staged", lambda *a, **k: small(*a))
        patched.setattr(members, "QUICK_S", 0.0)
        yield


def opened(folder: Path, address: str) -> queryard.Session:
    return queryard.connect(
        tables=tables(folder),
        backend="ray",
        address=address,
        memory="800 MB",
        history=False,
        statistics="off",
    )


def run_all(ground: Ground, asked: list[Question], plain: Any, kills: bool) -> None:
    compared, before = 0, ground.killed
    for place, question in enumerate(asked):
        kill_after = KILL_AFTER[place % len(KILL_AFTER)] if kills else 0
        compared += ground.ask(question, plain, kill_after)
    assert compared >= 0.8 * len(asked), "too few could be compared to learn anything"
    ground.idle()
    if kills:
        assert ground.killed - before >= compared


# --- short: nodes of this process ----------------------------------------------------------------


@pytest.mark.parametrize("nodes", NODES)
def test_answers_are_duckdbs_while_nodes_of_this_process_die(
    folder, plain, questions, cut_small, nodes
):
    """A few of each family."""
    with ray_faked(*[1] * nodes) as ray, opened(folder, "auto") as session:

        def kill(place: str) -> None:
            for actor in ray.actors:
                if actor.place == place and actor.alive:
                    actor.die("killed by the test")

        asked = questions[NODES.index(nodes) :: len(NODES) * 6]
        run_all(Ground(session, nodes, kill), asked, plain, kills=True)


# --- long: Ray -----------------------------------------------------------------------------------


@pytest.fixture(
    scope="module",
    params=[pytest.param(n, marks=pytest.mark.long, id=f"{n}-nodes") for n in NODES],
)
def ground(request: pytest.FixtureRequest, folder: Path, cut_small: None) -> Iterator[Ground]:
    skip_without_ray()
    nodes: int = request.param
    with ray_cluster(*[1] * nodes) as cluster, opened(folder, cluster.address) as session:
        links: Any = session.host.backend._links  # type: ignore[attr-defined]
        yield Ground(session, nodes, lambda place: os.kill(links[place].facts.pid, signal.SIGKILL))


@pytest.mark.parametrize("kills", [False, True], ids=["quiet", "killed"])
@pytest.mark.parametrize("part", range(PARTS))
def test_answers_are_duckdbs_on_ray(ground, plain, questions, part, kills):
    run_all(ground, questions[part::PARTS], plain, kills)
