"""What the page of comparisons shows is what the commands print."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from blocks import ROOT, blocks_of

COMPARED = [
    block.text
    for block in blocks_of("docs/compare.md")
    if block.text.startswith("$ queryard compare")
]


def _long_unless_small(shown: str) -> object:
    is_small = shown.startswith("$ queryard compare examples/stall.toml")
    return pytest.param(shown, marks=() if is_small else pytest.mark.long)


@pytest.mark.parametrize(
    "shown", [_long_unless_small(text) for text in COMPARED], ids=range(len(COMPARED))
)
def test_commands_print_what_stands_below_them(
    shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """But for spaces at the ends of lines."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    command, _, printed = shown.partition("\n")
    arguments = shlex.split(command.removeprefix("$ queryard"))
    ran = subprocess.run(
        [sys.executable, "-m", "queryard.cli", *arguments],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert [line.rstrip() for line in ran.stdout.splitlines()] == printed.splitlines()


def test_there_are_commands():
    assert COMPARED
