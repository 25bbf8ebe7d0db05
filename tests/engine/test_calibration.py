"""The speed of this machine, measured once and kept."""

from __future__ import annotations

import json
import time

import pytest

from queryard.engine import calibration
from queryard.engine.calibration import known_rates, machine_rates
from queryard.estimate.prices import REFERENCE, Rates


@pytest.fixture(autouse=True)
def unmeasured(monkeypatch):
    monkeypatch.setattr(calibration, "_found", {})


def test_measuring_takes_little_and_gives_sensible_rates():
    began = time.thread_time()
    rates = machine_rates()
    assert time.thread_time() - began < 1.5  # about half a second on a machine of its own
    for rate in (rates.computing, rates.hashing, rates.sorting):
        assert 0.02 < rate < 50


def test_rates_are_kept_in_the_file_and_taken_from_there(tmp_path, monkeypatch):
    path = tmp_path / ".queryard" / "rates.json"
    monkeypatch.setattr(calibration, "_measured", lambda: Rates(2.0, 3.0, 4.0))
    assert machine_rates(path) == Rates(2.0, 3.0, 4.0)
    calibration._found.clear()
    monkeypatch.setattr(calibration, "_measured", lambda: pytest.fail("measured again"))
    assert machine_rates(path) == Rates(2.0, 3.0, 4.0)


def test_another_machine_or_version_of_duckdb_is_measured_and_kept_beside(tmp_path, monkeypatch):
    path = tmp_path / "rates.json"
    monkeypatch.setattr(calibration, "_measured", lambda: Rates(2.0, 2.0, 2.0))
    machine_rates(path)
    monkeypatch.setattr(calibration, "_machine", lambda: "another")
    monkeypatch.setattr(calibration, "_measured", lambda: Rates(5.0, 5.0, 5.0))
    assert machine_rates(path) == Rates(5.0, 5.0, 5.0)
    assert len(json.loads(path.read_text())) == 2


@pytest.mark.parametrize("written", ["", "{", "[1]", '{"x": 1}'])
def test_a_file_that_makes_no_sense_is_written_anew(tmp_path, monkeypatch, written):
    path = tmp_path / "rates.json"
    path.write_text(written)
    monkeypatch.setattr(calibration, "_measured", lambda: Rates(2.0, 3.0, 4.0))
    assert machine_rates(path) == Rates(2.0, 3.0, 4.0)
    calibration._found.clear()
    monkeypatch.setattr(calibration, "_measured", lambda: pytest.fail("measured again"))
    assert machine_rates(path) == Rates(2.0, 3.0, 4.0)


def test_where_nothing_can_be_written_rates_stay_in_memory(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("in the way")
    monkeypatch.setattr(calibration, "_measured", lambda: Rates(2.0, 3.0, 4.0))
    assert machine_rates(file / "rates.json") == Rates(2.0, 3.0, 4.0)
    monkeypatch.setattr(calibration, "_measured", lambda: pytest.fail("measured again"))
    assert machine_rates(file / "rates.json") == Rates(2.0, 3.0, 4.0)


def test_no_half_written_file_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(calibration, "_measured", Rates)
    machine_rates(tmp_path / "rates.json")
    assert [path.name for path in tmp_path.iterdir()] == ["rates.json"]


def test_what_is_known_is_told_without_measuring(tmp_path, monkeypatch):
    path = tmp_path / "rates.json"
    monkeypatch.setattr(calibration, "_measured", lambda: pytest.fail("measured"))
    assert known_rates(path) == REFERENCE
    monkeypatch.setattr(calibration, "_measured", lambda: Rates(2.0, 3.0, 4.0))
    machine_rates(path)
    assert known_rates() == Rates(2.0, 3.0, 4.0)
    calibration._found.clear()
    assert known_rates(path) == Rates(2.0, 3.0, 4.0)
