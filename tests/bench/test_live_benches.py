"""The live benches run from end to end on next to no data; what they measure is not looked at."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "targets"),
    [
        pytest.param("at_once", 4, marks=pytest.mark.long),
        ("dashboards", 1),
    ],
)
def test_a_bench_prints_and_keeps_its_figures(name, targets, tmp_path):
    out = tmp_path / "out.json"
    command = [sys.executable, "-m", f"bench.live.{name}", "--quick", "--scale=0.01"]
    done = subprocess.run(
        [*command, f"--data={tmp_path}", f"--out={out}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    figures = json.loads(out.read_text(encoding="utf-8"))["figures"]
    assert sum(figure["most"] is not None for figure in figures) == targets
    assert all(figure["values"] for figure in figures)
