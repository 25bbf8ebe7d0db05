"""A short soak: everything that can go wrong goes wrong, and nothing is left afterwards."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("seconds", [3, pytest.param(30, marks=pytest.mark.long)])
def test_every_query_ends_as_it_must_and_nothing_is_left(seconds):
    # In a process of its own, so that only the soak uses its memory and threads.
    command = [sys.executable, "-m", "bench.soak", f"--seconds={seconds}", "--scale=0.01"]
    done = subprocess.run(
        [*command, "--clients=8", "--memory=512MB", "--faults=0.05"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    assert "all as it must be" in done.stdout
