"""Policies and the portfolio on recorded workloads: what is drawn, what is said of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from queryard.core.errors import QueryardError
from queryard.policies.profiles import PROFILES
from research import EXPERIMENTS, JOINTS, Outcome, RunOptions
from research.outcome import Verdict
from research.recorded import comparison
from research.recorded.comparison import LEFT_OUT, POLICIES, Compared, Ran, left_out
from research.recorded.verdict import (
    PERFECT,
    best_fixed,
    hindsight_ratios,
    together,
    verdict,
)
from research.recorded.workloads import (
    BINS,
    FACEBOOK_2009,
    Case,
    days,
    spark_stock,
    streams,
)

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
    options = RunOptions(seeds=2, size=0.3, traces=traces)
    cases = list(streams(options))
    assert [(case.title, case.seed) for case in cases] == [
        ("Spark, 70%", 0),
        ("Spark, 70%", 1),
        ("Spark, 95%", 0),
        ("Spark, 95%", 1),
    ]
    again = list(streams(options))
    for case, same in zip(cases, again, strict=True):
        arrivals = case.setting.workload.arrivals
        assert arrivals == same.setting.workload.arrivals
        assert len(arrivals) == 30
        assert sum(arrival.query.deadline_s is not None for arrival in arrivals) == 9
        assert {arrival.size_bin for arrival in arrivals} <= {name for name, _ in BINS}
    assert cases[0].setting.workload.arrivals != cases[1].setting.workload.arrivals


def test_days_are_replayed_as_they_were(traces: Path) -> None:
    first, second = days(RunOptions(seeds=1, traces=traces))
    assert (first.load, second.load) == (0.7, 0.95)
    assert len(first.setting.workload.arrivals) == 100
    assert len(first.setting.nodes) >= len(second.setting.nodes)
    (early, _) = days(RunOptions(seeds=1, traces=traces, size=1 / 48))
    assert 0 < len(early.setting.workload.arrivals) < 100


def test_a_seed_of_a_day_draws_its_deadlines(traces: Path) -> None:
    cases = list(days(RunOptions(seeds=2, traces=traces)))
    assert [(case.load, case.seed) for case in cases] == [(0.7, 0), (0.7, 1), (0.95, 0), (0.95, 1)]
    first, second = (case.setting.workload.arrivals for case in cases[:2])
    assert [a.query.submit_s for a in first] == [a.query.submit_s for a in second]
    assert [a.query.deadline_s for a in first] != [a.query.deadline_s for a in second]


def test_days_are_run_once_unless_more_is_asked_for() -> None:
    assert EXPERIMENTS["recorded-days"].usual_seeds == 1
    assert EXPERIMENTS["recorded-streams"].usual_seeds == 5


def test_a_log_that_cannot_be_read_is_not_passed_over(traces: Path) -> None:
    whole = len(spark_stock(traces))
    logs = traces / "spark-eventlogs" / "some"
    (logs / ".one.gz.crc").write_bytes(b"crc\x00")
    no_job = '{"Event":"SparkListenerLogStart","Spark Version":"3.1.1"}\n'
    (logs / "without-jobs").write_text(no_job)
    assert len(spark_stock(traces)) == whole > 0
    (logs / "broken").write_text(no_job + "{ not JSON\n" + no_job)
    with pytest.raises(QueryardError, match="broken"):
        spark_stock(traces)


def test_every_profile_is_compared_or_said_to_be_left_out() -> None:
    unsaid = [name for names in LEFT_OUT for name in names]
    missing = set(PROFILES) - {*unsaid, *POLICIES}
    assert not missing, f"neither in POLICIES nor in LEFT_OUT: {', '.join(sorted(missing))}"
    assert sorted([*unsaid, *POLICIES]) == sorted(PROFILES)
    for name in ("tumm", "static", "s3", "capacity"):
        assert f"{name}," in left_out()


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer policies, for the sake of time; those that charts show."""
    monkeypatch.setattr(comparison, "POLICIES", ("fifo", "fair", "tls", "marshal", "srtf"))
    monkeypatch.setattr(comparison, "CANDIDATES", ("tls", "fair"))


def test_what_comes_out_of_each_and_of_both(traces: Path, few: None) -> None:
    (joint,) = JOINTS
    sizes = {"recorded-streams": 0.15, "recorded-days": 0.01}  # 15 queries, and about 30
    outcomes = [
        EXPERIMENTS[name].run(RunOptions(seeds=1, size=sizes[name], traces=traces))
        for name in joint.of
    ]
    for name, outcome in zip(joint.of, outcomes, strict=True):
        check_outcome(name, outcome)
    found = joint.judge(outcomes)
    assert [row[0] for row in found.tables[0].rows] == [
        *("Spark, 70%", "Spark, 95%", "FB-2009, 70%", "FB-2009, 95%")
    ]
    assert "of 4 (" in found.findings[1].ours


def check_outcome(name: str, outcome: Outcome) -> None:
    assert len(outcome.findings) == 4
    assert all(finding.verdict is not None for finding in outcome.findings)
    tables = [table for table in outcome.tables if table.columns[0] == "policy"]
    assert len(tables) == 2
    assert all(table.title.endswith("1 seed") for table in tables)
    assert left_out() in outcome.notes
    assert ("Ran with 1 seed" in outcome.notes[0]) == (name == "recorded-days")
    for table in tables:
        policies = [row[0] for row in table.rows]
        assert policies[5:7] == ["portfolio (response)", "portfolio (mixed)"]
        assert policies[7:] == ["portfolio (mixed), fair first"] * (name == "recorded-streams")
        of_srpt = [float(row[3]) for row in table.rows]
        assert min(of_srpt) > 0.9
    assert outcome.charts


def test_without_traces_it_says_so() -> None:
    for name in ("recorded-streams", "recorded-days"):
        assert "--traces" in EXPERIMENTS[name].run(RunOptions()).notes[0]


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


# --- the verdict over any runs ---------------------------------------------------------------


def compared(name: str, own: float, **fixed: float) -> Compared:
    """A run with so much on both goals."""

    def ran(score: float) -> Ran:
        return Ran(None, {"response": score, "mixed": score}, 1.0, 1)  # type: ignore[arg-type]

    runs = {policy: ran(score) for policy, score in fixed.items()}
    runs |= {f"portfolio ({goal})": ran(own) for goal in ("response", "mixed")}
    return Compared(Case(name, 0.7, None, 0), runs, {})  # type: ignore[arg-type]


def test_the_best_fixed_policy_is_the_best_over_all_runs() -> None:
    # fifo is best in two of three runs, but by its geometric mean tls is ahead: 2 to 2.71.
    runs = [
        compared("Spark", 2.0, fifo=1.0, tls=2.0),
        compared("Spark", 2.0, fifo=1.0, tls=2.0),
        compared("FB-2009", 1.0, fifo=20.0, tls=2.0),
    ]
    assert best_fixed(runs, "mixed") == "tls"
    of_fixed, of_hindsight = verdict(runs)[:2]
    assert "(tls)" in of_fixed.what
    # Of logarithms: -0.231 ± 4.303 x 0.231.
    assert of_fixed.ours == "0.7937 (0.2937 to 2.1449)"
    assert of_fixed.verdict is Verdict.REACHED
    # In hindsight it is 2, 2 and 0.5 times as much as the best of the run.
    assert of_hindsight.ours == "33% of 3 (geometric mean 1.26)"
    assert of_hindsight.verdict is Verdict.MISSED


def test_the_interval_of_a_single_run_is_not_told() -> None:
    assert verdict([compared("FB-2009", 2.0, fifo=1.0)])[0].ours == "2.0000"


def test_a_perfect_score_does_not_make_a_policy_the_best_over_all() -> None:
    runs = [compared("a", 1.0, fifo=0.0, tls=1e-6), compared("b", 1.0, fifo=9e9, tls=1.0)]
    assert best_fixed(runs, "response") == "tls"


def test_streams_and_days_have_one_verdict() -> None:
    streamed = Outcome(material=tuple(compared("Spark", 1.0, fifo=1.0) for _ in range(3)))
    day = Outcome(material=(compared("FB-2009", 2.0, fifo=1.0),))
    found = together([streamed, day])
    assert len(found.findings) == 4
    assert found.findings[0].ours == "1.1892 (0.6851 to 2.0642)"
    assert found.findings[1].ours.startswith("75% of 4")
    (table,) = found.tables
    assert table.rows == (("Spark, 70%", "3"), ("FB-2009, 70%", "1"))
