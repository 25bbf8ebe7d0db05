"""Policies and the portfolio on recorded workloads: what is drawn, what is said of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from queryard.experiments import EXPERIMENTS, Outcome, Wish
from queryard.experiments.recorded import comparison
from queryard.experiments.recorded.comparison import Compared, Ran
from queryard.experiments.recorded.report import PERFECT, hindsight_ratios
from queryard.experiments.recorded.workloads import BINS, FACEBOOK_2009, days, streams

EXAMPLE = Path(__file__).parents[2] / "examples" / "spark-eventlog.gz"


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """A folder like that of public traces: one Spark log, an hour of a SWIM day."""
    logs = tmp_path / "spark-eventlogs" / "some"
    logs.mkdir(parents=True)
    shutil.copy(EXAMPLE, logs / "one.gz")
    (logs / "empty.gz").write_bytes(b"")
    swim = tmp_path / FACEBOOK_2009
    swim.parent.mkdir()
    rows = [
        f"job{n}\t{n * 30}\t{30 if n else 0}\t{(n % 7 + 1) * 200_000_000}\t{n * 1000}\t{n * 500}"
        for n in range(100)
    ]
    swim.write_text("\n".join(rows) + "\n")
    return tmp_path


def test_streams_are_drawn_from_what_was_recorded(traces: Path) -> None:
    wish = Wish(seeds=2, size=0.3, traces=traces)
    cases = list(streams(wish))
    assert [(case.title, case.seed) for case in cases] == [
        ("Spark, 70%", 0),
        ("Spark, 70%", 1),
        ("Spark, 95%", 0),
        ("Spark, 95%", 1),
    ]
    again = list(streams(wish))
    for case, same in zip(cases, again, strict=True):
        arrivals = case.setting.workload.arrivals
        assert arrivals == same.setting.workload.arrivals
        assert len(arrivals) == 30
        assert sum(arrival.query.deadline_s is not None for arrival in arrivals) == 9
        assert {arrival.size_bin for arrival in arrivals} <= {name for name, _ in BINS}
    assert cases[0].setting.workload.arrivals != cases[1].setting.workload.arrivals


def test_days_are_replayed_as_they_were(traces: Path) -> None:
    first, second = days(Wish(traces=traces))
    assert (first.load, second.load) == (0.7, 0.95)
    assert len(first.setting.workload.arrivals) == 100
    assert len(first.setting.nodes) >= len(second.setting.nodes)
    (early, _) = days(Wish(traces=traces, size=1 / 48))
    assert 0 < len(early.setting.workload.arrivals) < 100


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer policies, for the sake of time; those that charts show."""
    monkeypatch.setattr(comparison, "POLICIES", ("fifo", "fair", "tls", "marshal", "srtf"))
    monkeypatch.setattr(comparison, "CANDIDATES", ("tls", "fair"))


@pytest.mark.parametrize("name", ["recorded-streams", "recorded-days"])
def test_an_outcome(name: str, traces: Path, few: None) -> None:
    outcome: Outcome = EXPERIMENTS[name].run(Wish(seeds=1, size=0.2, traces=traces))
    assert len(outcome.findings) == 4
    assert all(finding.agrees is not None for finding in outcome.findings)
    tables = [table for table in outcome.tables if table.columns[0] == "policy"]
    assert len(tables) == 2
    for table in tables:
        policies = [row[0] for row in table.rows]
        assert policies[-2:] == ["portfolio (response)", "portfolio (mixed)"]
        of_srpt = [float(row[3]) for row in table.rows]
        assert min(of_srpt) > 0.9
    assert outcome.charts


def test_without_traces_it_says_so() -> None:
    for name in ("recorded-streams", "recorded-days"):
        assert "--traces" in EXPERIMENTS[name].run(Wish()).notes[0]


def test_the_best_in_hindsight_may_have_nothing_against_it() -> None:
    def ran(score: float) -> Ran:
        return Ran(None, {"mixed": score}, 1.0, 1)  # type: ignore[arg-type]

    def ratio(own: float, fixed: float) -> float:
        runs = {"fifo": ran(fixed), "portfolio (mixed)": ran(own)}
        (found,) = hindsight_ratios([Compared(None, runs, {})], "mixed")  # type: ignore[arg-type]
        return found

    assert ratio(3.0, 2.0) == 1.5
    assert ratio(0.0, 0.0) == 1.0
    assert ratio(1.0, 0.0) == PERFECT
    assert ratio(0.0, 1.0) == 1 / PERFECT
