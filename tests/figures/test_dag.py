"""Plans as pictures: where the boxes stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from queryard.core.errors import QueryardError
from queryard.figures.dag import BOX_HEIGHT, BOX_WIDTH, DagNode, _layout, save_dag


def node(name: str, *inputs: str) -> DagNode:
    return DagNode(name, "join" if inputs else "extract", inputs, (name, "~5 rows"))


DIAMOND = [node("a"), node("b", "a"), node("c", "a"), node("x"), node("d", "b", "c", "x")]


def test_readers_stand_above_what_they_read() -> None:
    places = _layout(DIAMOND)
    for reader in DIAMOND:
        for source in reader.inputs:
            assert places[reader.name].y >= places[source].y + BOX_HEIGHT


def test_boxes_do_not_overlap() -> None:
    places = list(_layout(DIAMOND).values())
    for i, one in enumerate(places):
        for other in places[i + 1 :]:
            assert abs(one.x - other.x) >= BOX_WIDTH or abs(one.y - other.y) >= BOX_HEIGHT


def test_saving(tmp_path: Path) -> None:
    for ending in ("svg", "html"):
        save_dag(str(tmp_path / f"plan.{ending}"), DIAMOND, "a & <plan>")
    assert "~5 rows" in (tmp_path / "plan.svg").read_text()
    with pytest.raises(QueryardError, match="unknown ending"):
        save_dag(str(tmp_path / "plan.doc"), DIAMOND)
    with pytest.raises(QueryardError, match="cannot write"):
        save_dag(str(tmp_path / "none" / "plan.svg"), DIAMOND)
