"""Times alone: measured once, kept, and missing where a query fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from queryard.core.errors import InvalidRecord
from queryard.load import Alone, Ground, Measured, load_alone, measure_alone, save_alone


def test_every_template_has_a_time_and_work(measured: Measured):
    assert set(measured.alone) == {"count", "sums", "pairs"}
    assert all(found.alone_s > 0 and found.work_s >= 0 for found in measured.alone.values())
    assert not measured.failed


def test_what_fails_alone_has_a_reason_and_no_work(ground: Ground):
    found = measure_alone(ground, {"bad": ["SELECT nothing FROM trips"], "good": ["SELECT 1"]})
    assert set(found.alone) == {"good"}
    assert "nothing" in found.failed["bad"]
    assert found.work_s["bad"] == 0.0


def test_what_is_known_is_not_measured_again(ground: Ground):
    known = Measured({"count": Alone(5.0, 9.0)}, {"bad": "no"})
    seen = []
    found = measure_alone(
        ground,
        {"count": ["SELECT 1"], "bad": ["SELECT 1"], "new": ["SELECT 1"]},
        known=known,
        progress=lambda share, what: seen.append((share, what)),
    )
    assert found.alone["count"] == Alone(5.0, 9.0)
    assert found.failed == {"bad": "no"}
    assert "new" in found.alone
    assert seen == [(0.0, "alone: new"), (1.0, "alone")]


def test_times_alone_are_kept_in_a_file(tmp_path: Path):
    file = tmp_path / "alone.json"
    measured = Measured({"a": Alone(1.5, 2.5)}, {"b": "why"})
    save_alone(measured, file)
    assert load_alone(file) == measured
    file.write_text("{}")
    with pytest.raises(InvalidRecord, match="does not hold times alone"):
        load_alone(file)
    with pytest.raises(InvalidRecord, match="cannot be read"):
        load_alone(tmp_path / "none.json")
