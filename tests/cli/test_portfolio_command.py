"""A portfolio on the command line, beside the policies it chooses from."""

from __future__ import annotations

import json

import pytest

from queryard.comparison import PORTFOLIO, choose_profiles
from queryard.policies import resolve_profile

SMALL = ("--generate", "queries=15,bins=80:1-2/20:8,deadlines=0.4,load=1.1", "--nodes", "4x4")


def test_a_portfolio_brings_its_candidates_and_says_how_far_it_is_from_the_best(call):
    shown = call("compare", *SMALL, "--policy", "portfolio:mixed:fifo/srtf/edf")
    words = " ".join(shown.out.split())
    for name in ("fifo", "srtf", "edf", "portfolio:mixed:fifo/srtf/edf: policies in force"):
        assert name in words
    assert "of the best fixed policy in hindsight" in words
    assert "s of computing" in words
    assert "between decisions:" in words


def test_the_best_is_one_of_its_own_and_another_is_named_where_it_is_better(call):
    answer = call("compare", *SMALL, "--policy", "portfolio:response:fifo,srtf", "--json")
    facts = json.loads(answer.out)["portfolios"]["portfolio:response:fifo"]
    assert (facts["best_fixed"], facts["of_best_fixed"]) == ("fifo", pytest.approx(1.0))
    assert facts["best_of_all"] == "srtf"
    words = " ".join(
        call("compare", *SMALL, "--policy", "portfolio:response:fifo,srtf").out.split()
    )
    assert "1.00 of the best fixed policy in hindsight (fifo, " in words
    assert "of the best that it cannot choose (srtf, " in words


def test_a_policy_beside_a_portfolio_is_the_one_that_is_compared_without():
    beside = choose_profiles(("portfolio:mixed:cost-of-delay/edf:+x",), {}, (PORTFOLIO,))
    assert beside["edf +x"] == {**resolve_profile("edf"), "provisioning": "+x"}
    (portfolio,) = (of[PORTFOLIO] for of in beside.values() if PORTFOLIO in of)
    assert portfolio.candidates["edf +x"]["slots"] == "reserve-short"


def test_every_policy_has_a_score_by_the_objective_of_the_portfolio(call):
    shown = call("compare", *SMALL, "--policy", "portfolio:response:fifo/srtf").out
    first, second = shown.split("score:")
    means_s = dict(line.split()[:2] for line in first.splitlines() if line[:4] in ("fifo", "srtf"))
    assert set(means_s) == {"fifo", "srtf"}
    for name, mean_s in means_s.items():
        row = next(line for line in second.splitlines() if line.startswith(f"{name} "))
        assert row.split() == [name, mean_s]


def test_with_provisioning_the_nodes_are_told_and_for_which_nodes_the_ideals_are(call):
    policy = ("--policy", "portfolio:priced:srtf:+x/-x")
    words = " ".join(call("compare", *SMALL, *policy).out.split())
    assert "mean most node- score: policy nodes nodes hours priced" in words
    assert "slowdowns and ideals are for the 4 at the start." in words
    rows = json.loads(call("compare", *SMALL, *policy, "--json").out)["policies"]
    grown, shrunk, _ = (row["scores"] for row in rows)
    assert (grown["most_nodes"] > 4, shrunk["most_nodes"]) == (True, 4)
    assert shrunk["mean_nodes"] < 4 < grown["mean_nodes"]
    for row in rows:
        assert row["scores"]["node_hours"] == row["summary"]["cost"]["node_hours"]


def test_where_no_node_comes_or_goes_there_is_no_column_for_them(call):
    shown = call("compare", *SMALL, "--policy", "fifo,srtf").out
    assert "nodes" not in shown


def test_a_portfolio_of_nothing_in_particular_is_the_usual_one():
    *_, name = choose_profiles(["portfolio:"], {}, (PORTFOLIO,))
    assert name == PORTFOLIO


def test_what_a_portfolio_did_as_json(call):
    found = json.loads(call("compare", *SMALL, "--policy", "portfolio", "--json").out)
    (facts,) = found["portfolios"].values()
    assert facts["objective"] == "mixed"
    assert sum(facts["usage"].values()) > 0.99
    assert set(facts["scores"]) == {row["policy"] for row in found["policies"]}
    best = min(score for name, score in facts["scores"].items() if name != "portfolio")
    assert facts["scores"][facts["best_fixed"]] == best
    assert facts["of_best_fixed"] == pytest.approx(facts["scores"]["portfolio"] / best)
    assert sum(decision["launches"] for decision in facts["decisions"]) > 0
    for decision in facts["decisions"]:
        assert decision["policy"] in decision["scores"]


def test_a_wrong_objective_is_refused_before_anything_runs(call):
    ended = call("compare", *SMALL, "--policy", "portfolio:fastest")
    assert ended.code == 2
    assert "unknown objective 'fastest'" in ended.err


def test_a_portfolio_inside_the_shares_of_tenants(call):
    policy = ("--policy", "portfolio:response:fifo/srtf")
    shared = call("compare", "examples/tenants.toml", *policy, "--by-tenant", "--json")
    found = json.loads(shared.out)
    (facts,) = found["portfolios"].values()
    assert set(facts["usage"]) <= {"fifo", "srtf"}
    assert len(found["policies"]) == 3


def test_a_portfolio_is_for_compare(call):
    ended = call("simulate", *SMALL, "--policy", "portfolio:response")
    assert ended.code == 2
    assert "queryard compare" in ended.err
