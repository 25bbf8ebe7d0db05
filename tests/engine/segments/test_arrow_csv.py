"""CSV that Arrow parses has DuckDB's values; what Arrow would read otherwise is left to DuckDB."""

from __future__ import annotations

from random import Random

import duckdb
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from queryard.engine.errors import QueryFailed
from queryard.engine.segments import SegmentStore
from queryard.engine.segments.arrow_csv import parsed
from queryard.sql.catalog import open_catalog
from queryard.sql.catalog.model import CatalogError

PLAIN = duckdb.connect(config={"threads": 1})
COLUMNS = {
    "a": "VARCHAR",
    "i": "BIGINT",
    "s": "SMALLINT",
    "f": "DOUBLE",
    "d": "DATE",
    "b": "BOOLEAN",
}
USUAL = {
    "a": ["x", "a longer text", "é", "'"],
    "i": ["0", "17", "-4", "9223372036854775807"],
    "s": ["5", "-5", "32767"],
    "f": ["0.5", "-1e3", "123456.789", "7"],
    "d": ["2024-02-29", "0001-01-01", "9999-12-31"],
    "b": ["true", "false", "TRUE"],
}
ODD = {
    "a": ['"a, b"', '"say ""x"""', '"two\nlines"', '""', " spaces ", '"\r\n"', "NULL", "\0", "\\N"],
    "i": ["+1", " 1", "1 ", "007", "0x1F", "0xFFFFFFFFFFFFFFFF", "1.5", "1e3", "1_000", '"1"', "x"],
    "s": ["0x80", "0xFFFF", "40000", "0x7F", "1.4"],
    "f": ["inf", "-Infinity", "nan", "1e400", "1e-400", "4.9e-324", ".5", "5.", "+1", "1_0.5", "x"],
    "d": ["2024-1-5", "2024-02-30", "2024/01/05", " 2024-01-05", "infinity", "epoch", "0000-01-01"],
    "b": ["t", "F", "1", "0", "yes", "tRue"],
}


@st.composite
def texts(draw):
    """Lines of all columns; a few values are spelled in odd ways, a few lines are broken."""
    odd = draw(st.sampled_from([0.0, 0.0, 0.02, 0.2]))
    broken = draw(st.sampled_from([0.0, 0.0, 0.0, 0.03]))
    random = Random(draw(st.integers(0, 2**32)))
    lines = []
    for _ in range(draw(st.integers(5, 60))):
        values = [
            ""
            if random.random() < 0.1
            else random.choice(ODD[name] if random.random() < odd else USUAL[name])
            for name in COLUMNS
        ]
        line = ",".join(values)
        if random.random() < broken:
            line = random.choice(["", line + ",more", values[0], line + '"', '"' + line])
        lines.append(line)
    newline = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    header = [",".join(COLUMNS)] if draw(st.booleans()) else []
    end = draw(st.sampled_from(["", newline]))
    return newline.join([*header, *lines]) + end, bool(header)


def answer(run):
    """Rows as texts, so that NaN is equal to itself; or that it failed."""
    try:
        return [tuple(map(repr, row)) for row in run()]
    except (duckdb.Error, QueryFailed):
        return "failed"


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=texts(), wanted=st.sets(st.sampled_from(list(COLUMNS))), size=st.integers(50, 900))
def test_random_texts_are_read_as_duckdb_reads_them(tmp_path, text, wanted, size):
    content, header = text
    path = tmp_path / "t.csv"
    path.write_bytes(content.encode())
    said = {"path": str(path), "columns": COLUMNS, "header": header, "delimiter": ","}
    table = open_catalog(tables={"t": {**said, "quote": '"', "escape": '"'}})["t"]
    columns = [name for name in COLUMNS if name in wanted]
    try:
        relation = table.relation
    except CatalogError:  # DuckDB does not find out how it is written
        reject()
    selected = ", ".join(columns) or "1"
    theirs = answer(lambda: PLAIN.execute(f"SELECT {selected} FROM {relation}").fetchall())
    store = SegmentStore(1e9, 0, tmp_path / "kept", size)

    def ours():
        rows = []
        for segment in store.segments(table):
            with store.reading(table, segment, columns) as found:
                rows += PLAIN.execute(f"SELECT * FROM {found}").fetchall()
        return rows

    try:
        assert answer(ours) == theirs
    finally:
        store.close()


def opened(tmp_path, lines, **said):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,b", *lines, ""]))
    columns = {"a": "VARCHAR", "b": "BIGINT"}
    given = {"path": str(path), "columns": columns, "header": True, **said}
    return open_catalog(tables={"t": given})["t"]


def arrows(tmp_path, table):
    """Which segments Arrow has parsed."""
    store = SegmentStore(1e9, 0, tmp_path / "kept", 100)
    found = [parsed(table, each, table.columns) is not None for each in store.segments(table)]
    store.close()
    return found


def test_usual_files_are_parsed_by_arrow(tmp_path):
    table = opened(tmp_path, [f"x{n},{n}" for n in range(100)])
    assert len(found := arrows(tmp_path, table)) > 3
    assert all(found)


def test_what_follows_the_end_of_a_proof_is_not(tmp_path):
    lines = [f"x{n},{n}" for n in range(100)]
    lines[80] = 'a 5" disk,80'
    found = arrows(tmp_path, opened(tmp_path, lines))
    assert found[0]
    assert not found[-1]


@pytest.mark.parametrize(
    "said", [{"null": "x1"}, {"delimiter": ",", "escape": "\\"}, {"thousands": "_"}]
)
def test_other_dialects_are_not(tmp_path, said):
    table = opened(tmp_path, [f"x{n},{n}" for n in range(100)], **said)
    assert not any(arrows(tmp_path, table))


def test_a_hexadecimal_number_with_its_highest_bit_set_is_duckdbs_error(tmp_path):
    lines = [f"x{n},{n}" for n in range(100)]
    lines[3] = "x,0xFFFFFFFFFFFFFFFF"
    found = arrows(tmp_path, opened(tmp_path, lines))
    assert found.count(False) == 1
