"""Plans as pictures: where the boxes stand."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from queryard.core.errors import QueryardError
from queryard.figures.dag import BOX_HEIGHT, BOX_WIDTH, DagNode, _layout, save_dag


def node(name: str, *inputs: str) -> DagNode:
    return DagNode(name, "join" if inputs else "extract", inputs, (name, "~5 rows"))


DIAMOND = [node("a"), node("b", "a"), node("c", "a"), node("x"), node("d", "b", "c", "x")]


def test_readers_stand_above_what_they_read() -> None:
    places = _layout(DIAMOND).places
    for reader in DIAMOND:
        for source in reader.inputs:
            assert places[reader.name].y >= places[source].y + BOX_HEIGHT


def test_boxes_do_not_overlap() -> None:
    places = list(_layout(DIAMOND).places.values())
    for i, one in enumerate(places):
        for other in places[i + 1 :]:
            assert abs(one.x - other.x) >= BOX_WIDTH or abs(one.y - other.y) >= BOX_HEIGHT


# `a` and `b` are read again far above, beside boxes of the layers between.
SKIPPING = [
    node("a"),
    node("b"),
    node("c", "a", "b"),
    node("d", "c", "a"),
    node("e", "c"),
    node("f", "d", "e", "b"),
    node("g", "f", "a", "b", "c"),
]


@pytest.mark.parametrize("nodes", [DIAMOND, SKIPPING], ids=["diamond", "skipping"])
def test_no_arrow_runs_through_a_box(nodes: list[DagNode]) -> None:
    drawing = _layout(nodes)
    assert len(drawing.arrows) == sum(len(n.inputs) for n in nodes)
    for points in drawing.arrows:
        for (x0, y0), (x1, y1) in itertools.pairwise(points):
            assert y1 > y0
            for box in drawing.places.values():
                for share in (i / 40 for i in range(1, 40)):
                    x, y = x0 + (x1 - x0) * share, y0 + (y1 - y0) * share
                    inside = box.x < x < box.x + BOX_WIDTH and box.y < y < box.y + BOX_HEIGHT
                    assert not inside


def test_a_box_that_is_read_twice_and_no_box_at_all(tmp_path: Path) -> None:
    twice = [node("a"), node("b", "a", "a")]
    assert set(_layout(twice).places) == {"a", "b"}
    assert len(_layout(twice).arrows) == 2
    save_dag(str(tmp_path / "twice.svg"), twice)
    assert (tmp_path / "twice.svg").read_text().count("~5 rows") == 2
    save_dag(str(tmp_path / "none.svg"), [])
    assert "~5 rows" not in (tmp_path / "none.svg").read_text()


def test_saving(tmp_path: Path) -> None:
    for ending in ("svg", "html"):
        save_dag(str(tmp_path / f"plan.{ending}"), DIAMOND, "a & <plan>")
    assert "~5 rows" in (tmp_path / "plan.svg").read_text()
    with pytest.raises(QueryardError, match="unknown ending"):
        save_dag(str(tmp_path / "plan.doc"), DIAMOND)
    with pytest.raises(QueryardError, match="cannot write"):
        save_dag(str(tmp_path / "none" / "plan.svg"), DIAMOND)
