"""Rolling logs of Spark's: parts that are missing, compacted or there twice; byte order marks."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from trace_files import as_lines, spark_events, written

from queryard.core.errors import InvalidRecord
from queryard.workload.traces import Trace, read_trace


def parts(folder: Path, *names: str) -> None:
    """The usual application in so many parts."""
    events = spark_events()
    cuts = [0, *(4 + 2 * number for number in range(len(names) - 1)), len(events)]
    for name, begin, end in zip(names, cuts[:-1], cuts[1:], strict=True):
        written(folder, name, as_lines(events[begin:end]))


def check(trace: Trace) -> None:
    (arrival,) = trace.workload.arrivals
    assert (arrival.query.id, len(trace.tasks), trace.responses_s) == ("sql7", 3, {"sql7": 4.0})
    assert trace.counts["lines"] == len(spark_events())


@pytest.mark.parametrize(
    ("there", "missing"),
    [
        ("2", "1 (there are 2)"),
        ("2 3", "1 (there are 2, 3)"),
        ("1 4", "2, 3 (there are 1, 4)"),
        ("3 5", "1, 2, 4 (there are 3, 5)"),
        ("9", "1, 2, 3, 4, 5 and 3 more (there are 9)"),
    ],
)
def test_the_parts_that_are_missing_are_named(tmp_path: Path, there: str, missing: str) -> None:
    parts(tmp_path, *(f"events_{number}_app-1" for number in there.split()))
    with pytest.raises(InvalidRecord) as refused:
        read_trace(tmp_path)
    assert f"parts of the rolling log are missing: {missing}; copy them" in str(refused.value)


@pytest.mark.parametrize("codec", ["", ".zstd"])
def test_a_compacted_part_replaces_all_up_to_its_number(tmp_path: Path, codec: str) -> None:
    parts(tmp_path, f"events_2_app-1{codec}.compact", "events_3_app-1")
    trace = read_trace(tmp_path)
    check(trace)
    assert "the log of app-1 is compacted up to part 2" in trace.notes[0]
    # What it replaces may still be there.
    for name in ("events_1_app-1.compact", "events_1_app-1", "events_2_app-1"):
        written(tmp_path, name, "hello")
    check(read_trace(tmp_path))


def test_a_part_is_missing_after_the_compacted_one(tmp_path: Path) -> None:
    parts(tmp_path, "events_2_app-1.compact", "events_4_app-1")
    with pytest.raises(InvalidRecord, match=r"are missing: 3 \(there are 2, 4\)"):
        read_trace(tmp_path)


def test_a_part_that_is_there_twice(tmp_path: Path) -> None:
    parts(tmp_path, "events_1_app-1", "events_2_app-1")
    (tmp_path / "events_1_app-1.gz").write_bytes(b"")
    with pytest.raises(InvalidRecord, match=r"part 1 .* twice, events_1_app-1 and .*gz; delete"):
        read_trace(tmp_path)


def test_a_log_that_is_not_compacted_needs_no_note(tmp_path: Path) -> None:
    parts(tmp_path, "events_1_app-1", "events_2_app-1")
    trace = read_trace(tmp_path)
    check(trace)
    assert not any("compacted" in note for note in trace.notes)


def test_a_byte_order_mark_is_no_part_of_a_log(tmp_path: Path) -> None:
    marked = b"\xef\xbb\xbf" + as_lines(spark_events()).encode()
    for name, data in (("app-1", marked), ("app-1.gz", gzip.compress(marked))):
        (tmp_path / name).write_bytes(data)
        check(read_trace(tmp_path / name))


def test_every_part_may_have_a_byte_order_mark(tmp_path: Path) -> None:
    parts(tmp_path, "events_1_app-1", "events_2_app-1", "events_3_app-1")
    for file in tmp_path.iterdir():
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    check(read_trace(tmp_path))


def test_a_file_of_nothing_but_a_byte_order_mark_is_empty(tmp_path: Path) -> None:
    (tmp_path / "app-1").write_bytes(b"\xef\xbb\xbf")
    with pytest.raises(InvalidRecord, match="app-1: is empty"):
        read_trace(tmp_path / "app-1")
