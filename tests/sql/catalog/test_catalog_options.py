"""Options of tables: all are listed in the guide, and each does what the guide says."""

from __future__ import annotations

import gzip
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from queryard.sql.catalog import open_catalog
from queryard.sql.catalog.declare import OPTIONS

GUIDE = Path(__file__).parents[3] / "docs" / "sql.md"

CSV = [
    ({"delimiter": "|"}, "a|b\n1|2,5\n", [(1, "2,5")]),
    ({"delimiter": ",", "quote": "'"}, "a,b\n1,'2,5'\n", [(1, "2,5")]),
    ({"escape": "\\"}, 'a,b\n1,"x\\"y"\n', [(1, 'x"y')]),
    ({"comment": "#"}, "# by hand\na,b\n1,2\n", [(1, 2)]),
    ({"skip": 2, "header": True}, "x\ny\na,b\n1,2\n", [(1, 2)]),
    ({"header": False}, "a,b\nc,d\n", [("a", "b"), ("c", "d")]),
    ({"null": "N/A"}, "a,b\n1,N/A\n2,3\n", [(1, None), (2, 3)]),
    ({"null": ["N/A", "-"]}, "a,b\n-,N/A\n2,3\n", [(None, None), (2, 3)]),
    ({"null_padding": True, "delimiter": ","}, "a,b\n1\n2,3\n", [(1, None), (2, 3)]),
    ({"decimal_separator": ",", "delimiter": ";"}, "a;b\n1,5;2\n", [(1.5, 2)]),
    ({"thousands": ",", "delimiter": ";"}, "a;b\n1,500;2\n", [(1500.0, 2)]),
    ({"date_format": "%d.%m.%Y"}, "a,b\n02.01.2024,3\n", [("2024-01-02", 3)]),
    ({"timestamp_format": "%d.%m.%Y %H"}, "a,b\n02.01.2024 7,3\n", [("2024-01-02 07:00:00", 3)]),
    ({"types": {"a": "VARCHAR"}}, "a,b\n1,2\n", [("1", 2)]),
    ({"columns": {"x": "VARCHAR", "y": "DOUBLE"}}, "a,b\n1,2\n", [("1", 2.0)]),
    ({"encoding": "latin-1"}, "a,b\nJosé,Ü\n".encode("latin-1"), [("José", "Ü")]),
    ({"encoding": "utf-16"}, "a,b\nJosé,Ü\n".encode("utf-16-le"), [("José", "Ü")]),
    ({"compression": "gzip"}, gzip.compress(b"a,b\n1,2\n", mtime=0), [(1, 2)]),
    ({"compression": "none"}, "a,b\n1,2\n", [(1, 2)]),
]
JSON = [
    ({"types": {"a": "VARCHAR"}}, '{"a": 1}', [("1",)]),
    ({"columns": {"a": "VARCHAR", "b": "BIGINT"}}, '{"a": 1}', [("1", None)]),
    ({"date_format": "%d.%m.%Y"}, '{"a": "02.01.2024"}', [("2024-01-02",)]),
    ({"timestamp_format": "%d.%m.%Y %H"}, '{"a": "02.01.2024 7"}', [("2024-01-02 07:00:00",)]),
    ({"maximum_object_size": 10_000}, '{"a": 1}', [(1,)]),
    ({"compression": "gzip"}, gzip.compress(b'{"a": 1}', mtime=0), [(1,)]),
]


def rows_of(place: Path, options: dict[str, object]) -> list[tuple[object, ...]]:
    table = open_catalog(tables={"t": {"path": str(place), **options}})["t"]
    with duckdb.connect() as connection:
        rows = connection.execute(f"FROM {table.relation}").fetchall()
    plain = (str, int, float, type(None))
    return [tuple(v if isinstance(v, plain) else str(v) for v in row) for row in rows]


@pytest.mark.parametrize(
    ("form", "options", "content", "rows"),
    [("csv", *case) for case in CSV] + [("json", *case) for case in JSON],
    ids=range(len(CSV) + len(JSON)),
)
def test_options_of_text(tmp_path, form, options, content, rows):
    place = tmp_path / "data.bin"
    place.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert rows_of(place, {"format": form, **options}) == rows


def test_options_of_parquet(tmp_path):
    place = tmp_path / "year=2024" / "t.parquet"
    place.parent.mkdir()
    pq.write_table(pa.table({"b": pa.array([b"x"])}), place)
    assert rows_of(place, {"binary_as_string": True, "hive": False}) == [("x",)]
    assert rows_of(place, {"types": {"year": "VARCHAR"}}) == [("b'x'", "2024")]


def test_every_option_is_in_the_guide():
    listed = [line for line in GUIDE.read_text(encoding="utf-8").splitlines() if line[:3] == "| `"]
    for form, options in OPTIONS.items():
        for option in options:
            (line,) = [text for text in listed if f"`{option}`" in text.split("|")[1]]
            assert {form, "all"} & set(line.split("|")[2].replace(",", " ").split()), option
