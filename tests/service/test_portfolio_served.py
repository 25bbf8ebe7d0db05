"""The portfolio of a server: what it costs is told, and so is a worker that cannot start."""

from __future__ import annotations

import io
import json
import logging
from typing import Any

import pytest

pytest.importorskip("fastapi")

from waiting import wait_until

from queryard.live.background import PROBLEMS_KEPT, Background
from queryard.live.choosing import asking
from queryard.service.logs import LOGGER, JsonLines
from queryard.service.own_cpu import own_cpu
from queryard.service.query_log import QueryLog
from service.http.serving import a_server

PROFILE = {
    "portfolio": {
        "candidates": ["fifo", "swrd"],
        "least_s": 0.05,
        "period_s": 0.1,
        "share": 1.0,
        "late_s": 20.0,
    }
}
SLOW = "SELECT count(*) FROM range(100000000000) AS r(i) WHERE hash(i) % 7 = {}"


def crowded(session: Any) -> list[Any]:
    return [session.submit(SLOW.format(number)) for number in range(3)]


def test_its_worker_is_in_the_servers_own_cost(tmp_path):
    given = {"profile": PROFILE, "slots": 1}
    with a_server(tmp_path, session=given) as server, server.client("root") as root:
        session = server.yard.session
        policy = session.host.policy
        handles = crowded(session)
        wait_until(lambda: any(d["dropped"] is None for d in session.policy_decisions()))
        beside_s = policy.beside_cpu_s
        assert 0.0 < beside_s <= policy.cpu_s + 1e-6
        assert own_cpu(beside_s)["portfolio"] >= beside_s
        told = root.get("/metrics").text
        assert 'queryard_own_cpu_seconds_total{part="portfolio"}' in told
        # What a portfolio has cost stays when it is left.
        session.use_profile("fair")
        assert policy.beside_cpu_s >= beside_s
        for handle in handles:
            handle.cancel()


def test_a_worker_that_cannot_start_is_in_the_decisions_and_in_the_log(tmp_path, monkeypatch):
    def fails(*_given: Any, **_more: Any) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(asking, "Process", fails)
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    LOGGER.addHandler(handler)
    try:
        with a_server(tmp_path, session={"profile": PROFILE, "slots": 1}) as server:
            session = server.yard.session
            session.host.tell_problems(QueryLog(redacts=False).problem)
            handles = crowded(session)
            wait_until(lambda: bool(session.policy_decisions()))
            (told, *_) = session.policy_decisions()
            assert told["dropped"] == "the worker could not be started (no more processes)"
            wait_until(lambda: "no more processes" in stream.getvalue())
            for handle in handles:
                handle.cancel()
    finally:
        LOGGER.removeHandler(handler)
    (line,) = [
        each
        for each in map(json.loads, stream.getvalue().splitlines())
        if "problem" in each["event"]
    ]
    assert (line["level"], line["problem"]) == ("warning", "WorkerNotStarted")
    assert line["error"] == "portfolio: the worker could not be started (no more processes)"


def test_problems_are_told_once_each_and_those_of_before_as_well():
    background = Background()
    heard: list[tuple[str, str]] = []
    for text in ("one", "one", "two"):
        background.problem(ValueError(text))
    background.tell_problems(lambda kind, text: heard.append((kind, text)))
    background.problem(ValueError("two"))
    background.problem(KeyError("three"))
    assert heard == [("ValueError", "one"), ("ValueError", "two"), ("KeyError", "'three'")]
    for number in range(2 * PROBLEMS_KEPT):
        background.problem(ValueError(str(number)))
    assert len(background.problems) == len(heard) == PROBLEMS_KEPT
