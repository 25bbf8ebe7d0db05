"""Writing figures: the two renderers, and what may go wrong."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from queryard.core.commands import Finish, Launch
from queryard.core.errors import QueryardError
from queryard.core.events import NodeJoined, QuerySubmitted, TaskFinished
from queryard.core.journal import Journal, Step
from queryard.core.model import Job, Node, Phase, Query, TaskId
from queryard.figures import FigureRun, check_figure_path, save, save_figure

REFERENCES = {"ideal sharing": {"a": 1.0}}


@pytest.fixture
def runs() -> Sequence[FigureRun]:
    query = Query("a", jobs=(Job("m", map=Phase(1)),))
    steps = [
        Step(
            0.0,
            (NodeJoined(0.0, Node("n", 2)), QuerySubmitted(0.0, query)),
            (Launch(0, "n", (TaskId("a/m", "map", 0),)),),
        ),
        Step(3.0, (TaskFinished(3.0, 0),), (Finish("a"),)),
    ]
    return [FigureRun("fifo", Journal(steps=steps)), FigureRun("none", Journal())]


def test_a_page_holds_all_it_needs(runs: Sequence[FigureRun], tmp_path: Path) -> None:
    path = tmp_path / "out.html"
    save_figure(str(path), runs, REFERENCES, title="A title")
    page = path.read_text(encoding="utf-8")
    assert "<script src=" not in page
    for text in (
        "A title",
        "fifo: the query on each slot",
        "ideal sharing (mean 1 s)",
        "m0: 0 to 3 s",
    ):
        assert text in page


def test_the_same_runs_give_the_same_page(runs: Sequence[FigureRun], tmp_path: Path) -> None:
    pages = [tmp_path / "one.html", tmp_path / "two.html"]
    for path in pages:
        save_figure(str(path), runs)
    assert pages[0].read_bytes() == pages[1].read_bytes()


@pytest.mark.parametrize(
    ("ending", "signature"), [("png", b"\x89PNG"), ("PDF", b"%PDF"), ("svg", b"<?xml")]
)
def test_an_image_is_what_its_ending_says(
    runs: Sequence[FigureRun], tmp_path: Path, ending: str, signature: bytes
) -> None:
    path = tmp_path / f"out.{ending}"
    save_figure(str(path), runs, REFERENCES)
    assert path.read_bytes().startswith(signature)


def test_the_legend_of_responses_in_an_image_is_beside_them(runs: Sequence[FigureRun]) -> None:
    figures = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", lambda figure, *_, **__: figures.append(figure))
        save_figure("out.png", runs, REFERENCES)
    (figure,) = figures
    figure.draw_without_rendering()
    upper, lower = figure.subfigs
    assert upper.legends[0].get_window_extent().x0 >= upper.axes[0].get_window_extent().x1
    labels = [axes.get_xlabel() for axes in lower.axes]
    assert labels == ["", "", *["time since the first submission (s)"] * 2]  # one axis: one label


def test_names_with_dollars_are_no_formulas(runs: Sequence[FigureRun], tmp_path: Path) -> None:
    path = tmp_path / "out.svg"
    named = [FigureRun("$x^{$", runs[0].journal), runs[1]]
    save_figure(str(path), named, {"$y_{$": {"a": 1.0}}, title="5 $ and 6 $")
    image = path.read_text(encoding="utf-8")
    for text in ("5 $ and 6 $", "$x^{$", "$y_{$"):
        assert text in image


def test_an_image_has_its_texts(runs: Sequence[FigureRun], tmp_path: Path) -> None:
    path = tmp_path / "out.svg"
    save_figure(str(path), runs, REFERENCES)
    image = path.read_text(encoding="utf-8")
    for text in ("2 policies", "fifo: the query on each slot", "response time (s)", "nothing ran"):
        assert text in image


@pytest.mark.parametrize("path", ["out.jpeg", "out", "out.html.gz"])
def test_an_unknown_ending_names_the_valid_ones(path: str) -> None:
    with pytest.raises(QueryardError, match=r"valid: \.html, \.png, \.svg, \.pdf"):
        check_figure_path(path)
    with pytest.raises(QueryardError, match="unknown ending"):
        save_figure(path, [])


@pytest.mark.parametrize(("path", "library"), [("f.html", "plotly"), ("f.png", "matplotlib")])
def test_a_missing_library_names_the_remedy(
    monkeypatch: pytest.MonkeyPatch, path: str, library: str
) -> None:
    monkeypatch.setattr(save, "find_spec", lambda name: None)
    with pytest.raises(QueryardError, match=rf"{library}.*pip install {library}"):
        check_figure_path(path)


@pytest.mark.parametrize("ending", ["html", "png"])
def test_a_place_that_cannot_be_written_is_named(
    runs: Sequence[FigureRun], tmp_path: Path, ending: str
) -> None:
    path = str(tmp_path / "nowhere" / f"out.{ending}")
    with pytest.raises(QueryardError, match=r"nowhere.*No such file"):
        save_figure(path, runs)


def test_the_libraries_are_loaded_only_to_draw() -> None:
    code = (
        "import sys, queryard.figures; "
        "print([name for name in ('plotly', 'matplotlib', 'numpy') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
