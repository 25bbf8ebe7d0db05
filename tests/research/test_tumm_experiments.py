"""TuMM's experiments: clusters and jobs as published, fixed slots by node, directions."""

from __future__ import annotations

from functools import cache

import pytest

from queryard.core.model import MAP
from queryard.metrics import RunRows, read_run
from research import EXPERIMENTS, Outcome, RunOptions
from research.outcome import Verdict
from research.trials import run_one
from research.tumm.clusters import (
    HETER1,
    HETER2,
    HOMOGENEOUS,
    World,
    make_nodes,
    setting,
)
from research.tumm.jobs import (
    BENCHMARKS,
    CLASSIFICATION,
    GREP,
    HETEROGENEOUS_MAPS,
    HISTOGRAM,
    INVERTED_INDEX,
    PRINTED,
    Benchmark,
    batch,
    draw_mix,
    johnson,
)
from research.tumm.shared import STATIC, TUMM, makespan_s
from research.tumm.static_by_node import simulate_fixed
from research.tumm.tpch_queries import QUERIES, tpch_batch

NAMES = (
    "tumm-benchmarks",
    "tumm-fifo-fair",
    "tumm-mixed",
    "htumm-heterogeneous",
    "htumm-tpch",
)


def test_clusters_are_the_published_ones() -> None:
    assert [node.slots for node in HOMOGENEOUS] == [4] * 4
    assert sum(node.slots for node in make_nodes(HETER1)) == 30
    assert sum(node.slots for node in make_nodes(HETER2)) == 36
    fast = make_nodes(HETER2)[3]
    assert fast.map_speed == 2.5
    assert fast.reduce_speed == pytest.approx(1.75 / 3.75)


def test_jobs_have_the_published_number_of_tasks() -> None:
    assert HETEROGENEOUS_MAPS == 128
    assert {kind.name: kind.maps for kind in BENCHMARKS} == {
        "Inverted Index": 112,
        "Histogram Rating": 160,
        "Word Count": 112,
        "Classification": 160,
        "Grep": 160,
    }
    assert [kind.reduces for kind in BENCHMARKS] == [150, 80, 80, 80, 80]
    for kind in BENCHMARKS:
        assert PRINTED[kind.name].map_s[0] < kind.map_s < PRINTED[kind.name].map_s[1]
        assert PRINTED[kind.name].reduce_s[0] < kind.reduce_s < PRINTED[kind.name].reduce_s[1]
    maps_s = sum(kind.work_s[0] for kind in BENCHMARKS)
    assert maps_s == pytest.approx(sum(kind.work_s[1] for kind in BENCHMARKS), rel=0.05)


def test_reduce_times_add_up() -> None:
    (truth,) = batch([GREP]).arrivals[0].truth.values()
    assert truth.shuffle_s + truth.merge_s + truth.reduce_s == pytest.approx(GREP.reduce_s)
    assert truth.shuffle_s == pytest.approx(2 * truth.merge_s)


def test_johnson_puts_reduce_heavy_jobs_first_by_their_maps() -> None:
    order = johnson([CLASSIFICATION, INVERTED_INDEX, HISTOGRAM])
    assert order == (INVERTED_INDEX, HISTOGRAM, CLASSIFICATION)


def test_a_mix_is_the_same_for_a_seed() -> None:
    assert draw_mix(3, 10) == draw_mix(3, 10) != draw_mix(4, 10)


def test_queries_are_chains_of_five_jobs_with_most_maps_first() -> None:
    for arrival in tpch_batch().arrivals:
        maps = [job.map.tasks for job in arrival.query.jobs if job.map]
        assert len(maps) == 5
        assert max(maps) == maps[0] > sum(maps[1:])
    assert list(QUERIES) == ["Q15", "Q16", "Q18"]


def _most_at_once(run: RunRows, kind: str) -> dict[str, int]:
    most: dict[str, int] = {}
    for launch in run.launches:
        if launch.kind != kind:
            continue
        beside = sum(
            other.kind == kind
            and other.node == launch.node
            and other.start_s <= launch.start_s < (other.end_s or 0.0)
            for other in run.launches
        )
        most[launch.node] = max(most.get(launch.node, 0), beside)
    return most


def test_fixed_slots_may_differ_from_node_to_node() -> None:
    jobs = [kind.sized(0.3) for kind in (GREP, GREP)]
    run = simulate_fixed(World().setting(batch(jobs), HETER1), HETER1, "fifo", 0)
    rows = read_run(run.journal)
    printed_maps = [group.maps for group in HETER1 for _ in range(3)]
    printed_reduces = [group.reduces for group in HETER1 for _ in range(3)]
    by_node = sorted(_most_at_once(rows, MAP).items())
    assert [most for _, most in by_node] == printed_maps
    by_node = sorted(_most_at_once(rows, "reduce").items())
    assert [most for _, most in by_node] == printed_reduces


@pytest.mark.parametrize("kind", BENCHMARKS, ids=lambda kind: kind.name)
def test_tumm_is_faster_than_every_fixed_ratio(kind: Benchmark) -> None:
    case = setting(batch([kind] * 3))
    fixed = {name: makespan_s(run_one(case, profile, 0)) for name, profile in STATIC.items()}
    tumm_s = makespan_s(run_one(case, TUMM["TuMM"], 0))
    assert tumm_s < min(fixed.values())
    assert tumm_s == makespan_s(run_one(case, TUMM["TuMM"], 0))


@cache
def small(name: str) -> Outcome:
    return EXPERIMENTS[name].run(RunOptions(seeds=1, size=0.1))


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_gives_findings_tables_and_charts(name: str) -> None:
    outcome = small(name)
    assert outcome.findings
    assert outcome.charts
    for table in outcome.tables:
        assert table.rows
        assert all(len(row) == len(table.columns) for row in table.rows)


def test_fair_takes_longer_than_fifo() -> None:
    (finding,) = small("tumm-fifo-fair").findings
    assert finding.verdict in (Verdict.AGREES, Verdict.OTHER_SIZE)


def test_h_tumm_ends_every_query_sooner() -> None:
    findings = small("htumm-tpch").findings
    gains = [finding for finding in findings if "H_TuMM against FIFO" in finding.what]
    assert len(gains) == 6
    assert {finding.verdict for finding in gains} <= {Verdict.AGREES, Verdict.OTHER_SIZE}
