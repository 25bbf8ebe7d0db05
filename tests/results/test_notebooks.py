"""Answers in notebooks and debuggers: shown once, without printing, and nothing is used up."""

from __future__ import annotations

import random
import re
import sys
import types

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from service.anywhere import PLACES, a_session

import queryard
from queryard.core.errors import QueryardError
from queryard.results.answer import Answer
from queryard.results.streams import ResultStream


@pytest.fixture(scope="module")
def qy():
    with queryard.connect(slots=2, memory="512MB") as session:
        yield session


@pytest.fixture(scope="module", params=PLACES)
def anywhere(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    with a_session(request.param, folder, slots=2, memory="512MB") as session:
        yield session


class Notebook:
    """Stands for IPython where rich looks for it, and gathers what is displayed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.displayed: list[object] = []
        display = types.ModuleType("IPython.display")
        display.display = self.displayed.append  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
        monkeypatch.setitem(sys.modules, "IPython.display", display)
        monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
        monkeypatch.setattr("rich.jupyter.display", lambda *parts: self.displayed.append(parts))

    def formats(self, shown: object) -> dict[str, str]:
        """One cell's output, as IPython asks for it: each form is made, the best one is shown."""
        found = {"text/plain": repr(shown)}
        if (html := getattr(shown, "_repr_html_", None)) is not None:
            found["text/html"] = html()
        return found


def test_a_notebook_shows_an_answer_once(qy, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = Notebook(monkeypatch)
    answer = qy.sql("SELECT 42 AS answer")
    found = notebook.formats(answer)
    assert "answer" in found["text/plain"]
    assert "42" in found["text/plain"]
    assert found["text/html"].count("<table") == 1
    assert notebook.displayed == []
    assert capsys.readouterr().out == ""
    assert answer.fetchall() == [(42,)]


def test_a_notebook_shows_an_explanation_once(qy, capsys, monkeypatch) -> None:
    notebook = Notebook(monkeypatch)
    assert "native" in str(qy.explain("SELECT 42 AS answer"))
    assert notebook.displayed == []
    assert capsys.readouterr().out == ""


def test_showing_in_a_notebook_prints_text(qy, capsys, monkeypatch) -> None:
    notebook = Notebook(monkeypatch)
    qy.sql("SELECT 42 AS answer").show()
    assert "42" in capsys.readouterr().out
    assert notebook.displayed == []


def test_a_preview_waits_for_no_slow_query(qy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queryard.results.answer.PREVIEW_S", 0.01)
    stream = ResultStream()
    answer = Answer(stream, lambda: None)
    assert "the query runs" in repr(answer)
    stream.start(pa.schema([("n", pa.int64())]), ("BIGINT",))
    stream.put(pa.record_batch({"n": [7]}))
    assert "the query runs" in repr(answer)
    stream.finish()
    assert "7" in repr(answer)
    assert answer.fetchall() == [(7,)]


def test_a_failed_query_in_a_notebook_is_escaped() -> None:
    stream = ResultStream()
    stream.fail(QueryardError("no column <b>"))
    assert Answer(stream, lambda: None)._repr_html_() == "<pre>no column &lt;b&gt;</pre>"


# --- queries on their way ------------------------------------------------------------------------


class Cell:
    """One output that is changed, as IPython's `display(…, display_id=True)` gives it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shown: list[str] = []
        display = types.ModuleType("IPython.display")
        display.HTML = str  # type: ignore[attr-defined]
        display.display = self._display  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
        monkeypatch.setitem(sys.modules, "IPython.display", display)

    def _display(self, first: str, display_id: bool) -> Cell:
        assert display_id
        self.shown.append(first)
        return self

    def update(self, text: str) -> None:
        self.shown.append(text)


def test_a_handle_shows_its_progress_and_then_its_rows(anywhere, monkeypatch) -> None:
    cell = Cell(monkeypatch)
    handle = anywhere.submit("SELECT count(*) AS counted FROM range(200000000)")
    handle._ipython_display_()
    assert "<progress" in cell.shown[0]
    assert handle.id in cell.shown[0]
    assert "counted" in cell.shown[-1]
    assert "200000000" in cell.shown[-1]
    failed = anywhere.submit("SELECT 'x'::INTEGER")
    failed._ipython_display_()
    assert "Conversion Error" in cell.shown[-1]


def test_an_interrupt_cancels_a_query_that_is_shown(anywhere, monkeypatch) -> None:
    cell = Cell(monkeypatch)
    endless = "SELECT sum(a.range * b.range) FROM range(1000000000) a, range(1000000) b"
    handle = anywhere.submit(endless)

    def interrupted(timeout: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(handle, "result", interrupted)
    handle._ipython_display_()
    assert "cancelled" in cell.shown[-1]
    assert handle.wait("20 s")
    assert handle.status == "cancelled"


def test_online_answers_take_each_others_place(anywhere, monkeypatch) -> None:
    cell = Cell(monkeypatch)
    anywhere.online("SELECT 6 * 7 AS answer")._ipython_display_()
    assert "42" in cell.shown[-1]
    anywhere.online("SELECT avg(nothing)")._ipython_display_()
    assert "nothing" in cell.shown[-1]


def test_the_error_bars_of_online_answers_shrink_and_are_gone_at_the_end(
    tmp_path, monkeypatch
) -> None:
    draw = random.Random(7)
    many = pa.table(
        {
            "g": [i % 2 for i in range(200_000)],
            "v": [float(draw.random() < 0.02) for _ in range(200_000)],
        }
    )
    pq.write_table(many, tmp_path / "many.parquet", row_group_size=2_000)
    cell = Cell(monkeypatch)
    sql = "SELECT g, sum(v) AS total FROM many GROUP BY g ORDER BY g"
    with queryard.connect(tmp_path, slots=2, history=False, statistics="off") as session:
        session.online(sql, every=0)._ipython_display_()
    widths = [[int(width) for width in re.findall(r"width:(\d+)px", shown)] for shown in cell.shown]
    with_bars = [found for found in widths if found]
    assert all(len(found) == 2 for found in with_bars), "one per group"
    assert len(with_bars) >= 2
    assert max(with_bars[-1]) < max(with_bars[0])
    assert "±" in cell.shown[-2]
    assert widths[-1] == []
    assert "exact" in cell.shown[-1]
