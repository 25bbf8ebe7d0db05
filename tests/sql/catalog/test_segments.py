"""Segments of text have the rows of the whole table, in its order, with its types."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

import duckdb
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from queryard.sql.catalog import CatalogError, NotSplittable, open_catalog
from queryard.sql.catalog.cutting import Quoting, cuts_of
from queryard.sql.catalog.segments import relation_at, segments_of, text_of


def opened(path, **options):
    return open_catalog(tables={"t": {"path": str(path), **options}})["t"]


def whole(table):
    """What DuckDB reads; random text that it cannot read is left out."""
    try:
        return described(table, table.relation)
    except (duckdb.Error, CatalogError):
        assume(False)


PLAIN = duckdb.connect(config={"threads": 1})


def described(table, relation):
    found = PLAIN.execute(f"SELECT * FROM {relation}")
    return [(column[0], str(column[1])) for column in found.description], found.fetchall()


def in_segments(table, target_bytes):
    """The types of all segments, and their rows one after the other."""
    types, rows = None, []
    segments = segments_of(table, target_bytes)
    with tempfile.TemporaryDirectory() as folder:
        for segment in segments:
            relation = segment.relation
            if segment.is_range:
                path = Path(folder, str(segment.number))
                path.write_bytes(b"".join(text_of(segment)))
                relation = relation_at(table, segment, str(path))
            own, found = described(table, relation)
            assert types in (None, own)
            types = own
            rows += found
    return (types, rows), segments


WORD = st.text(st.sampled_from("ab1é ,;\"'\n\r|-.漢"), max_size=6)
VALUE = st.one_of(
    st.just(""),
    st.just("NULL"),
    st.integers(-5, 300).map(str),
    st.dates().map(str),
    WORD,
)


def written(value, newline, delimiter, quoted):
    value = value.replace("\r\n", "\n").replace("\r", "\n")
    if quoted or any(sign in value for sign in f'{delimiter}"\n\r'):
        return '"' + value.replace('"', '""') + '"'
    return value


@st.composite
def csv_texts(draw):
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    delimiter = draw(st.sampled_from([",", ";", "|"]))
    columns = draw(st.integers(2, 4))
    rows = draw(
        st.lists(st.lists(VALUE, min_size=columns, max_size=columns), min_size=1, max_size=40)
    )
    quoting = draw(st.sampled_from([0, 1, 2]))
    lines = [
        delimiter.join(
            written(value, newline, delimiter, quoting == 2 or (quoting == 1 and (i + j) % 3 == 0))
            for j, value in enumerate(row)
        )
        for i, row in enumerate(rows)
    ]
    header = draw(st.booleans())
    if header:
        names = [f"c{number}" for number in range(columns)]
        lines.insert(0, delimiter.join(names))
    text = newline.join(lines) + draw(st.sampled_from(["", newline]))
    mark = draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    return mark + text.encode(), header, delimiter, columns


@settings(deadline=None)
@given(csv_texts(), st.integers(1, 400), st.booleans(), st.integers(1, 2))
def test_segments_of_csv_are_the_whole(made, target, is_gzip, files):
    text, header, delimiter, columns = made
    with tempfile.TemporaryDirectory() as folder:
        for number in range(files):
            ending = "csv.gz" if is_gzip else "csv"
            body = gzip.compress(text) if is_gzip else text
            Path(folder, f"part-{number}.{ending}").write_bytes(body)
        names = [f"c{number}" for number in range(columns)]
        table = opened(
            folder + "/part-*",
            header=header,
            delimiter=delimiter,
            quote='"',
            escape='"',
            columns=dict.fromkeys(names, "VARCHAR"),
        )
        expected = whole(table)
        found, _ = in_segments(table, target)
        assert found == expected


@settings(deadline=None)
@given(csv_texts(), st.integers(1, 400))
def test_segments_of_sniffed_csv_are_the_whole(made, target):
    text, *_ = made
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.csv")
        path.write_bytes(text)
        table = opened(path)
        expected = whole(table)
        found, _ = in_segments(table, target)
        assert found == expected


OBJECT = st.fixed_dictionaries(
    {"a": st.integers(0, 99)},
    optional={"b": st.text(max_size=5), "c": st.lists(st.integers(0, 3), max_size=2)},
)


@settings(deadline=None)
@given(st.lists(OBJECT, min_size=1, max_size=40), st.integers(1, 300), st.booleans())
def test_segments_of_json_lines_are_the_whole(objects, target, is_gzip):
    text = "\n".join(json.dumps(each) for each in objects).encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.jsonl.gz" if is_gzip else "t.jsonl")
        path.write_bytes(gzip.compress(text) if is_gzip else text)
        table = opened(path)
        found, _ = in_segments(table, target)
        assert found == whole(table)


def test_a_quote_in_the_middle_of_a_value_ends_the_proof(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,x\n" * 50 + '2,5" disk\n' + '3,"two\nlines"\n' * 50)
    table = opened(path, columns={"a": "INTEGER", "b": "VARCHAR"}, header=True, quote='"')
    found, segments = in_segments(table, 50)
    assert found == whole(table)
    assert "a quote inside an unquoted value, at byte" in segments.reason
    assert len(segments) > 3
    assert segments[-1].stop == path.stat().st_size


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"comment": "#"}, "comments"),
        ({"skip": 1, "header": False}, "skipped"),
        ({"strict_mode": False}, "strict_mode"),
        ({"null_padding": True}, "null_padding"),
        ({"encoding": "latin-1"}, "latin-1"),
        ({"escape": "\\", "quote": '"'}, "may make a line break part of a value"),
    ],
)
def test_what_cannot_be_proven_is_one_segment_and_says_why(tmp_path, options, reason):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + '1,"x"\n' * 50)
    table = opened(path, columns={"a": "VARCHAR", "b": "VARCHAR"}, **options)
    found, segments = in_segments(table, 50)
    assert found == whole(table)
    assert len(segments) == 1
    assert reason in segments.reason


def test_an_escape_of_its_own_is_cut_as_long_as_nothing_is_quoted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,x\n" * 50)
    table = opened(path, escape="\\", quote='"', header=True)
    found, segments = in_segments(table, 50)
    assert found == whole(table)
    assert (len(segments), segments.reason) == (4, "")


def test_line_breaks_of_two_kinds_end_the_proof():
    lines = [b"a,b\n", *[b"1,x\n"] * 50, *[b"1,x\r\n"] * 50]
    cuts = cuts_of(lines, Quoting(ord('"')), 50)
    assert "a line break of another kind" in cuts.reason
    assert max(cuts.places) <= 204


@settings(deadline=None)
@given(st.lists(OBJECT, min_size=1, max_size=15), st.integers(1, 300), st.sampled_from([1, None]))
def test_objects_over_several_lines_are_cut_between_objects(objects, target, indent):
    nested = [{"n": [each, each], "m": each} for each in objects]
    text = "\n".join(json.dumps(each, indent=indent) for each in nested)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.json")
        path.write_text(text)
        table = opened(path)
        found, _ = in_segments(table, target)
        assert found == whole(table)


def test_a_json_array_is_one_segment(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps([{"a": number} for number in range(50)], indent=1))
    found, segments = in_segments(opened(path), 50)
    assert len(segments) == 1
    assert "not objects" in segments.reason
    assert found[1] == [(number,) for number in range(50)]


def test_with_ignore_errors_there_are_no_segments(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(NotSplittable, match="ignore_errors"):
        segments_of(opened(path, ignore_errors=True), 50)


def test_small_files_are_put_together_and_columns_come_from_paths(tmp_path):
    for number in range(6):
        folder = tmp_path / f"year={2020 + number}"
        folder.mkdir()
        (folder / "x.csv").write_text("a,b\n" + f"{number},y\n" * (1 if number else 60))
    table = opened(tmp_path, filename=True)
    found, segments = in_segments(table, 60)
    assert found == whole(table)
    assert [len(segment.files) for segment in segments] == [1, 1, 1, 1, 5]


def test_files_that_are_read_by_name_keep_their_own_columns(tmp_path):
    (tmp_path / "x-1.csv").write_text("a,b\n" + "1,y\n" * 60)
    (tmp_path / "x-2.csv").write_text("b;c\n" + "z;2.5\n" * 60)
    table = opened(tmp_path, union_by_name=True)
    found, segments = in_segments(table, 60)
    assert found == whole(table)
    assert [segment.file.uri[-5] for segment in segments] == [*"1111", *"222222"]


def test_segments_are_the_same_until_the_file_changes(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,x\n" * 50)
    catalog = open_catalog(tables={"t": str(path)})
    first = segments_of(catalog["t"], 50)
    assert segments_of(open_catalog(tables={"t": str(path)})["t"], 50) == first
    path.write_text("a,b\n" + "1,x\n" * 90)
    catalog.refresh()
    assert segments_of(catalog["t"], 50).version != first.version
    path.write_text("a,b\n")
    with pytest.raises(CatalogError, match="shorter"):
        b"".join(text_of(first[2]))


def test_parquet_has_its_splits_as_segments(tmp_path):
    path = tmp_path / "t.parquet"
    PLAIN.execute(f"COPY (SELECT range AS n FROM range(9000)) TO '{path}' (ROW_GROUP_SIZE 2048)")
    table = opened(path)
    found, segments = in_segments(table, table.bytes / 4)
    assert len(segments) > 1
    assert found == whole(table)
