"""Runs that do not end are an error that says which queries are left."""

from __future__ import annotations

from dataclasses import replace

import pytest

from queryard.core.errors import QueryardError
from queryard.sim import SimResult, simulate
from research import trials
from research.tls.lodfa import alone_setting


def test_a_run_that_does_not_end_says_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(*args: object, **kwargs: object) -> SimResult:
        run = simulate(*args, **kwargs)  # type: ignore[arg-type]
        return replace(run, ends={}, unfinished=1)

    monkeypatch.setattr(trials, "simulate", cut)
    message = r"under fifo: 1 of 1 queries never ended \(Q17\)"
    with pytest.raises(QueryardError, match=message):
        alone_setting("Q17", 0, scale_gb=10.0).simulate({"name": "fifo"}, 0)


def test_only_a_few_of_many_are_named() -> None:
    setting = alone_setting("Q17", 0, scale_gb=10.0)
    (arrival,) = setting.workload.arrivals
    many = tuple(
        replace(arrival, query=replace(arrival.query, id=f"q{number}")) for number in range(9)
    )
    setting = replace(setting, workload=replace(setting.workload, arrivals=many))
    run = SimResult(None, {"q0": 1.0}, {"q1": "lost"}, 7, 0, 0.0)  # type: ignore[arg-type]
    with pytest.raises(QueryardError, match=r"7 of 9 queries never ended \(q2, q3, q4, q5, q6 …\)"):
        setting.check_ended(run, "fair")
