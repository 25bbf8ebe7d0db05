"""Journals of former versions replay: scans without costs, divisible work that scans nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from queryard.core.journal import Journal
from queryard.sim import replay

# Written before scans had costs, reduces folded and divisible work could scan: two tenants, three
# scans of one table, two online queries, failures.
FILES = sorted((Path(__file__).parent / "old_journals").glob("*.jsonl"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_old_journal_replays(file: Path):
    journal = Journal.from_lines(file.read_text("utf-8").splitlines())
    assert len(journal.steps) > 20
    assert replay(journal) is None
