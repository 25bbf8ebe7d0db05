"""Native queries carry speed-up curves into the kernel, corrected by slots that idled."""

from __future__ import annotations

import json

from queryard.backends.protocol import RunReport, Usage
from queryard.core.model import JobId
from queryard.core.speedup import Speedup
from queryard.estimate.widths import Idling, expected_speedup
from queryard.estimate.work import Prediction
from queryard.live.estimates.widths import Widths

from .fake_host import FakeHost

IDLE = Idling(looks=400, beside=400, asleep=300)


def curve(host: FakeHost, query: str) -> Speedup:
    return host.coordinator.kernel.state.jobs[str(JobId(query, "native"))].speedup


def report(host: FakeHost, query: str, work_s: float, seen: Idling) -> None:
    usage = Usage(work_s, work_s, 0.0, 2, seen)
    host.post(RunReport(query, 0.5, None, {query: usage}))


def test_the_curve_of_a_query_follows_its_work_and_then_its_slots():
    host = FakeHost()
    query = host.submit(work_s=1.0)
    assert curve(host, query) == expected_speedup(1.0)
    report(host, query, 0.5, IDLE)
    assert curve(host, query).serial > 0.4


def test_a_template_remembers():
    widths, usual = Widths(), Prediction(1.0, None, "plan", 1.5)
    widths.learn("a", IDLE)
    assert widths.curve("a", usual, 1.0).serial > 0.4
    assert widths.curve("b", usual, 1.0) == expected_speedup(1.0)


def test_a_predicted_curve_counts_more_than_the_usual_one():
    predicted = Prediction(1.0, None, "plan", 1.5, Speedup(0.2, 4.0))
    assert Widths().curve("a", predicted, 1.0) == Speedup(0.2, 4.0)


def test_what_was_seen_of_templates_outlives_a_session():
    before, usual = Widths(), Prediction(1.0, None, "plan", 1.5)
    before.learn("a", IDLE)
    before.learn("b", IDLE)
    after = Widths()
    after.learn("b", Idling(looks=400, beside=400, asleep=0))
    after.recall(json.loads(json.dumps(before.learnt())))
    assert after.curve("a", usual, 1.0) == before.curve("a", usual, 1.0)
    assert after.curve("b", usual, 1.0).serial < before.curve("b", usual, 1.0).serial
    assert after.curve("c", usual, 1.0) == expected_speedup(1.0)
    # What was recalled and not asked for since is kept, too.
    again = Widths()
    again.recall(before.learnt())
    assert again.learnt() == before.learnt()
