"""HLFET, DFA and LoDFA (TLS §4.2)."""

from __future__ import annotations

import pytest
from kernel_driver import Yard

from queryard.core.model import Job, Phase, Split, Table, TableInput

# Our reconstruction of Fig. 9: edges A→B→D→F, C→D, E→F.
EDGES = {"A": (), "B": ("A",), "C": (), "D": ("B", "C"), "E": (), "F": ("D", "E")}
SECONDS = {"A": 1.0, "B": 1.0, "C": 3.0, "D": 1.0, "E": 6.0, "F": 1.0}


def fig_9(profile: str) -> tuple[list[str], list[int]]:
    """The order of the jobs, and how many are runnable at each step."""
    yard = Yard(profile, "1x1")
    jobs = [(Job(name, upstream=up, map=Phase(1)), SECONDS[name]) for name, up in EDGES.items()]
    yard.submit("q", jobs).run()
    order = yard.order()
    parallelism = []
    for step in range(len(order)):
        done = set(order[:step])
        runnable = [name for name, up in EDGES.items() if name not in done and done.issuperset(up)]
        parallelism.append(len(runnable))
    return order, parallelism


def test_dfa_keeps_more_jobs_runnable_than_hlfet():
    order, parallelism = fig_9("hlfet")
    assert order == ["E", "C", "A", "B", "D", "F"]
    assert parallelism[:4] == [3, 2, 1, 1]
    assert sum(parallelism[:4]) / 4 == 1.75
    order, parallelism = fig_9("dfa")
    assert order == ["A", "C", "B", "E", "D", "F"]
    assert parallelism[:4] == [3, 3, 2, 2]
    assert sum(parallelism[:4]) / 4 == 2.5


def reads(name: str, maps: int, upstream: tuple[str, ...] = (), **tables: float) -> Job:
    inputs = tuple(TableInput(table, size) for table, size in tables.items())
    return Job(name, upstream=upstream, inputs=inputs, map=Phase(maps))


def served(jobs: list[tuple[Job, float]], profile: str = "lodfa", nodes: str = "1x1") -> list[str]:
    yard = Yard(profile, nodes)
    yard.submit("q", jobs).run()
    return [launch.job.partition("/")[2] for launch in yard.launches]


def test_lodfa_serves_jobs_that_share_a_table_in_turn_before_deeper_ones():
    jobs = [
        (reads("supplier", 1, supplier=10), 1.0),
        (reads("late", 3, lineitem=70), 1.0),
        (reads("all", 2, lineitem=70, orders=20), 1.0),
        (Job("join", upstream=("supplier", "late"), map=Phase(1)), 1.0),
        (Job("sum", upstream=("join", "all"), map=Phase(1)), 1.0),
    ]
    # The larger WRD first, so the two take turns; when `late` is done LA(lineitem) holds one
    # job only and DFA goes on with the deeper `supplier`.
    assert served(jobs) == ["late", "late", "all", "late", "supplier", "all", "join", "sum"]
    assert served(jobs, "dfa") == [
        *("late", "late", "supplier", "late"),
        *("all", "all", "join", "sum"),
    ]


def test_lodfa_tries_the_largest_table_first_then_the_next():
    jobs = [
        (reads("small-1", 1, orders=20), 1.0),
        (reads("small-2", 1, orders=20), 1.0),
        (reads("big-1", 1, lineitem=70), 1.0),
        (reads("big-2", 1, ("small-1", "small-2"), lineitem=70), 1.0),
    ]
    # big-2 still waits, yet is unfinished: LA(lineitem) holds two.
    assert served(jobs) == ["big-1", "small-1", "small-2", "big-2"]
    waiting = [
        (reads("small-1", 1, orders=20), 1.0),
        (reads("small-2", 1, orders=20), 1.0),
        (reads("other", 5, ("first",), part=1), 1.0),
        (Job("first", map=Phase(1)), 1.0),
        (reads("big-1", 1, ("other",), lineitem=70), 1.0),
        (reads("big-2", 1, ("other",), lineitem=70), 1.0),
    ]
    # No job of lineitem can run: orders is next; when it has one job left, the deepest.
    assert served(waiting)[:2] == ["small-1", "first"]


@pytest.mark.parametrize(("share", "first"), [(50.0, "deep"), (51.0, "half")])
def test_half_of_the_input_is_not_more_than_half(share: float, first: str):
    jobs = [
        (reads("half", 1, lineitem=share, other=100 - share), 1.0),
        (reads("whole", 1, lineitem=60), 0.5),
        (Job("deep", map=Phase(1)), 1.0),
        (Job("next", upstream=("deep",), map=Phase(1)), 1.0),
    ]
    assert served(jobs)[0] == first


def test_what_comes_from_upstream_counts_as_input():
    def joined(name: str, from_upstream: float) -> Job:
        bytes_per_task = 60.0 + from_upstream
        inputs = (TableInput("lineitem", 60.0),)
        return Job(name, inputs=inputs, map=Phase(1, bytes_per_task))

    rest = [
        (reads("whole", 1, lineitem=60), 0.5),
        (Job("deep", map=Phase(1)), 1.0),
        (Job("next", upstream=("deep",), map=Phase(1)), 1.0),
    ]
    assert served([(joined("join", 30.0), 1.0), *rest])[0] == "join"
    assert served([(joined("join", 90.0), 1.0), *rest])[0] == "deep"


def test_scans_stand_in_for_inputs():
    table = Table("lineitem", (Split(10.0), Split(10.0)))
    yard = Yard("lodfa", "1x1", tables=[table])
    jobs = [
        (Job("a", scans=("lineitem",), map=Phase(2)), 1.0),
        (Job("b", scans=("lineitem",), map=Phase(2)), 1.0),
        (Job("deep", map=Phase(1)), 1.0),
        (Job("next", upstream=("deep",), map=Phase(1)), 1.0),
    ]
    yard.submit("q", jobs).run()
    assert [launch.job[2:] for launch in yard.launches][:4] == ["a", "b", "a", "deep"]


def test_what_lodfa_knows_of_ended_queries_is_forgotten():
    yard = Yard({"jobs": "lodfa"}, "1x1")
    for number in range(300):
        yard.submit(f"q{number}", [("a", 1, 1.0), ("b", 1, 1.0)], 3.0 * number)
    yard.run()
    assert len(yard.ends) == 300
    assert len(yard.scheduler._crew.job_order._sharers) < 110
