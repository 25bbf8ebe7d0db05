"""S³'s experiments: the published cluster and jobs, and what holds whatever the costs."""

from __future__ import annotations

import pytest
from long_forms import some_of

from queryard.core.model import MAP
from queryard.metrics.runs import read_run
from research import EXPERIMENTS, RunOptions
from research.outcome import Verdict
from research.s3.blocks import load_of
from research.s3.cluster import (
    HEARTBEAT_S,
    JOB_START_S,
    NORMAL,
    REDUCES,
    nodes,
    placed,
    setting,
    sized,
)
from research.s3.compared import Claim, judged
from research.s3.heavy import HEAVY, heavy_load
from research.s3.merged import costs, growth
from research.s3.rivals import (
    LANES,
    LIGHT,
    OTHERS,
    WHOLE,
    Times,
    fifo,
    measure,
    mrshare,
    rivals,
    run,
    s3,
)
from research.s3.selection import SELECTION

SMALL = sized(NORMAL, 0.1)
QUICK = RunOptions(seeds=1, size=0.05)


def test_the_published_cluster_and_files() -> None:
    assert len(nodes(NORMAL)) == 40
    assert NORMAL.blocks == 2560
    assert (load_of(32).blocks, load_of(128).blocks, SELECTION.blocks) == (5120, 1280, 6400)
    arrivals = setting(NORMAL, 0).workload.arrivals
    assert [each.query.submit_s for each in arrivals] == [0.0] * 3 + [465.0] * 3 + [930.0] * 4
    for arrival in arrivals:
        (job,) = arrival.query.jobs
        assert job.map is not None
        assert job.map.tasks == 2560
        assert job.reduce is not None
        assert job.reduce.tasks == REDUCES == 30


def test_a_node_has_one_block_in_forty_and_one_copy_of_each() -> None:
    table = placed(NORMAL, 1)
    homes = [split.nodes for split in table.splits]
    assert all(len(nodes_of) == 1 for nodes_of in homes)
    assert {homes.count((node.id,)) for node in nodes(NORMAL)} == {64}
    assert table == placed(NORMAL, 1)
    assert table != placed(NORMAL, 2)


def test_jobs_take_as_long_as_printed() -> None:
    assert NORMAL.alone_s == pytest.approx(240.0)
    assert load_of(64).alone_s == pytest.approx(240.0)
    assert HEAVY.alone_s == heavy_load(7.5).alone_s == pytest.approx(360.0)
    assert pytest.approx(20.0) == JOB_START_S
    alone = measure(setting(NORMAL, 0, (1,)), fifo(), 0)
    assert alone.tet_s == pytest.approx(240.0, rel=0.03)


def test_ten_merged_jobs_cost_what_was_printed() -> None:
    one, ten = (costs(setting(NORMAL, 0, (count,)), 0) for count in (1, 10))
    grown = growth([ten], [one])
    assert grown["total"].mean == pytest.approx(0.255, abs=0.01)
    assert grown["map"].mean == pytest.approx(0.288, abs=0.01)
    assert 0.2 < grown["reduce"].mean < 0.3


@pytest.mark.parametrize(("waves", "sub_jobs"), [(1, 64), (5, 13)])
def test_segments_are_cut_by_map_slots_alone(waves: int, sub_jobs: int) -> None:
    found = run(setting(NORMAL, 0, (2,)), s3(waves=waves), 0, keep_journal=True)
    maps = [each for each in read_run(found.journal).launches if each.kind == MAP]
    assert len(maps) == 2560
    assert len({each.round for each in maps}) == sub_jobs


def test_a_node_never_runs_two_maps_and_reduces_have_room() -> None:
    assert (LANES["maps"], LANES["reduces"]) == (1, 8)
    found = run(setting(NORMAL, 0, (10,)), mrshare([10]), 0, keep_journal=True)
    rows = read_run(found.journal).launches
    ends: dict[str, float] = {}
    for each in rows:
        if each.kind == MAP:
            assert each.start_s >= ends.get(each.node, 0.0)
            assert each.end_s is not None
            ends[each.node] = each.end_s
    reduces = [each.start_s for each in rows if each.kind != MAP]
    assert len(reduces) == 300
    assert max(reduces) < max(ends.values()) / 2  # all of them wait with a slot of their own


def test_a_run_is_the_same_for_a_seed() -> None:
    where = setting(SMALL, 3)
    assert measure(where, s3(), 3) == measure(setting(SMALL, 3), s3(), 3)
    assert measure(where, s3(), 3) != measure(setting(SMALL, 4), s3(), 4)


def test_batches_are_those_of_the_paper() -> None:
    named = rivals()
    assert list(named) == [WHOLE, LIGHT, *OTHERS]
    counts = [named[name].profile["sharing"]["counts"] for name in ("MRS1", "MRS2", "MRS3")]
    assert counts == [[10], [6, 4], [3, 3, 4]]
    assert (named[WHOLE].start_s, named[LIGHT].start_s) == (JOB_START_S, HEARTBEAT_S)


def test_a_claim_is_judged_by_its_side_and_a_draw_agrees_with_neither() -> None:
    runs = {
        WHOLE: [Times(100.0, 10.0)],
        LIGHT: [Times(100.0, 10.0)],
        "MRS1": [Times(101.0, 20.0)],
        "MRS3": [Times(90.0, 30.0)],
    }
    ahead = Claim("TET", "above", ("MRS1",), "TET")
    behind = Claim("TET", "below", ("MRS1", "MRS3"), "TET", side=-1)
    longest = Claim("ART", "3", ("MRS1", "MRS3"), "ART", max)
    found = judged((ahead, behind, longest), runs)
    assert [each.verdict for each in found] == [
        Verdict.DIFFERS,
        Verdict.AGREES,
        Verdict.AGREES,
    ] * 2
    assert [each.ours for each in found[:3]] == ["1.01", "0.90", "3.00"]


@pytest.mark.parametrize("name", some_of((n for n in EXPERIMENTS if n.startswith("s3-")), 2))
def test_every_experiment_runs_small(name: str) -> None:
    experiment = EXPERIMENTS[name]
    outcome = experiment.run(QUICK)
    assert outcome.findings
    assert outcome.charts
    assert outcome.notes
    assert len(outcome.tables) >= 2
    assert all(len(row) == len(each.columns) for each in outcome.tables for row in each.rows)
    assert experiment.parameters


def test_directions_that_hold_whatever_a_sub_job_costs() -> None:
    together = setting(SMALL, 0, gap_s=0.0)
    apart = setting(SMALL, 0)
    dense = {name: measure(together, rival, 0) for name, rival in rivals().items()}
    sparse = {name: measure(apart, rival, 0) for name, rival in rivals().items()}
    for base in (WHOLE, LIGHT):
        assert dense["MRS1"] < dense[base]
        for found in (dense, sparse):
            assert found["FIFO"].tet_s > found[base].tet_s
            assert found["FIFO"].art_s > found[base].art_s
        assert sparse["MRS1"].art_s > sparse[base].art_s
    assert dense["MRS3"].art_s > 1.3 * dense[LIGHT].art_s
