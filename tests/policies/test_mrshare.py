"""MRShare: batches that share one scan from the first block on. See test_s3 for the table."""

from __future__ import annotations

from typing import Any

import pytest
from kernel_driver import Yard

from queryard.core import events as ev
from queryard.core.model import Job, Node, Phase, Split, Table
from queryard.policies import compose

BLOCKS = 4
TABLE = Table("lineitem", tuple(Split(64e6) for _ in range(BLOCKS)))
SCAN = Job("scan", map=Phase(BLOCKS), scans=("lineitem",))


def yard_of(arrivals: dict[str, float], nodes: Any = "1x1", **settings: Any) -> Yard:
    yard = Yard({"sharing": {"name": "mrshare", **settings}}, nodes, [TABLE])
    for query, at in arrivals.items():
        yard.submit(query, [(SCAN, 1.0)], at)
    return yard


def riders(yard: Yard) -> list[str]:
    return ["".join(sorted(job.partition("/")[0] for job in each.riders)) for each in yard.launches]


def test_a_batch_closes_when_it_is_full():
    yard = yard_of({"a": 0.0, "b": 3.0, "c": 4.0}, count=2, window_s=100.0).run()
    assert riders(yard) == ["ab"] * BLOCKS + ["c"] * BLOCKS
    # c came second into a batch of its own, and waited for its window to end.
    assert yard.ends == {"a": 7.0, "b": 7.0, "c": 104.0 + BLOCKS}


def test_a_batch_closes_when_its_window_is_over():
    yard = yard_of({"a": 0.0, "b": 9.0, "c": 11.0}, count=9, window_s=10.0).run()
    assert riders(yard) == ["ab"] * BLOCKS + ["c"] * BLOCKS
    assert yard.ends == {"a": 14.0, "b": 14.0, "c": 25.0}


def test_batches_of_given_sizes_then_of_the_usual_one():
    arrivals = dict(zip("abcdefg", range(7), strict=True))
    yard = yard_of(arrivals, counts=[3, 2], count=1, window_s=float("inf")).run()
    assert riders(yard) == ["abc"] * BLOCKS + ["de"] * BLOCKS + ["f"] * BLOCKS + ["g"] * BLOCKS


def test_a_batch_reads_with_all_slots_at_once():
    yard = yard_of({"a": 0.0, "b": 0.0}, "2x2", count=2).run()
    assert yard.ends == {"a": 1.0, "b": 1.0}
    assert {each.time_s for each in yard.launches} == {0.0}


def test_a_failed_block_is_read_again_alone_by_each():
    yard = yard_of({"a": 0.0, "b": 0.0}, count=2)
    yard.run(1.0)
    yard.post(ev.TaskFailed(1.5, 1, "disk"))
    yard.run()
    assert riders(yard) == ["ab", "ab", "a", "ab", "ab", "b"]
    assert set(yard.ends) == {"a", "b"}


def test_a_job_cancelled_while_its_batch_forms_is_not_waited_for():
    yard = yard_of({"a": 0.0, "b": 2.0, "c": 3.0}, count=2, window_s=50.0)
    yard.post(ev.QueryCancelled(1.0, "a"))
    yard.run()
    assert riders(yard) == ["bc"] * BLOCKS
    assert yard.ends == {"a": 1.0, "b": 7.0, "c": 7.0}


def test_a_job_cancelled_in_the_instant_in_which_its_batch_closes():
    yard = yard_of({"a": 0.0, "b": 2.0}, count=2, window_s=50.0)
    yard.post(ev.QueryCancelled(2.0, "a"))
    yard.run()
    assert yard.ends["a"] == 2.0
    assert "b" in yard.ends


def test_a_rider_cancelled_on_the_way():
    yard = yard_of({"a": 0.0, "b": 0.0}, count=2)
    yard.post(ev.QueryCancelled(1.5, "a"))
    yard.run()
    assert yard.ends == {"a": 1.5, "b": 4.0}


def test_memory_is_not_given_out_twice():
    yard = Yard(
        {"sharing": {"name": "mrshare", "count": 3}},
        [Node("n", 1, memory_bytes=10.0)],
        [TABLE],
    )
    for query in "abc":
        yard.submit(query, [(SCAN, 1.0)], memory_bytes=5.0)
    yard.run()
    # c reads alone what it could not read with the others.
    assert riders(yard) == ["ab"] * BLOCKS + ["c"] * BLOCKS


def test_a_job_that_has_begun_does_not_join_a_batch():
    yard = Yard({"order": "fifo"}, "1x1", [TABLE])
    yard.submit("a", [(SCAN, 1.0)]).submit("b", [(SCAN, 1.0)], 2.0)
    profile = {"sharing": {"name": "mrshare", "count": 1}}
    yard.post(ev.PolicyChosen(2.0, profile))
    yard.run()
    assert riders(yard) == ["a"] * BLOCKS + ["b"] * BLOCKS


def test_a_run_ends_although_the_part_wakes():
    yard = yard_of({"a": 0.0}, window_s=7.0).run()
    assert yard.ends == {"a": 7.0 + BLOCKS}


def test_a_fork_forms_its_own_batches():
    yard = yard_of({"a": 0.0}, count=2, window_s=50.0).run(1.0)
    fork = yard.scheduler.fork()
    fork.handle(ev.Woke(50.0))
    yard.submit("b", [(SCAN, 1.0)], 2.0).run()
    assert riders(yard) == ["ab"] * BLOCKS


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"count": 0}, "count must be a whole number of at least 1, got 0"),
        ({"window_s": -1}, "window_s must be a number above 0, got -1"),
        ({"counts": [3, 0]}, "counts must be a whole number of at least 1, got 0"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], message: str):
    with pytest.raises(Exception, match=message):
        compose({"sharing": {"name": "mrshare", **settings}})
