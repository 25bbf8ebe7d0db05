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


def test_a_portfolio_does_not_go_inside_tenants(call):
    ended = call("compare", *SMALL, "--policy", "portfolio", "--by-tenant")
    assert ended.code == 2
    assert "--by-tenant" in ended.err
