"""`queryard accuracy`: predictions of a history beside what came."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from queryard.core.commands import Launch
from queryard.core.events import EstimateChanged, QuerySubmitted, TaskFinished
from queryard.core.journal import Step
from queryard.core.model import Job, Phase, Query, TaskId
from queryard.history import AskedRow, EndedRow, History, SessionRow

SESSION = "0f3a9c2b7d11"


def asked(number: int, **changes: object) -> AskedRow:
    values: dict[str, object] = {
        "query": f"{SESSION}-{number}",
        "time_s": float(number),
        "sql": f"SELECT {number} FROM t",
        "template": f"select ? from t{number % 3}",
        "tenant": "default",
        "priority": 0.0,
        "deadline_s": None,
        "plan": "native",
        "memory_bytes": 0,
        "predicted_work_s": 4.0,
        "predicted_memory_bytes": None,
        "predicted_by": "bytes",
    }
    return AskedRow(**(values | changes))  # type: ignore[arg-type]


def ended(number: int, work_s: float, foreseen_s: float | None, part: str = "join") -> EndedRow:
    end_s = number + 0.5
    base = (f"{SESSION}-{number}", end_s, end_s - 0.2, "finished", "", work_s, 1.0, None, 1, 0.0)
    if foreseen_s is None:
        return EndedRow(*base)
    return EndedRow(*base, foreseen_s, 1.2, "plan", part)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve queries: five foreseen, five off by two, a twin and an old one without an interval."""
    history = History.open(tmp_path / ".queryard" / "history.sqlite")
    profile = {"name": "fifo", "order": "fifo"}
    history.begin(SessionRow(SESSION, time.time() - 60.0, "0.1", 1, 2, 10**9, {}, profile))
    for number in range(1, 11):
        history.asked(asked(number))
        off = 1.0 if number <= 5 else 2.0
        history.ended(ended(number, float(number), number * off, "join" if number < 9 else "read"))
    history.asked(asked(11, twin_of=f"{SESSION}-1"))
    history.ended(ended(11, 1.0, 50.0))
    history.asked(asked(12))
    history.ended(ended(12, 1.0, None))
    _staged(history, f"{SESSION}-13")
    history.close()
    assert history.error is None
    return tmp_path


def _staged(history: History, query: str) -> None:
    """A staged query of one job with two tasks of 3 s, estimated at 1 s each."""
    history.asked(asked(13, plan="staged"))
    job = f"{query}/j1"
    spec = Query(query, (Job("j1", operator="groupby", map=Phase(2)),), submit_s=13.0)
    submitted = (QuerySubmitted(13.0, spec), EstimateChanged(13.0, job, map_s=1.0))
    tasks = [Launch(place, "local", (TaskId(job, "map", place),)) for place in range(2)]
    history.step(Step(13.0, submitted, tuple(tasks)))
    history.step(Step(16.0, (TaskFinished(16.0, 0), TaskFinished(16.0, 1)), ()))


def test_figures_that_can_be_checked_on_paper(call, folder: Path) -> None:
    done = call("accuracy", "--data", folder, "--json")
    found = json.loads(done.out)
    assert (found["queries"], found["judged"]) == (13, 11)
    rows = {row["name"].strip(): row for row in found["overall"]}
    last = rows["at last"]
    assert (last["predictions"], last["median"], last["worst"]) == (11, 2.0, 4.0)
    by_plan = rows["by plan"]
    assert (by_plan["predictions"], by_plan["median"], by_plan["bias"]) == (10, 1.5, 1.5)
    # An interval of 1.2 ** 2.44 holds what is off by 1, and not what is off by 2.
    assert by_plan["within"] == 0.5
    assert by_plan["correlation"] == pytest.approx(1.0)
    assert rows["by bytes"]["within"] is None
    assert rows["at first"]["worst"] == 4.0
    classes = {row["name"]: row for row in found["classes"]}
    assert classes["mostly join"]["predictions"] == 8
    assert (classes["mostly read"]["median"], classes["staged groupby"]["median"]) == (2, 3)
    assert sum(row["predictions"] for row in found["templates"]) == 11
    assert sum(period["accuracy"]["predictions"] for period in found["periods"]) == 11


def test_tables_and_a_picture(call, folder: Path) -> None:
    picture = folder / "accuracy.png"
    done = call("accuracy", "--history", folder / ".queryard" / "history.sqlite",
                "--figure", picture, "--worst", 2)  # fmt: skip
    for text in (
        "11 of 13 queries",
        "by plan",
        "mostly join",
        "Over time",
        "staged groupby",
    ):
        assert text in done.out
    assert done.out.count("select ? from t") == 2
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["--least", "1000"], "none of 13 queries there can be judged"),
        (["--figure", "a.html"], "as an image only"),
        (["--figure", "a.gif"], "unknown ending"),
        (["--session", "zz"], "there is no session"),
    ],
)
def test_mistakes(call, folder: Path, monkeypatch, args: list[str], problem: str) -> None:
    monkeypatch.chdir(folder)
    done = call("accuracy", *args)
    assert done.code != 0
    assert problem in done.err


def test_no_history(call, tmp_path: Path) -> None:
    done = call("accuracy", "--data", tmp_path)
    assert done.code != 0
    assert "there is no history" in done.err
