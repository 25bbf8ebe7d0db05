"""Generated workloads keep the promises of their mix, and a seed is a workload."""

import subprocess
import sys
from collections import Counter

import pytest

from queryard.core.errors import InvalidRecord
from queryard.core.model import Job, Node, Phase, Query
from queryard.workload import (
    Arrival,
    JobTruth,
    Mix,
    SizeBin,
    alone_time_s,
    demo_workload,
    generate,
    heavy_tailed,
    parse_mix,
    parse_nodes,
)
from queryard.workload.alone import capacity_slots


@pytest.mark.parametrize(
    ("bins", "counts"),
    [("bing", [44, 8, 24, 22, 2]), ("facebook", [85, 4, 8, 2, 1]), ("qmix", [85, 4, 8, 2, 1])],
)
def test_the_mixes_of_the_paper(bins: str, counts: list[int]) -> None:
    workload = generate(parse_mix(f"bins={bins}"), seed=4)
    found = Counter(arrival.size_bin for arrival in workload.arrivals)
    assert [found[str(i)] for i in range(1, 6)] == counts
    plain = [
        a for a in workload.arrivals if a.query.class_name in ("terasort", "wordcount", "grep")
    ]
    assert len(plain) == (20 if bins == "qmix" else 0)


def test_input_sizes_lie_in_their_bin() -> None:
    mix = Mix(queries=50, bins=(SizeBin("x", 1, 3, 4),))
    for arrival in generate(mix).arrivals:
        read = sum(item.bytes for job in arrival.query.jobs for item in job.inputs)
        assert 3e9 * 0.999 <= read <= 4e9 * 1.001


def test_shares_are_kept() -> None:
    mix = parse_mix("queries=40,deadlines=0.3,online=0.1,divisible=0.2,tenants=a:3/b")
    arrivals = generate(mix, seed=2).arrivals
    assert sum(a.query.deadline_s is not None for a in arrivals) == 12
    assert sum(a.query.kind == "online" for a in arrivals) == 4
    assert sum(a.query.jobs[0].divisible is not None for a in arrivals) == 12
    assert Counter(a.query.tenant for a in arrivals) == {"a": 30, "b": 10}


@pytest.mark.parametrize("load", [0.3, 0.9])
def test_offered_load(load: float) -> None:
    nodes = parse_nodes("4x4,2x8@0.5")
    assert capacity_slots(nodes) == 24
    workload = generate(Mix(queries=400, load=load), 1, nodes)
    last = max(a.query.submit_s for a in workload.arrivals)
    offered = sum(a.work_s for a in workload.arrivals) / last / 24
    assert offered == pytest.approx(load, rel=0.05)


def test_deadlines_leave_one_to_three_times_the_time_alone() -> None:
    nodes = parse_nodes("4x4")
    workload = generate(Mix(queries=100, deadlines=1.0, online=0.3), 3, nodes)
    for arrival in workload.arrivals:
        assert arrival.query.deadline_s is not None
        slack = (arrival.query.deadline_s - arrival.query.submit_s) / alone_time_s(arrival, 16)
        assert 0.999 <= slack <= 3.001


def test_shared_queries_read_their_bins_common_table() -> None:
    workload = generate(parse_mix("queries=60,shared=0.5"), seed=1)
    readers = Counter(
        name for a in workload.arrivals for name in {t for job in a.query.jobs for t in job.scans}
    )
    common = {name: count for name, count in readers.items() if name.startswith("common")}
    assert sum(common.values()) == 30
    assert all(count == 1 for name, count in readers.items() if name not in common)


def test_scans_have_one_task_a_split_on_known_nodes() -> None:
    workload = generate(Mix(queries=30), 1, parse_nodes("5x2"))
    tables = {table.name: table for table in workload.tables}
    for job in (job for a in workload.arrivals for job in a.query.jobs):
        if job.scans:
            assert job.map is not None
            assert job.map.tasks == sum(len(tables[name].splits) for name in job.scans)
    assert {n for t in workload.tables for s in t.splits for n in s.nodes} == {
        "n1",
        "n2",
        "n3",
        "n4",
        "n5",
    }


@pytest.mark.parametrize("shape", ["single", "chain", "tree", "diamond", "mixed"])
def test_shapes(shape: str) -> None:
    workload = generate(Mix(queries=30, shape=shape), 1)
    names = {a.query.class_name.partition("-")[0] for a in workload.arrivals}
    assert names == ({"single", "chain", "tree", "diamond"} if shape == "mixed" else {shape})


def test_memory_follows_the_input_but_always_fits() -> None:
    nodes = (Node("n", 8, memory_bytes=4e9),)
    demands = [
        a.query.memory_bytes for a in generate(Mix(queries=50, memory=0.3), 1, nodes).arrivals
    ]
    assert 0 < min(demands) < max(demands) == 2e9


def test_time_alone_is_bounded_by_the_path_and_by_the_work() -> None:
    jobs = (
        Job("a", map=Phase(4), reduce=Phase(1)),
        Job("b", map=Phase(4)),
        Job("c", upstream=("a", "b"), map=Phase(1)),
    )
    truth = {
        "a": JobTruth(map_s=2.0, shuffle_s=1.0, merge_s=1.0, reduce_s=1.0),
        "b": JobTruth(map_s=10.0),
        "c": JobTruth(map_s=1.0),
    }
    arrival = Arrival(Query("q", jobs), truth)
    assert alone_time_s(arrival, 100) == 10 + 1
    assert alone_time_s(arrival, 2) == max(20 + 1, (8 + 3 + 40 + 1) / 2)


def test_heavy_tail() -> None:
    workload = heavy_tailed(2_000, 70_000, 200, seed=1)
    tasks = sorted(
        sum(p.tasks for p in (a.query.jobs[0].map, a.query.jobs[0].reduce) if p)
        for a in workload.arrivals
    )
    assert sum(tasks) == pytest.approx(70_000, rel=0.02)
    assert sum(tasks[-200:]) > 0.4 * sum(tasks)
    with_reduces = sum(a.query.jobs[0].reduce is not None for a in workload.arrivals)
    assert 0.25 < with_reduces / 2_000 < 0.4
    last = max(a.query.submit_s for a in workload.arrivals)
    assert sum(a.work_s for a in workload.arrivals) / last / 200 == pytest.approx(0.9, rel=0.05)


def test_demo() -> None:
    workload = demo_workload()
    assert len(workload.arrivals) == 100
    assert Counter(a.query.tenant for a in workload.arrivals) == {
        "dashboard": 60,
        "analyst": 32,
        "nightly": 8,
    }
    assert any(a.query.deadline_s for a in workload.arrivals)
    assert sum("events" in job.scans for a in workload.arrivals for job in a.query.jobs) > 40


def test_a_seed_is_a_workload() -> None:
    mix = parse_mix("queries=30,online=0.1,shared=0.3")
    assert generate(mix, 7) == generate(mix, 7) != generate(mix, 8)
    assert demo_workload(1) == demo_workload(1) != demo_workload(2)
    assert heavy_tailed(9, 99, 3, 1) == heavy_tailed(9, 99, 3, 1) != heavy_tailed(9, 99, 3, 2)


def test_hashing_has_no_say() -> None:
    code = (
        "from queryard.workload import *; from queryard.workload.write_json import to_json\n"
        "print(to_json(generate(parse_mix('queries=20,online=.2,shared=.5,tenants=a/b'), 1)),"
        "to_json(demo_workload()))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_a_mix_in_a_line() -> None:
    mix = parse_mix("queries=7, bins=80:1-5/20:40, shape=tree, block=64MB, tenants=web:2/batch")
    assert (mix.queries, mix.shape, mix.block_bytes) == (7, "tree", 64e6)
    assert mix.bins == (SizeBin("1-5 GB", 80, 1, 5), SizeBin("40 GB", 20, 40, 40))
    assert dict(mix.tenants) == {"web": 2, "batch": 1}
    assert parse_mix("") == Mix()
    assert parse_mix("bins=qmix").plain_jobs == 0.2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("querys=3", "unknown key 'querys'; did you mean 'queries'"),
        ("queries", "write queries=VALUE"),
        ("queries=many", "queries=many: expected a number"),
        ("queries=0", "queries must be above 0"),
        ("queries=2.5", "expected a number"),
        ("load=-1", "load must be above 0"),
        ("deadlines=2", "deadlines must lie between 0 and 1"),
        ("online=0.7,divisible=0.7", "more than all"),
        ("shape=star", "unknown shape 'star'"),
        ("bins=yahoo", "unknown bins 'yahoo'.*SHARE:GB"),
        ("bins=1:0", "sizes above 0"),
        ("bins=1:5-2", "sizes above 0"),
        ("bins=0:5", "add up to 0"),
        ("tenants=a:x", "NAME:WEIGHT"),
        ("tenants=a:0", "weights above 0"),
        ("queries=1,queries=2", "given twice"),
        ("memory=-1", "at least 0"),
        ("block=0", "above 0"),
        ("load=nan", "above 0"),
    ],
)
def test_a_wrong_mix_is_explained(text: str, message: str) -> None:
    with pytest.raises(InvalidRecord, match=message):
        parse_mix(text)


@pytest.mark.parametrize(
    ("text", "slots", "speeds", "memory"),
    [
        ("2x3", [3, 3], [(1, 1), (1, 1)], float("inf")),
        ("1x2, 1x4@0.5", [2, 4], [(1, 1), (0.5, 0.5)], float("inf")),
        ("1 x 2 @ 2/0.5 : 24 GB", [2], [(2, 0.5)], 24e9),
        ("1x2:1GiB", [2], [(1, 1)], 2**30),
    ],
)
def test_nodes_in_a_word(
    text: str, slots: list[int], speeds: list[tuple[float, float]], memory: float
) -> None:
    nodes = parse_nodes(text)
    assert [node.slots for node in nodes] == slots
    assert [(node.map_speed, node.reduce_speed) for node in nodes] == speeds
    assert nodes[-1].memory_bytes == memory


@pytest.mark.parametrize(
    "text",
    ["", "16", "16x", "x12", "16x0", "0x4", "4x4@0", "4x4@1.2.3", "4x4:much", "4x4,", "-1x2"],
)
def test_wrong_nodes_are_explained(text: str) -> None:
    with pytest.raises(InvalidRecord, match="nodes"):
        parse_nodes(text)


def test_ids_sort_as_they_count() -> None:
    ids = [node.id for node in parse_nodes("16x1")]
    assert ids == sorted(ids)
    assert ids[0] == "n01"
