"""Experiments on the command line."""

from __future__ import annotations

from pathlib import Path


def test_what_there_is(call):
    assert "predictors" in call("experiment").out


def test_a_report(call, tmp_path: Path):
    ended = call("experiment", "predictors", "--seeds", "1", "--report", str(tmp_path / "out"))
    assert ended.code == 0
    assert "The paper and ours" in ended.out
    page = (tmp_path / "out" / "index.html").read_text()
    told = "Ran with 1 seed and size 1. The notes were written for 5 seeds and size 1."
    assert told in " ".join(ended.out.split())
    assert told in page


def test_recorded_workloads_must_be_named(call):
    ended = call("experiment", "recorded-days")
    assert ended.code == 2
    assert "--traces" in ended.err


def test_mistakes(call, tmp_path: Path):
    for args, message in (
        (("experiment", "recorded-days", "--traces", str(tmp_path)), "a folder of public traces"),
        (("experiment", "tls-measured"), "--traces"),
        (("experiment", "predictor"), "did you mean 'predictors'"),
        (("experiment", "predictors", "--traces", str(tmp_path / "none")), "no such folder"),
    ):
        ended = call(*args)
        assert ended.code == 2
        assert message in " ".join(ended.err.split())
