"""`queryard.compare`: inputs, numbers, and the forms of its result."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import queryard
from queryard.comparison import Progress, Scores, make_conditions, medians
from queryard.core.errors import InvalidProfile, InvalidRecord, QueryardError
from queryard.sim import Conditions
from queryard.workload import generate, load_workload, parse_mix, parse_nodes
from queryard.workload.traces import Use, use_trace

EXAMPLES = Path(__file__).parents[2] / "examples"
STALL = EXAMPLES / "stall.toml"
TRACE = EXAMPLES / "spark-eventlog.gz"
SPEC = "queries=12,bins=80:1-2/20:8,deadlines=0.5"


@pytest.fixture(scope="module")
def found() -> queryard.Comparison:
    return queryard.compare(generate=SPEC, nodes="2x4", policies="fifo,edf,srtf")


def test_every_policy_has_all_metrics_and_the_ideals_stand_beside(found):
    assert list(found.scores) == list(found.results) == ["fifo", "edf", "srtf"]
    assert list(found.references) == ["ideal PS", "clairvoyant SRPT"]
    for name, result in found.results.items():
        assert result.summary.counts.finished == 12
        assert result.summary.response_s.mean == found.scores[name].mean_response_s
        assert result.journal.steps


def test_the_best_policy_of_a_metric_is_the_one_with_the_best_number(found):
    rows = found.scores.values()
    assert found.best() == min(rows, key=lambda row: row.mean_response_s).name == "srtf"
    assert found.best("fairness") == max(rows, key=lambda row: row.fairness).name
    assert found.best("deadlines missed") == min(rows, key=lambda row: row.deadlines_missed).name
    assert found.best("error") is None  # no query is online
    with pytest.raises(InvalidRecord, match=r"unknown metric 'mean respons'; did you mean 'mean"):
        found.best("mean respons")


def test_it_shows_itself_as_the_command_prints_it(found, capsys):
    from queryard.cli import main

    command = ["compare", "--generate", SPEC, "--nodes", "2x4", "--policy", "fifo,edf,srtf"]
    with pytest.raises(SystemExit):
        main(command)
    printed = capsys.readouterr().out
    assert [line.rstrip() for line in printed.splitlines()] == repr(found).splitlines()
    assert repr(found).startswith(found.table())
    with pytest.raises(SystemExit):
        main([*command, "--json"])
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(found.to_dict()))


def test_a_notebook_shows_a_table_with_the_best_in_bold(found):
    shown = found._repr_html_()
    best = found.scores["srtf"].mean_response_s
    assert f"<td><b>{best:.1f}</b></td>" in shown
    assert "<th>mean response [s]</th>" in shown
    assert "<i>ideal PS</i>" in shown
    assert found.verdict in shown


def test_names_that_look_like_markup_are_shown_as_they_are():
    found = queryard.compare(STALL, policies="[bold]<b>", profiles={"[bold]<b>": {"order": "fifo"}})
    console = Console(width=80)
    with console.capture() as shown:
        console.print(found)
    assert "[bold]<b> answers in" in shown.get()
    assert "&lt;b&gt;" in found._repr_html_()


def test_a_file_a_loaded_workload_and_a_drawn_one():
    from_file = queryard.compare(STALL, policies="tls")
    as_text = queryard.compare(str(STALL), policies=["tls"])
    loaded = queryard.compare(load_workload(STALL), policies="tls")
    assert from_file.scores == as_text.scores == loaded.scores
    mix = parse_mix(SPEC)
    drawn = queryard.compare(generate=mix, nodes=parse_nodes("2x4"), seeds=3, policies="tls")
    made = generate(mix, 3, parse_nodes("2x4"))
    assert drawn.scores == queryard.compare(made, seeds=3, policies="tls").scores


def test_a_trace_brings_what_was_recorded():
    from_file = queryard.compare(TRACE, policies="fifo")
    opened = queryard.compare(use_trace(TRACE, Use()), policies="fifo")
    assert next(iter(from_file.references)) == "as recorded"
    assert from_file.references == opened.references
    assert from_file.scores == opened.scores
    assert from_file.runs[0].settings.estimates == "regression"
    busier = queryard.compare(TRACE, trace="load=1.2", policies="fifo")
    assert busier.scores["fifo"].utilisation != from_file.scores["fifo"].utilisation


def test_the_demo_has_conditions_of_its_own_unless_others_are_given():
    made = [make_conditions(given, demo=True) for given in (None, {"noise": 0.5}, Conditions())]
    assert [conditions.noise for conditions in made] == [0.1, 0.5, 0.0]
    assert [conditions.remote_penalty for conditions in made] == [0.3, 0.3, 0.0]
    assert make_conditions({"noise": 0.5}, demo=False) == Conditions(noise=0.5)
    found = queryard.compare(demo=True, policies="fifo")
    assert found.runs[0].settings.conditions == made[0]


def test_over_several_seeds_the_table_has_medians():
    steps: list[Progress] = []
    given = {"generate": SPEC, "nodes": "2x4", "policies": "fifo,srtf"}
    several = queryard.compare(**given, seeds=range(3), on_progress=steps.append)
    each = [queryard.compare(**given, seeds=seed) for seed in range(3)]
    for name in ("fifo", "srtf"):
        assert several.scores[name] == medians([one.scores[name] for one in each])
    assert several.title.endswith("; medians over 3 seeds")
    data = several.to_dict()
    assert data["seeds"] == [one.to_dict() for one in each]
    assert data["policies"][0]["scores"] == several.scores["fifo"].to_json()
    assert [step.ended for step in steps] == sorted(step.ended for step in steps)
    assert steps[-1] == Progress("srtf", 72, 72)


def test_a_portfolio_brings_its_candidates_and_says_what_it_did():
    found = queryard.compare(generate=SPEC, nodes="2x4", policies="portfolio:response:fifo/srtf")
    assert list(found.scores) == ["fifo", "srtf", "portfolio:response:fifo/srtf"]
    assert "policies in force" in " ".join(repr(found).split())
    assert found.to_dict()["portfolios"]["portfolio:response:fifo/srtf"]["best_fixed"] == "srtf"


def test_a_former_name_of_a_policy_is_valid():
    found = queryard.compare(STALL, policies="dearest,cost-of-delay").scores
    assert found["dearest"] == replace(found["cost-of-delay"], name="dearest")


def test_a_figure_is_drawn(found, tmp_path: Path):
    found.figure(tmp_path / "runs.html")
    assert (tmp_path / "runs.html").stat().st_size > 1000


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "which workload? there is none; give a workload or its file, generate=SPEC or demo"),
        ({"workload": STALL, "demo": True}, "workload and demo are too many"),
        ({"demo": True, "trace": "load=1"}, "trace= says how a trace is used"),
        ({"workload": STALL, "policies": ""}, "name at least one"),
        ({"workload": STALL, "policies": "fifoo"}, "did you mean 'fifo'?"),
        ({"workload": STALL, "estimates": "magic"}, "'magic'"),
        ({"workload": STALL, "conditions": {"wind": 3}}, "unknown condition 'wind'"),
        ({"workload": STALL, "slow_start": 2.0}, "slow_start must lie between 0 and 1"),
        ({"workload": STALL, "seeds": []}, "seeds: give at least one"),
        ({"workload": STALL, "profiles": {"mine": {"order": "magic"}}}, "'magic'"),
        ({"generate": "wind=3"}, "unknown key 'wind'"),
    ],
)
def test_mistakes_name_the_parameter(given, message):
    with pytest.raises(QueryardError) as raised:
        queryard.compare(**given)
    assert message in str(raised.value)


def test_a_loaded_workload_keeps_the_nodes_on_which_its_tables_lie():
    loaded = load_workload(STALL)
    with pytest.raises(InvalidRecord, match="has its own"):
        queryard.compare(loaded, nodes="4x4", policies="fifo")
    found = queryard.compare(replace(loaded, nodes=()), nodes="4x4", policies="fifo")
    assert found.title.endswith("on 4x4 slots")


def test_a_portfolio_runs_in_comparisons_only():
    from queryard.comparison import choose_profiles

    with pytest.raises(InvalidProfile, match="a portfolio runs beside its candidates"):
        choose_profiles(["portfolio"], {})


def test_comparing_needs_no_duckdb():
    program = (
        "import sys, queryard\n"
        "queryard.compare(generate='queries=3', nodes='1x2', policies='fifo').table()\n"
        "needed = {'duckdb', 'pyarrow', 'matplotlib', 'sqlalchemy'} & sys.modules.keys()\n"
        "print(*needed)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("\n", "")


@given(st.lists(st.none() | st.integers(0, 50), min_size=1, max_size=7))
def test_medians_leave_out_what_does_not_exist_and_stay_in_between(missed):
    row = Scores("fifo", 1.0, 1.0, 1.0, 1.0, None, 50, 1.0, 1.0, 1.0)
    median = medians([replace(row, deadlines_missed=number) for number in missed])
    known = [number for number in missed if number is not None]
    if not known:
        assert median.deadlines_missed is None
        return
    assert min(known) <= median.deadlines_missed <= max(known)
    assert sum(n < median.deadlines_missed for n in known) <= len(known) / 2
    assert (median.name, median.deadlines, type(median.deadlines)) == ("fifo", 50, int)


def test_a_portfolio_may_be_a_document_and_brings_its_candidates():
    own = {"mine": {"portfolio": {"objective": "response", "candidates": ["fifo", "srtf"]}}}
    found = queryard.compare(STALL, policies="mine", profiles=own)
    assert list(found.scores) == ["fifo", "srtf", "mine"]
    assert found.results["mine"].decisions
