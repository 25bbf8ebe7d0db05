"""The page while experiments are still running, and what several of them say together."""

from __future__ import annotations

from pathlib import Path

import pytest

from queryard.core.errors import QueryardError
from research import EXPERIMENTS, JOINTS, Experiment, Finding, Joint, Outcome
from research.durations import TAKES
from research.report import LEGEND, Report, markdown
from research.sections import (
    Section,
    failed_section,
    joint_sections,
    section_of,
)

DONE = Outcome((Finding("it", "1", "2", None),), material=("a run",))


def section(name: str, outcome: Outcome = DONE) -> Section:
    made = Experiment(name, f"About {name}", "nowhere", lambda options: outcome)
    return section_of(made, outcome, 3, 2.0)


def test_the_page_grows_and_is_replaced_whole(tmp_path: Path) -> None:
    report = Report(tmp_path / "out")
    report.write([section("one")], "Ran. 1 of 2 have ended.")
    first = report.page.read_text()
    report.write([section("one"), section("two")], "Ran.")
    second = report.page.read_text()
    assert "About one" in first
    assert "About two" not in first
    assert "1 of 2 have ended" in first
    assert "About two" in second
    assert LEGEND in second
    assert "asked for 3 seeds" in second
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["index.html"]


def test_a_page_that_cannot_be_written_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = Report(tmp_path)
    report.write([section("one")], "Ran.")
    before = report.page.read_text()

    def full(self: Path, text: str, encoding: str) -> int:
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="no space"):
        report.write([section("one"), section("two")], "Ran.")
    assert report.page.read_text() == before


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (QueryardError("q7 never\nended"), "q7 never ended"),
        (ValueError("<odd>"), "ValueError: <odd>"),
    ],
)
def test_a_failure_is_on_the_page_with_its_reason(
    tmp_path: Path, error: Exception, told: str
) -> None:
    failed = failed_section(EXPERIMENTS["tls-lodfa"], error, 5.0)
    page = Report(tmp_path).write([failed], "Ran.").read_text()
    assert "(failed)" in page
    assert f"Failed: {told.replace('<', '&lt;').replace('>', '&gt;')}" in page
    assert f"Failed: {told}." in markdown(failed)


def test_experiments_are_judged_together_once_all_have_ended() -> None:
    joint = Joint("both", "Both", "one and two", ("one", "two"), lambda found: found[0])
    one, two, other = map(section, ("one", "two", "other"))
    assert joint_sections([joint], [one]) == []
    (found,) = joint_sections([joint], [one, other, two])
    assert (found.name, found.command) == ("both", "python -m research one two")
    # It has been said, and is not said again after the next one.
    assert joint_sections([joint], [one, two, found, other]) == []


def test_experiments_without_runs_are_not_judged_together() -> None:
    joint = Joint("both", "Both", "one and two", ("one", "two"), lambda found: found[0])
    left_out = section("two", Outcome(notes=("left out",)))
    assert joint_sections([joint], [section("one"), left_out]) == []


def test_names_of_joints_and_times_are_those_of_experiments() -> None:
    assert set(TAKES) <= set(EXPERIMENTS)
    for joint in JOINTS:
        assert set(joint.of) <= set(EXPERIMENTS)
        assert joint.name not in EXPERIMENTS
