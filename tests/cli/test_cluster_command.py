"""`queryard cluster`: a line for each node."""

from __future__ import annotations

from queryard.cli.cluster import _line

NODE = {
    "name": "n1",
    "where": "10.0.0.5",
    "slots": 4,
    "busy": 1,
    "memory_bytes": 8e9,
    "objects": 0,
    "cached": {},
    "draining": False,
    "silent": False,
    "silent_s": 0.0,
    "running": ["q7"],
}


def test_a_node_with_what_runs_there():
    found = _line(NODE)
    assert found == "n1 at 10.0.0.5: 1 of 4 slots in use, 8.0 GB for queries, runs q7"


def test_a_node_that_does_not_answer():
    found = _line({**NODE, "silent": True, "silent_s": 4.2})
    assert "has not answered for 4 s" in found


def test_a_node_that_rests():
    found = _line({**NODE, "resting": "for 40 s: queries failed there"})
    assert "gets no work for 40 s: queries failed there" in found


def test_tables_in_caches_the_most_first():
    cached = {f"t{number}": (number, 8) for number in range(1, 7)}
    found = _line({**NODE, "cached": cached})
    assert "has read t6 (6 of 8 splits), t5 (5 of 8 splits)" in found
    assert "and 2 more tables" in found
