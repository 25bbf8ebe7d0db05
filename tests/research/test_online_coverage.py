"""How often intervals hold the truth, in small."""

from __future__ import annotations

from pathlib import Path

from research.online.coverage import measured, outcome
from research.online.populations import POPULATIONS
from research.outcome import RunOptions, Verdict


def test_intervals_of_plain_and_ordered_data_hold_the_truth():
    chosen = [p for p in POPULATIONS if p.name in ("normal", "ordered", "ordered window")]
    kinds = ("shuffled files", "blocks")
    found = measured(chosen, kinds, 40_000, Path("none"), 12, RunOptions())
    held = sum(cell.held for cells in found.values() for cell in cells.values())
    shown = sum(cell.shown for cells in found.values() for cell in cells.values())
    assert shown > 1000
    assert 0.92 <= held / shown <= 0.98
    told = outcome(found, chosen)
    assert told.findings[1].verdict is not None
    assert told.findings[1].verdict in (Verdict.REACHED, Verdict.MISSED)
    assert [table.title.split(":")[0] for table in told.tables[:2]] == list(kinds)


def test_no_interval_is_shown_for_a_window_of_ordered_blocks():
    window = [p for p in POPULATIONS if p.name == "ordered window"]
    found = measured(window, ("blocks",), 20_000, Path("none"), 10, RunOptions())
    assert sum(cell.shown for cells in found.values() for cell in cells.values()) < 20
