"""`queryard experiment` names the checkout and the command to run there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from queryard.cli.experiment import advice, checkout_of

ROOT = Path(__file__).parents[2]


def test_without_a_checkout_it_says_where_to_get_one() -> None:
    told = advice(None, ["all"])
    assert "checkout" in told
    assert "source archive" in told
    assert told.endswith("make research RUN=all")


def test_in_a_checkout_the_exact_command_is_named(call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    ended = call("experiment", "tls-lodfa", "--seeds", 3, "--report", "my page", "--help-me")
    assert ended.code == 2
    assert not ended.out
    command = "-m research tls-lodfa --seeds 3 --report 'my page' --help-me"
    assert ended.err.strip().endswith(f": {shlex.quote(sys.executable)} {command}")


def test_the_named_command_runs_from_elsewhere(
    call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = call("experiment", "nothing-like-it")
    assert ended.code == 2
    found = re.search(r"cd (.+) && (.+)", ended.err)
    assert found is not None
    (folder,) = shlex.split(found[1])
    told = subprocess.run(shlex.split(found[2]), cwd=folder, capture_output=True, text=True)
    assert told.returncode == 2
    assert "unknown experiment 'nothing-like-it'" in told.stderr


def test_a_folder_that_only_bears_the_name_is_no_checkout(tmp_path: Path) -> None:
    (tmp_path / "research").mkdir()
    assert checkout_of([tmp_path]) is None
    assert checkout_of([tmp_path, ROOT]) == ROOT
