"""Where the driver takes rows of tasks to lie, and what it makes again, as nodes are lost."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from queryard.backends.protocol import LaunchFailed
from queryard.backends.ray.launches import Launches
from queryard.backends.ray.messages import Made, Open, StartTask
from queryard.backends.ray.spread import SpreadTasks
from queryard.core.commands import Launch
from queryard.core.events import TaskFinished
from queryard.core.model import JobId, TaskId
from queryard.engine.sealing.access import Access, Reach
from queryard.engine.staged.exchange import Piece, PieceLost, Superseded
from queryard.engine.staged.task import TaskOutcome
from queryard.sql.catalog import open_catalog
from queryard.sql.planner import plan_staged

MAP, OTHER_MAP = TaskId("j1", "map", 0), TaskId("j1", "map", 1)
REDUCE = TaskId("j1", "reduce", 0)


class Yard:
    """Two maps and two reduces, links that note what is sent, and what is told."""

    def __init__(self, folder: Path) -> None:
        for name in "ab":
            rows = "SELECT range AS n FROM range(100)"
            duckdb.sql(f"COPY ({rows}) TO '{folder}/{name}.parquet'")
        catalog = open_catalog(tables={"t": [f"{folder}/{name}.parquet" for name in "ab"]})
        sql = "SELECT n, count(*) FROM t GROUP BY n"
        plan = plan_staged(sql, catalog, target_bytes=1, partitions=2)
        (job,) = plan.jobs
        assert (job.map_tasks, job.partitions) == (2, 2)
        exchange: Any = SimpleNamespace(lose=lambda place: None)
        reach = Reach(Access(), catalog)
        self.tasks = SpreadTasks(exchange, plan, "q", 1 << 30, (), reach, lambda *given: None)
        self.told: list[Any] = []
        self.ends: list[BaseException | None] = []
        self.cluster_bytes = 100.0
        self.launches = Launches(lambda link: None, lambda: self.cluster_bytes)
        self.launches.begin(self.told.append)
        self.launches.add("q", self.tasks)

    def link(self, name: str) -> Any:
        sent: list[Any] = []
        return SimpleNamespace(name=name, sent=sent, send=sent.append)

    def launch(self, number: int, task: TaskId, link: Any) -> None:
        job = str(JobId("q", task.job))
        self.launches.launch(Launch(number, link.name, (task._replace(job=job),)), link)

    def make_again(self, task: TaskId, link: Any) -> None:
        self.launches.make_again("q", task, link, self.ends.append)

    def running(self, link: Any) -> tuple[int, TaskId, int]:
        """What a node was told to run last: its number there, the task and the attempt."""
        order = [each for each in link.sent if isinstance(each, StartTask)][-1]
        (task,) = order.launch.tasks
        return order.launch.number, task._replace(job="j1"), order.spec.attempt

    def made(self, link: Any, run: tuple[int, TaskId, int] | None = None) -> None:
        number, task, attempt = run or self.running(link)
        key = f"q/{task}"
        parts = (None,) if task.kind == "reduce" else (0, 1)
        pieces = tuple(Piece(key, part, link.name, 5, 40) for part in parts)
        outcome = TaskOutcome(attempt, pieces, 10, 80.0, 1.0, 0.0, 0.0)
        self.launches.hear(Made(number, task, outcome))

    def finish(self, link: Any, run: tuple[int, TaskId, int] | None = None) -> None:
        number = (run or self.running(link))[0]
        self.launches.hear(TaskFinished(0.0, number, link.name, 80.0))

    def run(self, number: int, task: TaskId, link: Any) -> None:
        """Launch a task that can run at once, and let it end well."""
        self.launch(number, task, link)
        self.made(link)
        self.finish(link)


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path)


def lost(task: TaskId, place: str) -> PieceLost:
    return PieceLost([Piece(f"q/{task}", 0, place, 5, 40)])


def test_of_a_finished_query_maps_are_made_again_as_well(yard):
    """The kernel would launch none of them."""
    a, b = yard.link("a"), yard.link("b")
    yard.run(1, MAP, a)
    yard.run(2, OTHER_MAP, b)
    yard.run(3, REDUCE, a)
    yard.launches.lose(a, "power")
    yard.make_again(REDUCE, b)
    for task in (MAP, REDUCE):
        assert yard.running(b)[1] == task
        yard.made(b)
        yard.finish(b)
    assert yard.ends == [None]


def test_a_reduce_waits_for_maps_that_the_kernel_knows_to_be_lost(yard):
    a, b = yard.link("a"), yard.link("b")
    yard.run(1, MAP, a)
    yard.run(2, OTHER_MAP, b)
    yard.launches.lose(a, "power")
    yard.launch(3, REDUCE, b)
    assert yard.running(b)[1] == OTHER_MAP
    c = yard.link("c")
    yard.run(4, MAP, c)
    assert yard.running(b)[1] == REDUCE


def test_what_was_made_beside_the_kernel_and_is_lost_is_made_again(yard):
    a, b, c = yard.link("a"), yard.link("b"), yard.link("c")
    yard.run(1, MAP, a)
    yard.run(2, OTHER_MAP, a)
    yard.launch(3, REDUCE, b)
    yard.launches.hear(LaunchFailed(3, "q", lost(MAP, "a")))
    yard.launch(4, REDUCE, b)
    assert yard.running(b)[1] == MAP
    yard.made(b)
    yard.launches.lose(b, "power")  # the kernel takes the rows of the map to lie at a
    yard.launch(5, REDUCE, c)
    assert yard.running(c)[1] == MAP


def test_a_loss_that_is_told_late_leaves_the_new_rows_alone(yard):
    a, b = yard.link("a"), yard.link("b")
    yard.run(1, MAP, a)
    yard.run(2, OTHER_MAP, b)
    yard.launch(3, REDUCE, b)
    yard.launches.lose(a, "power")
    yard.run(4, MAP, yard.link("c"))
    yard.launches.hear(LaunchFailed(3, "q", lost(MAP, "a")))
    assert isinstance(yard.told[-1], LaunchFailed)
    d = yard.link("d")
    yard.launch(5, REDUCE, d)
    assert yard.running(d)[1] == REDUCE


def test_a_loss_travels_with_the_place_of_each_output():
    error = PieceLost([Piece("q/x", 0, "a", 1, 8), Piece("q/y", 0, "b", 1, 8)])
    assert pickle.loads(pickle.dumps(error)).outputs == (("q/x", "a"), ("q/y", "b"))


def test_the_first_run_counts_if_the_second_won_and_was_lost(yard):
    a, b = yard.link("a"), yard.link("b")
    yard.launch(1, MAP, a)
    yard.launch(2, MAP, b)
    yard.made(b)
    yard.launches.lose(b, "power")
    yard.made(a)
    yard.finish(a)
    assert yard.told == [TaskFinished(0.0, 1, "a", 80.0)]
    yard.run(3, OTHER_MAP, a)
    yard.launch(4, REDUCE, a)
    assert yard.running(a)[1] == REDUCE


def test_a_run_whose_rows_were_refused_has_not_finished(yard):
    """The run that won is lost later: the kernel must launch the task again."""
    a, b = yard.link("a"), yard.link("b")
    yard.launch(1, MAP, a)
    yard.launch(2, MAP, b)
    yard.made(b)
    yard.made(a)
    yard.launches.lose(b, "power")
    yard.finish(a)
    (told,) = yard.told
    assert isinstance(told.error, Superseded)


def test_a_task_is_being_made_until_both_its_runs_have_ended(yard):
    a, b, c = yard.link("a"), yard.link("b"), yard.link("c")
    yard.run(1, OTHER_MAP, c)
    yard.launch(2, MAP, a)
    yard.launch(3, MAP, b)
    yard.launches.hear(LaunchFailed(3, "q", OSError("disk")))
    yard.make_again(REDUCE, c)
    assert yard.running(c)[1] == OTHER_MAP  # it waits for the first run
    yard.made(a)
    yard.finish(a)
    assert yard.running(c)[1] == REDUCE


def test_what_waits_for_a_task_hears_that_its_query_is_forgotten(yard):
    a = yard.link("a")
    yard.make_again(MAP, a)
    yard.launches.forget("q")
    (error,) = yard.ends
    assert "killed" in str(error)


def test_a_node_that_has_joined_since_uses_its_part_of_the_memory_there_is_now(yard):
    """What is reserved counts at all nodes there are, not at those that there were."""
    parts = []
    for number, name in enumerate("abcd", 1):
        link = yard.link(name)
        yard.cluster_bytes = 100.0 * number
        yard.launch(number, MAP, link)
        (order,) = [each for each in link.sent if isinstance(each, Open)]
        parts.append(order.opening.part(100.0).memory_bytes)
    assert parts == [(1 << 30) // number for number in (1, 2, 3, 4)]
