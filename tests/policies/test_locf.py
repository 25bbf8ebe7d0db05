"""LOCF: skips, their limit, and heartbeats (POSUM §5.3.2)."""

from __future__ import annotations

from kernel_driver import Yard

from queryard.core.model import Job, Node, Phase, Split, Table


def table(name: str, *places: str) -> Table:
    return Table(name, tuple(Split(1.0, (place,) if place else ()) for place in places))


def scan(name: str, table: str, tasks: int) -> tuple[Job, float]:
    return (Job(name, scans=(table,), map=Phase(tasks)), 10.0)


def times(yard: Yard) -> list[tuple[float, str, int]]:
    return [(launch.time_s, launch.node, launch.index) for launch in yard.launches]


def test_a_job_is_skipped_as_often_as_there_are_nodes():
    yard = Yard("locf", [Node("a", 1), Node("b", 1)], [table("t", "a", "a", "a")])
    yard.submit("q", [scan("s", "t", 3)]).run()
    # b is declined at 0 and 3 s; its third offer, at 6 s, is taken although nothing is local.
    # The count starts anew: a takes the last split when it is free, at 10 s.
    assert times(yard) == [(0.0, "a", 0), (6.0, "b", 1), (10.0, "a", 2)]


def test_a_launch_resets_the_count():
    yard = Yard("locf", [Node("a", 1), Node("b", 1)], [table("t", *"aaaaa")])
    # a's second launch, at 4 s, clears the two skips of 0 and 3 s.
    yard.submit("q", [(Job("s", scans=("t",), map=Phase(5)), 4.0)]).run(9.0)
    assert [(time_s, node) for time_s, node, _ in times(yard)] == [
        (0.0, "a"),
        (4.0, "a"),
        (8.0, "a"),
    ]


def test_the_next_query_gets_the_slot_that_is_declined():
    yard = Yard("locf", [Node("a", 1), Node("b", 1)], [table("t", "a", "a"), table("u", "b", "b")])
    yard.submit("q1", [scan("s", "t", 2)]).submit("q2", [scan("s", "u", 2)]).run()
    assert [(launch.job, launch.node) for launch in yard.launches] == [
        ("q1/s", "a"),
        ("q2/s", "b"),
        ("q1/s", "a"),
        ("q2/s", "b"),
    ]
    assert yard.ends == {"q1": 20.0, "q2": 20.0}


def test_what_has_no_place_is_local_everywhere():
    yard = Yard("locf", [Node("a", 1), Node("b", 1)], [table("t", "", ""), table("gone", "x", "x")])
    yard.submit("q1", [scan("s", "t", 2)])
    yard.submit("q2", [scan("s", "gone", 2)], 20.0)
    yard.submit("q3", [("s", 2, 10.0)], 40.0)
    yard.run()
    assert yard.ends == {"q1": 10.0, "q2": 30.0, "q3": 50.0}


def test_reduces_are_local_everywhere():
    yard = Yard("locf", [Node("a", 1), Node("b", 1)], [table("t", "a")])
    job = Job("s", scans=("t",), map=Phase(1), reduce=Phase(2))
    yard.submit("q", [(job, 10.0, 5.0)]).run()
    assert yard.ends == {"q": 15.0}


def test_the_heartbeat_is_a_setting_and_stops_when_all_is_done():
    profile = {"base": "locf", "placement": {"name": "locf", "heartbeat_s": 1.0}}
    yard = Yard(profile, [Node("a", 1), Node("b", 1)], [table("t", "a", "a")])
    yard.submit("q", [scan("s", "t", 2)]).run()
    assert times(yard) == [(0.0, "a", 0), (2.0, "b", 1)]
    assert yard.ends == {"q": 12.0}
