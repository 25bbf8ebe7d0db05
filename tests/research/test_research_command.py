"""Experiments on the command line."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import research
from queryard.core.errors import QueryardError
from queryard.figures import save
from research import Chart, Experiment, Finding, Joint, Outcome, RunOptions, interval
from research.bars import bar_panel
from research.outcome import Table
from research.terminal import parts_of


def test_what_there_is_and_how_long_it_takes(call):
    listed = call().out
    assert "predictors" in listed
    assert "takes" in listed
    assert "hours" in listed


def test_a_table_that_is_too_wide_goes_on_below_and_no_word_is_cut_short():
    columns = ("policy", *(f"slowdown, {name}" for name in ("small", "medium", "large")), "missed")
    rows = tuple(
        (name, "10,912", "3.14 (1.5 to 4.8)", "1", "2%") for name in ("edls-sh", "edls-pr")
    )
    table = Table("Scores", columns, rows)
    for width in (24, 40, 80):
        console = Console(width=width, file=io.StringIO(), record=True)
        for part in parts_of(console, table):
            console.print(part)
        shown = console.export_text()
        assert "…" not in shown
        assert max(map(len, shown.splitlines())) <= width
        # Each part has the policies, and every column is in one of them.
        assert shown.count("edls-sh") == shown.count("edls-pr") == 1 + shown.count("continued")
        assert shown.count("missed") == shown.count("large") == 1


def test_a_report(call, tmp_path: Path):
    ended = call("predictors", "--seeds", "1", "--report", str(tmp_path / "out"))
    assert ended.code == 0
    assert "The paper and ours" in ended.out
    page = (tmp_path / "out" / "index.html").read_text()
    told = "Ran with 1 seed and size 1. The notes were written for 5 seeds and size 1."
    assert told in " ".join(ended.out.split())
    assert told in page


def test_a_report_without_figures_is_refused_before_anything_runs(call, tmp_path, monkeypatch):
    monkeypatch.setattr(save, "find_spec", lambda name: None)
    ended = call("predictors", "--report", str(tmp_path / "out"))
    assert ended.code == 2
    assert "pip install matplotlib" in ended.err
    assert not ended.out


def test_recorded_workloads_must_be_named(call):
    ended = call("recorded-days")
    assert ended.code == 2
    assert "--traces" in ended.err


def test_mistakes(call, tmp_path: Path):
    for args, message in (
        (
            ("recorded-days", "--traces", str(tmp_path)),
            "holds nothing to replay in swim-facebook/",
        ),
        (("tls-measured",), "tls-measured replays recorded workloads"),
        (("all", "--report", str(Path(__file__))), "is a file; name a folder"),
        (("predictor",), "did you mean 'predictors'"),
        (("predictors", "--traces", str(tmp_path / "none")), "no such folder"),
    ):
        ended = call(*args)
        assert ended.code == 2
        assert message in " ".join(ended.err.split())


# --- several, of which one fails -------------------------------------------------------------


def found_by(options: RunOptions) -> Outcome:
    finding = Finding("it", "1", f"{options.seeds} asked for")
    return Outcome((finding,), notes=("noted",), material=("a run",))


def never_ends(options: RunOptions) -> Outcome:
    raise QueryardError("q7 never ended under fifo")


def breaks(options: RunOptions) -> Outcome:
    raise ZeroDivisionError("by nought")


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch):
    """Three experiments, the second as the test likes, and a verdict on the first and third."""

    def replaced(second=found_by) -> None:
        made = (
            Experiment("one", "The first", "nowhere", found_by),
            Experiment("two", "The second", "nowhere", second),
            Experiment("three", "The third", "nowhere", found_by, usual_seeds=1),
        )
        joint = Joint("both", "The first and third", "both", ("one", "three"), lambda of: of[0])
        monkeypatch.setattr(research, "EXPERIMENTS", {item.name: item for item in made})
        monkeypatch.setattr("research.session.JOINTS", (joint,))

    return replaced


@pytest.mark.parametrize(
    ("second", "reason"),
    [(never_ends, "q7 never ended under fifo"), (breaks, "ZeroDivisionError: by nought")],
)
def test_one_that_fails_does_not_stop_the_others(call, three, tmp_path: Path, second, reason):
    three(second)
    ended = call("all", "--report", tmp_path)
    assert ended.code == 1
    assert "1 of 3 experiments failed" in ended.err
    assert f"two: {reason}" in ended.err
    assert f"Failed: {reason}" in ended.out
    page = (tmp_path / "index.html").read_text()
    assert f"Failed: {reason}" in page
    assert "The third" in page
    assert "The first and third" in page
    assert "have ended" not in page
    assert ("Traceback" in ended.err) == (second is breaks)


def test_the_page_is_written_after_each_that_has_ended(call, three, tmp_path: Path):
    seen = []

    def looks(options: RunOptions) -> Outcome:
        seen.append((tmp_path / "index.html").read_text())
        return found_by(options)

    three(looks)
    assert call("all", "--report", tmp_path).code == 0
    assert "The first" in seen[0]
    assert "1 of 3 have ended" in seen[0]
    assert "The third" not in seen[0]


def test_a_single_one_that_fails_is_on_the_page_too(call, three, tmp_path: Path):
    three(never_ends)
    ended = call("two", "--report", tmp_path)
    assert ended.code == 2
    assert "q7 never ended" in ended.err
    assert "q7 never ended" in (tmp_path / "index.html").read_text()


def test_several_by_name_are_judged_together(call, three):
    three(never_ends)
    ended = call("three", "one", "--markdown")
    assert ended.code == 0
    assert "`python -m research one three`; both." in ended.out
    assert "The second" not in ended.out


def test_it_is_said_how_many_seeds_were_run_of_which(call, three):
    three()
    usual = " ".join(call("all").out.split())
    assert "Ran with 5 seeds (three: 1) and size 1." in usual
    assert "The notes were written" not in usual
    asked = " ".join(call("all", "--seeds", "3").out.split())
    assert "Ran with 3 seeds and size 1." in asked
    assert asked.count("3 asked for") == 4


# --- pictures --------------------------------------------------------------------------------


def drawn_by(options: RunOptions) -> Outcome:
    panel = bar_panel("Bing", "s", ["small"], {"fair": [interval([2.0])]})
    return replace(found_by(options), charts=(Chart("one", "How long", (panel,)),))


def test_charts_are_drawn_and_where_figures_are_is_said_last(call, three):
    three(drawn_by)
    lines = call("two").out.splitlines()
    assert any("█ 2" in line for line in lines)
    assert "How long" in lines
    assert "--report DIR" in lines[-1]
    assert "--report" not in call("one").out


def test_a_report_has_the_figures_and_markdown_no_pictures(call, three, tmp_path: Path):
    three(drawn_by)
    told = call("two", "--report", tmp_path).out
    assert "█" in told
    assert "--report" not in told
    assert (tmp_path / "one.png").exists()
    assert "█" not in call("two", "--markdown").out
