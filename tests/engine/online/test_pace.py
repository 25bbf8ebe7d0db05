"""How many parts a statement of an online query reads in a time."""

from __future__ import annotations

import pytest

from queryard.engine.online.pace import Pace


def learnt(*statements: tuple[int, float, float]) -> Pace:
    pace = Pace()
    for parts, wall_s, held_s in statements:
        pace.learn(parts, wall_s, held_s)
    return pace


def test_the_first_statement_reads_one_part() -> None:
    assert Pace().most(10.0) == 1
    assert Pace().seconds(5) == 0.0


def test_time_in_which_other_queries_had_the_slots_does_not_count() -> None:
    held = learnt((1, 0.02, 0.02), (2, 0.03, 0.03))
    waited = learnt((1, 0.02, 0.02), (2, 3.03, 0.03))
    assert waited.most(0.155) == held.most(0.155) == 14


def test_with_two_slots_the_time_counts_and_not_that_of_each_slot() -> None:
    assert learnt((4, 0.02, 0.04)).last == (4, 0.02)
    assert learnt((4, 0.02, 0.0)).last == (4, 0.02), "where it is not known what was held"


def test_at_least_half_of_a_statement_is_for_its_parts() -> None:
    pace = learnt((4, 0.04, 0.04), (2, 0.04, 0.04))
    assert (pace.fixed_s, pace.part_s) == pytest.approx((0.02, 0.01))
    assert pace.most(0.001) == 1
