"""What DuckDB guesses of JSON files holds for every read of them, parts included."""

from __future__ import annotations

from collections import Counter

import duckdb
import pytest
from reading import columns_of, rows_of

from queryard.sql.catalog import CatalogError, open_catalog
from queryard.sql.catalog.segments import relation_at, segments_of, whole_text


def written(tmp_path, texts):
    path = tmp_path / "t.json"
    lines = [f'{{"n": {n}, "m": "{text}"}}\n' for n, text in enumerate(texts)]
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["2020-12-13", "2020-12-14"], "DATE"),
        (["20-12-13", "20-12-14"], "DATE"),
        (["13-12-2020", "14-12-2020"], "DATE"),
        (["12-13-2020", "12-14-2020"], "DATE"),
        (["11-12-2020", "10-12-2020"], "DATE"),
        (["13-12-2020", "12-14-2020"], "VARCHAR"),
        (["2020-12-13T10:00:00", "2020-12-14T10:00:00"], "TIMESTAMP"),
        (["13-12-2020 10:00:00", "14-12-2020 10:00:00"], "TIMESTAMP"),
        (["12-13-2020 10:00:00 PM", "12-14-2020 10:00:00 AM"], "TIMESTAMP"),
    ],
)
def test_dates_are_read_as_duckdb_reads_them(tmp_path, texts, kind):
    path = written(tmp_path, texts * 20)
    table = open_catalog(tables={"t": str(path)})["t"]
    read = f"read_json('{path}')"
    assert list(table.columns) == columns_of(read) == [("n", "BIGINT"), ("m", kind)]
    plain = Counter(map(repr, duckdb.sql(f"FROM {read}").fetchall()))
    assert rows_of(table) == plain
    segments = segments_of(table, 200)
    assert len(segments) > 3
    found: Counter[str] = Counter()
    for segment in segments:
        part = tmp_path / "part"
        part.write_bytes(whole_text(segment))
        found.update(
            map(repr, duckdb.sql(f"FROM {relation_at(table, segment, str(part))}").fetchall())
        )
    assert found == plain


def test_keys_that_differ_in_case_only_are_refused_and_not_taken_for_null(tmp_path):
    path = tmp_path / "t.json"
    path.write_text('{"a": 1, "A": 2}\n')
    with pytest.raises(CatalogError, match="differ in case only; say which `columns` the table t"):
        _ = open_catalog(tables={"t": str(path)})["t"].relation
    said = {"path": str(path), "columns": {"A": "INTEGER"}}
    assert rows_of(open_catalog(tables={"t": said})["t"]) == {"(2,)": 1}
