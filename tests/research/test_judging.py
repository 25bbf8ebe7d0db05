"""Where chance decides there is no verdict, and sizes far from the printed ones are remarked on."""

from __future__ import annotations

from research.judging import CHANCE, LARGER, SMALLER, remark, same_side, verdict
from research.outcome import Interval, interval
from research.relaqs.arrival_gaps import _others
from research.relaqs.errors import FAIR, LEVELS, READINGS, RELAQS, Curve
from research.s3.compared import Claim, judged
from research.s3.rivals import LIGHT, WHOLE, Times
from research.tls.chain_tree import ratio_findings
from research.tumm.shared import fell


def test_a_remark_says_when_a_difference_may_be_chance_or_is_small() -> None:
    assert remark(-0.4, interval([-0.1, 0.1])) == CHANCE
    assert remark(-0.4, interval([-0.11, -0.1, -0.12])) == SMALLER
    assert remark(-0.4, interval([-0.41, -0.4, -0.42])) == ""
    assert remark(2.8, interval([1.30, 1.31, 1.32]), neutral=1.0) == SMALLER


def test_a_remark_says_when_a_difference_is_more_than_twice_the_printed_one() -> None:
    # Bing, TLS against HCS, on measured stages.
    assert remark(-0.274, Interval(-0.711, -0.802, -0.619, 3)) == LARGER
    assert remark(-0.274, Interval(-0.5, -0.6, -0.4, 3)) == ""
    # On the other side the size says nothing.
    assert remark(-0.274, Interval(0.9, 0.8, 1.0, 3)) == ""


def test_there_is_no_verdict_where_the_interval_has_both_sides() -> None:
    assert same_side(-0.4, Interval(-0.03, -0.08, 0.02, 5)) is None
    assert same_side(-0.4, Interval(-0.03, -0.08, -0.01, 5)) is True
    assert same_side(-0.4, Interval(0.03, 0.01, 0.08, 5)) is False
    assert verdict(True, Interval(0.8, 0.56, 1.04, 5), 0.8, 1.25) is None


def test_one_seed_has_no_interval_to_reach_anywhere() -> None:
    assert same_side(-0.4, interval([0.0])) is False
    assert remark(-0.4, interval([-0.3])) == ""


def test_chains_and_trees_without_a_verdict() -> None:
    # Over three seeds chains are slowed 0.9 to 1.2 times as much: either may be ahead.
    unsure = {"chain": [0.9, 1.2, 1.1], "tree": [1.0, 1.0, 1.0]}
    wide = {"chain": [0.5, 1.3, 1.0], "tree": [1.0, 1.0, 1.0]}
    found = ratio_findings({"HCS": unsure, "HFS": unsure, "TLS": wide})
    assert [finding.agrees for finding in found] == [None, None, None]
    assert all("may be chance" in finding.note for finding in found)


def test_shared_scans_that_are_a_draw_by_chance_have_no_verdict() -> None:
    runs = {
        **{name: [Times(100.0, 50.0), Times(100.0, 50.0)] for name in (WHOLE, LIGHT)},
        "FIFO": [Times(99.0, 80.0), Times(110.0, 81.0)],
    }
    claims = (Claim("FIFO", "2.2", ("FIFO",), "TET"), Claim("FIFO", "2.5", ("FIFO",), "ART"))
    assert [finding.agrees for finding in judged(claims, runs)] == [None, True] * 2


def test_something_that_took_less_or_may_have() -> None:
    assert fell("it", "below", Interval(-0.1, -0.2, -0.05, 5)).agrees is True
    assert fell("it", "below", Interval(-0.1, -0.2, 0.05, 5)).agrees is None


def test_a_least_share_by_chance_has_no_verdict() -> None:
    def runs(*times_s: float) -> list[Curve]:
        return [
            Curve({reading: ((at_s,) * len(LEVELS),) for reading in READINGS}, (1.0,), at_s)
            for at_s in times_s
        ]

    fair = runs(10.0, 10.0)
    by_share = {
        0.0: {FAIR: fair, RELAQS: runs(14.0, 12.0)},
        0.25: {FAIR: fair, RELAQS: runs(13.0, 12.0)},
        0.5: {FAIR: fair, RELAQS: runs(15.0, 10.0)},
    }
    findings = list(_others({"all at once": {FAIR: fair, RELAQS: runs(9.0, 11.0)}}, by_share))
    assert {finding.agrees for finding in findings} == {None}
    assert {finding.note for finding in findings} == {"may be chance"}
