"""Where a history lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from queryard.history import file_to_read, file_to_write


def test_it_lies_beside_the_data(tmp_path: Path) -> None:
    beside = tmp_path / "data" / ".queryard"
    assert file_to_read(beside) is None
    file = file_to_write(beside)
    assert file == beside / "history.sqlite"
    file.touch()
    assert file_to_read(beside) == file


def test_where_that_cannot_be_written_to_it_lies_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "data").write_text("a file where a folder should be")
    beside = tmp_path / "data" / ".queryard"
    file = file_to_write(beside)
    assert file.is_relative_to(tmp_path / "cache" / "queryard")
    assert file != file_to_write(tmp_path / "data" / "other")
    file.parent.mkdir(parents=True)
    file.touch()
    assert file_to_read(beside) == file
