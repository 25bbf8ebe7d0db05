"""`queryard why --policy` tells which candidates were tried, and why one was chosen."""

from __future__ import annotations

import json
import re

import pytest
from waiting import wait_until

import queryard

LONG = "SELECT count(*) FROM range(100000000000) AS r(i) WHERE hash(i) % 7 = {}"
PORTFOLIO = {
    "portfolio": {"candidates": ["fifo", "swrd"], "least_s": 0.05, "period_s": 0.1, "share": 1.0}
}


@pytest.fixture
def place(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n")
    return tmp_path


def test_the_decisions_of_a_portfolio_are_told(call, place):
    with queryard.connect(place, slots=1, profile=PORTFOLIO) as session:
        early = call("why", "--policy", "--data", place)
        assert early.code == 0, early.err
        assert "decided nothing yet" in early.out
        handles = [session.submit(LONG.format(number)) for number in range(2)]
        wait_until(lambda: any(d["candidates"] for d in session.policy_decisions()))
        ended = call("why", "--policy", "--data", place)
        assert ended.code == 0, ended.err
        assert 'for "small queries fast", with up to 100.0 % of a core' in ended.out
        assert "Candidates over 2 queries" in ended.out
        assert "swrd" in ended.out
        assert "first look" in ended.out
        (told,) = json.loads(call("why", "--policy", "--json", "--data", place).out)
        assert told["policy"]["name"] in ("fifo", "swrd")
        names = {c["name"] for d in told["decisions"] for c in d["candidates"]}
        assert names == {"fifo", "swrd"}
        assert told["portfolio"]["candidates"] == ["fifo", "swrd"]
        for handle in handles:
            handle.cancel()


def test_a_fixed_policy_is_told_as_such_and_a_portfolio_chosen_from_outside(call, place):
    with queryard.connect(place, slots=1, profile="tls") as session:
        ended = call("why", "--policy", "--data", place)
        assert ended.code == 0, ended.err
        # On a busy machine "now" is a while ago.
        assert re.search(r"follows tls, since (now|.* ago), by start", ended.out)
        assert "no portfolio chooses it" in ended.out
        ended = call("profile", "portfolio:throughput:fifo/fair", "--data", place)
        assert ended.code == 0, ended.err
        assert "follows fifo" in ended.out
        assert session.portfolio["objective"] == "throughput"
        assert 'for "throughput"' in call("why", "--policy", "--data", place).out
        wrong = call("profile", "portfolio:hurry", "--data", place)
        assert wrong.code == 2
        assert "unknown objective 'hurry'" in wrong.err
        wrong = call("why", "some-1", "--policy", "--data", place)
        assert wrong.code == 2
        assert "leave some-1 out" in wrong.err
