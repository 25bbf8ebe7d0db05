"""A portfolio on the command line, beside the policies it chooses from."""

from __future__ import annotations

import json

SMALL = ("--generate", "queries=15,bins=80:1-2/20:8,deadlines=0.4,load=1.1", "--nodes", "4x4")


def test_a_portfolio_brings_its_candidates_and_says_how_far_it_is_from_the_best(call):
    shown = call("compare", *SMALL, "--policy", "portfolio:mixed:fifo/srtf/edf")
    words = " ".join(shown.out.split())
    for name in ("fifo", "srtf", "edf", "portfolio:mixed:fifo/srtf/edf: policies in force"):
        assert name in words
    assert "of the best fixed policy in hindsight" in words


def test_what_a_portfolio_did_as_json(call):
    found = json.loads(call("compare", *SMALL, "--policy", "portfolio", "--json").out)
    (facts,) = found["portfolios"].values()
    assert facts["objective"] == "mixed"
    assert sum(facts["usage"].values()) > 0.99
    assert set(facts["scores"]) == {row["policy"] for row in found["policies"]}
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
