"""Where chance decides there is no verdict, and sizes far from the printed ones are remarked on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from research.judging import CHANCE, FACTOR, SLIGHTLY, direction, judge, remark
from research.outcome import Interval, Verdict, interval
from research.relaqs.arrival_gaps import GAPS_S, _others, _where_largest
from research.relaqs.errors import FAIR, LEVELS, READINGS, RELAQS, Curve
from research.s3.compared import Claim, judged
from research.s3.rivals import LIGHT, WHOLE, Times
from research.tls.chain_tree import ratio_findings
from research.tumm.shared import fell


def test_a_remark_names_chance_or_how_far_the_size_is_from_the_printed_one() -> None:
    assert remark(-0.4, interval([-0.1, 0.1])) == CHANCE
    assert remark(-0.4, interval([-0.12, -0.11, -0.13])) == "0.3 times the printed size"
    assert remark(-0.4, interval([-0.41, -0.4, -0.42])) == ""
    assert remark(2.8, interval([1.30, 1.31, 1.32]), neutral=1.0) == "0.17 times the printed size"
    # Bing, TLS against HCS, on measured stages.
    assert remark(-0.274, Interval(-0.711, -0.802, -0.619, 3)) == "2.6 times the printed size"
    # On the other side the size says nothing.
    assert remark(-0.274, Interval(0.9, 0.8, 1.0, 3)) == ""


def test_a_number_agrees_by_direction_and_size() -> None:
    assert judge(-0.4, Interval(-0.03, -0.08, 0.02, 5)) is None
    assert judge(-0.4, Interval(-0.03, -0.08, -0.01, 5)) is Verdict.OTHER_SIZE
    assert judge(-0.4, Interval(-0.3, -0.35, -0.25, 5)) is Verdict.AGREES
    assert judge(-0.4, Interval(0.03, 0.01, 0.08, 5)) is Verdict.DIFFERS


def test_there_is_no_verdict_where_the_interval_has_both_sides() -> None:
    assert direction(True, Interval(0.8, 0.56, 1.04, 5), 0.8, 1.25) is None


def test_one_seed_has_no_interval_to_reach_anywhere() -> None:
    assert judge(-0.4, interval([0.0])) is Verdict.DIFFERS
    assert judge(-0.4, interval([-0.3])) is Verdict.AGREES
    assert remark(-0.4, interval([-0.3])) == ""


@given(
    printed=st.floats(0.01, 100.0),
    factor=st.floats(0.01, 100.0),
    sign=st.sampled_from([-1.0, 1.0]),
    neutral=st.sampled_from([0.0, 1.0]),
)
def test_a_size_agrees_within_the_factor_on_either_side_and_beyond_it_never(
    printed: float, factor: float, sign: float, neutral: float
) -> None:
    found = judge(neutral + sign * printed, interval([neutral + sign * printed * factor]), neutral)
    if max(factor, 1 / factor) < 0.999 * FACTOR:
        assert found is Verdict.AGREES
    elif max(factor, 1 / factor) > 1.001 * FACTOR:
        assert found is Verdict.OTHER_SIZE
    opposite = judge(neutral - sign * printed, interval([neutral + sign * printed]), neutral)
    assert opposite is Verdict.DIFFERS


def test_a_multiple_far_below_1_is_not_slightly_below_1() -> None:
    # MRS1 beside S³ with sub-jobs that start in 20 s, and in 3 s.
    claim = Claim("MRS1", "slightly below 1", ("MRS1",), "TET", side=-1, words=SLIGHTLY)
    assert claim.printed is None
    runs = {
        WHOLE: [Times(100.0, 1.0), Times(100.0, 1.0)],
        LIGHT: [Times(60.9, 1.0), Times(60.9, 1.0)],
        "MRS1": [Times(53.0, 1.0), Times(53.0, 1.0)],
    }
    found = [finding.verdict for finding in judged([claim], runs)]
    assert found == [Verdict.OTHER_SIZE, Verdict.AGREES]


def test_the_gain_is_largest_at_the_printed_gaps_only_if_the_ends_are_small() -> None:
    def found(**gains: float) -> Verdict:
        by_gap = dict.fromkeys(GAPS_S, 0.0) | {int(k[1:]): v for k, v in gains.items()}
        return _where_largest(by_gap, max(by_gap, key=by_gap.__getitem__))

    assert found(s160=0.4, s320=0.1) is Verdict.AGREES
    assert found(s160=0.387, s10=0.047, s320=0.32) is Verdict.OTHER_SIZE
    assert found(s200=0.285, s320=0.1) is Verdict.OTHER_SIZE
    assert found(s320=0.1) is Verdict.DIFFERS


def test_chains_and_trees_without_a_verdict() -> None:
    # Over three seeds chains are slowed 0.9 to 1.2 times as much: either may be ahead.
    unsure = {"chain": [0.9, 1.2, 1.1], "tree": [1.0, 1.0, 1.0]}
    wide = {"chain": [0.5, 1.3, 1.0], "tree": [1.0, 1.0, 1.0]}
    found = ratio_findings({"HCS": unsure, "HFS": unsure, "TLS": wide})
    assert [finding.verdict for finding in found] == [None, None, None]
    assert all("may be chance" in finding.note for finding in found)


def test_shared_scans_that_are_a_draw_by_chance_have_no_verdict() -> None:
    runs = {
        **{name: [Times(100.0, 50.0), Times(100.0, 50.0)] for name in (WHOLE, LIGHT)},
        "FIFO": [Times(99.0, 80.0), Times(110.0, 81.0)],
    }
    claims = (Claim("FIFO", "2.2", ("FIFO",), "TET"), Claim("FIFO", "2.5", ("FIFO",), "ART"))
    assert [finding.verdict for finding in judged(claims, runs)] == [None, Verdict.OTHER_SIZE] * 2


def test_something_that_took_less_or_may_have() -> None:
    assert fell("it", "below", Interval(-0.1, -0.2, -0.05, 5)).verdict is Verdict.AGREES
    assert fell("it", "below", Interval(-0.1, -0.2, 0.05, 5)).verdict is None


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
    assert {finding.verdict for finding in findings} == {None}
    assert {finding.note for finding in findings} == {"may be chance"}
