"""Trees of jobs: what is marked, and what a narrow terminal shows."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from queryard.estimate.expected import Expected, around
from queryard.results.explanation import Explanation
from queryard.results.job_tree import ExplainedJob, fitted


def job(name: str, inputs: tuple[str, ...] = (), **changes: object) -> ExplainedJob:
    figures = {
        "rows_expected": around(12_345.0, 0.3),
        "bytes_expected": around(4e6, 0.3),
        "seconds_expected": around(0.25, 0.5),
        "memory_expected": around(3e7, 0.4),
    }
    return ExplainedJob(
        name, "extract", f"READ_PARQUET table_{name} (column = 'a')", inputs, **(figures | changes)
    )


def test_large_errors_are_marked() -> None:
    jobs = (
        job("o1", rows=12_000.0, bytes=41e5, seconds=0.3),
        job("o2", ("o1",), rows=61_725.0, bytes=1e6, seconds=0.05),
        job("o3", ("o2",), rows_expected=Expected(1.0, 1.0, 1.0), rows=3.0, bytes=4e6, seconds=0.2),
    )
    top, middle, below = Explanation("", "native", jobs).text().splitlines()[3:]
    assert "▲" not in top + below
    assert "▼" not in top + below
    for mark in ("61,725 ▲5.00×", "1.0 MB ▼4.00×", "50 ms ▼5.00×"):
        assert mark in middle


@pytest.mark.parametrize("analyzed", [False, True])
@pytest.mark.parametrize("width", [80, 120, 200])
def test_no_number_is_cut(width: int, analyzed: bool) -> None:
    real = {"rows": 12_001.0, "bytes": 41e5, "seconds": 0.3} if analyzed else {}
    jobs = (job("o1", **real), job("o2", ("o1",), **real))
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, force_terminal=True)
    console.print(fitted(console, jobs, "native"))
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= width
    real_figures = ("12,001", "4.1 MB", "300 ms") if analyzed else ("30.0 MB",)
    for number in ("12,345", "4.0 MB", "250 ms", *real_figures):
        assert text.count(number) >= len(jobs)
