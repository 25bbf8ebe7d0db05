"""The experiments of TLS: what is built is what was printed, and what is robust in the rest."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from research.outcome import Experiment, Outcome, RunOptions
from research.report import markdown
from research.sections import section_of
from research.tls import EXPERIMENTS
from research.tls.chain_tree import Crowd, crowd_setting
from research.tls.five_q21 import SIZES_GB, all_ends, five_setting
from research.tls.lodfa import alone_setting
from research.tls.measured import mix_setting as measured_mix
from research.tls.measured import q21_setting, read_measured, single_stage
from research.tls.mixes import USUAL_TRAFFIC, mix_run, mix_setting
from research.tls.motivation import Start, all_slowdowns, three_setting
from research.tls.plans import CHAINS, PLANS, SHARES, SINGLE_JOBS, TREES, input_share
from research.tls.yard import NODES, SCHEDULERS, SLOTS, USUAL, responses_s
from tests.long_forms import except_for

BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}


# --- what is built -------------------------------------------------------------------------


def test_the_cluster_is_the_published_one() -> None:
    assert (len(NODES), SLOTS) == (16, 192)


@pytest.mark.parametrize(
    ("name", "counts"),
    [("Bing", (44, 8, 24, 22, 2)), ("Facebook", (85, 4, 8, 2, 1)), ("QMix", (85, 4, 8, 2, 1))],
)
def test_mixes_have_the_published_numbers_of_queries(name: str, counts: tuple[int, ...]) -> None:
    arrivals = mix_setting(name, seed=0).workload.arrivals
    found = Counter(arrival.size_bin for arrival in arrivals)
    assert tuple(found[str(number)] for number in range(1, 6)) == counts


def test_queries_of_a_bin_read_as_much_as_it_says() -> None:
    setting = mix_setting("Bing", seed=0)
    sizes = {table.name: table.bytes for table in setting.workload.tables}
    bounds = {"1": (1, 10), "2": (20, 20), "3": (50, 50), "4": (100, 100), "5": (100, 200)}
    for arrival in setting.workload.arrivals:
        tables = {item.table for job in arrival.query.jobs for item in job.inputs}
        read_gb = sum(sizes[table] for table in tables) / 1e9
        low, high = bounds[arrival.size_bin]
        assert low - 1e-6 <= read_gb <= high + 1e-6


def test_qmix_is_facebook_with_twenty_single_jobs() -> None:
    facebook, qmix = (mix_setting(name, seed=3).workload.arrivals for name in ("Facebook", "QMix"))
    single = [arrival for arrival in qmix if arrival.query.class_name in SINGLE_JOBS]
    assert len(single) == 20
    assert all(len(arrival.query.jobs) == 1 for arrival in single)
    kept = [
        (a.query.class_name, a.size_bin)
        for a, b in zip(facebook, qmix, strict=True)
        if b not in single
    ]
    assert kept == [(b.query.class_name, b.size_bin) for b in qmix if b not in single]


def test_work_arrives_at_the_chosen_load() -> None:
    for load in (0.8, 1.6):
        traffic = replace(USUAL_TRAFFIC, load=load)
        arrivals = mix_setting("Facebook", 1, traffic=traffic).workload.arrivals
        span_s = max(arrival.query.submit_s for arrival in arrivals)
        assert sum(arrival.work_s for arrival in arrivals) / SLOTS / span_s == pytest.approx(
            load, rel=0.1
        )


def test_queues_are_tenants() -> None:
    setting = mix_setting("Facebook", 0, traffic=replace(USUAL_TRAFFIC, queues=4))
    assert len({arrival.query.tenant for arrival in setting.workload.arrivals}) == 4


def test_plans_have_the_shapes_that_the_paper_names() -> None:
    assert [len(PLANS[name]) for name in ("Q14", "Q17")] == [2, 4]
    for name in CHAINS:
        assert all(len(step.upstream) <= 1 for step in PLANS[name])
    for name in (*TREES, "Q18", "Q9 tree"):
        assert any(len(step.upstream) == 2 for step in PLANS[name])
    lineitem = [step.operator for step in PLANS["Q21"] if "lineitem" in step.tables]
    assert lineitem == ["groupby", "groupby", "join"]
    assert sum(SHARES.values()) == pytest.approx(1.0, abs=0.01)
    assert input_share(PLANS["Q1"]) == SHARES["lineitem"]
    for plan in (*PLANS.values(), *SINGLE_JOBS.values()):
        names = [step.name for step in plan]
        for place, step in enumerate(plan):
            assert set(step.upstream) <= set(names[:place])
            assert 0 < step.final <= step.medium * 1.1


def test_blocks_and_reduces_are_hives() -> None:
    (arrival,) = alone_setting("Q17", seed=0).workload.arrivals
    agg, small = arrival.query.jobs[0], arrival.query.jobs[2]
    assert agg.map is not None
    assert agg.reduce is not None
    assert agg.map.tasks == -(-138 * 1000 // 256)
    assert agg.reduce.tasks == 138
    assert small.scans == ()


def test_the_small_settings_are_as_described() -> None:
    assert [a.query.class_name for a in three_setting(0, Start()).workload.arrivals] == [
        "Q14",
        "Q17",
        "Q14",
    ]
    five = five_setting(0).workload.arrivals
    assert sorted(int(arrival.query.id) for arrival in five) == list(SIZES_GB)
    crowd = crowd_setting(0, Crowd()).workload.arrivals
    assert Counter(a.query.class_name for a in crowd) == Counter((*CHAINS, *TREES))
    assert {arrival.query.submit_s for arrival in crowd} == {0.0}


def test_a_seed_is_a_run_and_another_seed_another() -> None:
    settings = [mix_setting("Facebook", seed, 0.1) for seed in (1, 1, 2)]
    first, again, other = (
        responses_s(setting, SCHEDULERS["TLS"], seed)
        for setting, seed in zip(settings, (1, 1, 2), strict=True)
    )
    assert first == again != other


# --- what comes out ------------------------------------------------------------------------


@cache
def small(name: str) -> Outcome:
    """An experiment run small, with one other choice for what is open instead of all."""
    experiment = BY_NAME[name]
    module = import_module(experiment.run.__module__)
    with pytest.MonkeyPatch.context() as patch:
        if hasattr(module, "OTHERWISE"):
            patch.setattr(module, "OTHERWISE", dict(list(module.OTHERWISE.items())[:1]))
        return experiment.run(RunOptions(seeds=1, size=0.02))


# Those that run nothing but simulations; the others have tests of their own.
SIMULATED = [name for name in BY_NAME if name not in ("tls-measured", "tls-accuracy")]


@pytest.fixture(
    scope="module", params=except_for(SIMULATED, "tls-slowdown", "tls-lodfa", "tls-chain-tree")
)
def result(request: pytest.FixtureRequest) -> tuple[Experiment, Outcome]:
    return BY_NAME[request.param], small(request.param)


def test_an_experiment_gives_findings_tables_and_a_chart(
    result: tuple[Experiment, Outcome],
) -> None:
    experiment, outcome = result
    assert outcome.findings
    assert outcome.tables
    assert outcome.charts[0].name == experiment.name
    assert all(chart.name.startswith(experiment.name) for chart in outcome.charts)
    for table in outcome.tables:
        assert all(len(row) == len(table.columns) for row in table.rows)
    assert markdown(section_of(experiment, outcome, 1, 0.0)).startswith(f"## {experiment.title}")


def test_slowdowns_of_qmix_are_shown_and_agree_with_nothing_as_none_were_printed() -> None:
    outcome = small("tls-slowdown")
    of_qmix = [finding for finding in outcome.findings if finding.what.startswith("QMix")]
    assert len(of_qmix) == 3
    assert all((finding.paper, finding.verdict) == ("", None) for finding in of_qmix)
    for table in outcome.tables[:2]:
        assert sum(row[0].startswith("QMix") for row in table.rows) == 5
    for chart in outcome.charts:
        assert [panel.title for panel in chart.panels] == ["Bing", "Facebook", "QMix"]


def test_a_large_query_stalls_small_ones_under_hcs_only() -> None:
    found = all_slowdowns(2, Start())
    for name in ("QA", "QC"):
        assert min(found["HCS"][name]) > 2
        assert max(found["TLS"][name]) < 1.7


def test_of_five_sizes_the_smallest_is_soon_done_under_tls() -> None:
    world = replace(USUAL, memory_cache_bytes=0.0)
    ends = all_ends(1, world)
    (hcs,), (tls,) = ends["HCS"], ends["TLS"]
    assert tls[10] < hcs[10] / 2
    assert max(hcs.values()) / min(hcs.values()) < max(tls.values()) / min(tls.values())
    assert sum(tls.values()) < sum(ends["HFS"][0].values())


def test_tls_is_ahead_of_hcs_where_queries_wait() -> None:
    traffic = replace(USUAL_TRAFFIC, load=1.6)
    found = mix_run("Facebook", 0, 0.3, USUAL, traffic)
    means = {scheduler: summary.response_s.mean for scheduler, summary in found.items()}
    assert means["TLS"] is not None
    assert means["HCS"] is not None
    assert means["TLS"] < 0.8 * means["HCS"]


def test_data_in_memory_is_worth_something_to_lodfa() -> None:
    profile = {"jobs": "lodfa"}
    warm, cold = (
        responses_s(alone_setting("Q17", 0, world=world), profile, 0)["Q17"]
        for world in (replace(USUAL, memory_gain=0.7), replace(USUAL, memory_cache_bytes=0.0))
    )
    assert warm < cold


def test_measured_stages_are_missed_aloud(tmp_path: Path) -> None:
    assert read_measured(tmp_path) == {}
    for options, told in (
        (RunOptions(seeds=1), "with --traces"),
        (
            RunOptions(seeds=1, traces=tmp_path),
            f"{tmp_path} holds nothing to replay in decima-tpch/",
        ),
    ):
        outcome = BY_NAME["tls-measured"].run(options)
        assert not outcome.findings
        assert any(told in note for note in outcome.notes)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of stages as measured ones are written: two that wait for nothing, and a third."""
    folder = tmp_path_factory.mktemp("traces")
    (folder / "decima-tpch").mkdir()
    for gb in (2, 10, 50, 100):
        queries = []
        for number in range(1, 23):
            stages = [
                {
                    "stage": stage,
                    "num_tasks": tasks,
                    "first_wave": {"50": [10.0 * gb + number] * tasks},
                    "rest_wave": {},
                }
                for stage, tasks in enumerate((1, gb, 2))
            ]
            query = {"query": number, "num_stages": 3, "edges": [[0, 2], [1, 2]]}
            queries.append({**query, "stages": stages})
        text = json.dumps({"scale": f"{gb}g", "queries": queries})
        (folder / "decima-tpch" / f"tpch-{gb}g.json.gz").write_bytes(gzip.compress(text.encode()))
    return folder


def test_on_measured_stages_qmix_is_facebook_with_single_stages(traces: Path) -> None:
    measured = read_measured(traces)
    facebook, qmix = (
        {a.query.id: a for a in measured_mix(name, measured, 1, 1.0).workload.arrivals}
        for name in ("Facebook", "QMix")
    )
    single = {name for name, arrival in qmix.items() if len(arrival.query.jobs) == 1}
    assert len(single) == 20
    for name, arrival in qmix.items():
        plain = facebook[name]
        assert (arrival.query.class_name, arrival.size_bin) == (
            plain.query.class_name,
            plain.size_bin,
        )
        if name in single:
            (job,) = arrival.query.jobs
            (other,) = single_stage(plain).query.jobs
            assert job == other
            # The one with the most work that waits for nothing.
            assert job.name == "s1"
            assert arrival.work_s < plain.work_s


def test_what_measured_stages_give(traces: Path) -> None:
    measured = read_measured(traces)
    ids = {arrival.query.id for arrival in q21_setting(measured, 0).workload.arrivals}
    assert ids == {"2", "10", "50", "100"}
    outcome = BY_NAME["tls-measured"].run(RunOptions(seeds=1, size=0.1, traces=traces))
    told = [finding.what for finding in outcome.findings]
    assert sum(what.startswith("QMix") for what in told) == 2
    assert sum(what.startswith("Q21 in four sizes") for what in told) == 4
    by_bin = [row[0] for row in outcome.tables[0].rows]
    assert "QMix, all" in by_bin
    assert "Bing, bin 1 (2 or 10 GB)" in by_bin
    for table in outcome.tables:
        assert all(len(row) == len(table.columns) for row in table.rows)
    (chart,) = outcome.charts
    assert len(chart.panels) == 4
