"""Temporary files: only their user can change them, and killed processes leave none for good."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from queryard.engine import temp
from queryard.engine.temp import TempSpace, remove_leftovers

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="other permissions here")


@pytest.fixture
def usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The usual place, in a folder of the test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"queryard-{os.getuid()}"


def test_the_usual_place_is_one_folder_per_user(usual: Path) -> None:
    space = TempSpace()
    assert space.path.parent == usual
    assert stat.S_IMODE(usual.stat().st_mode) == 0o700
    space.close()
    assert list(usual.iterdir()) == []


def test_a_place_that_others_can_change_is_not_used(usual: Path) -> None:
    usual.mkdir()
    usual.chmod(0o777)
    space = TempSpace()
    assert space.path.parent != usual
    assert stat.S_IMODE(space.path.parent.stat().st_mode) == 0o700
    space.close()
    assert list(usual.iterdir()) == []


def test_a_link_in_the_usual_place_is_not_followed(usual: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    usual.symlink_to(tmp_path / "elsewhere")
    space = TempSpace()
    space.close()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_leftovers_go_and_what_is_in_use_stays(usual: Path) -> None:
    space = TempSpace()
    left = usual / "1-abandoned"
    left.mkdir()
    (left / temp._LOCK).touch()
    (left / "rows.arrow").touch()
    remove_leftovers()
    assert list(usual.iterdir()) == [space.path]
    space.close()


def test_where_there_is_no_usual_place_there_is_nothing_to_remove(usual: Path) -> None:
    remove_leftovers()
    assert not usual.exists()
