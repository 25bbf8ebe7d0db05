"""Data that cannot be one table: the error names the file and what is wrong with it."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from queryard.sql.catalog import CatalogError, open_catalog
from queryard.sql.catalog.advice import with_passed_over, with_way_out

FIRST = pa.table({"id": [1], "name": ["x"]})


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (pa.table({"id": [1]}), r"2\.parquet: has no column 'name', which .*1\.parquet has"),
        (
            FIRST.append_column("z", [[1]]),
            r"2\.parquet: has a column 'z', which .*1\.parquet has not",
        ),
        (
            pa.table({"id": ["1"], "name": ["x"]}),
            r"2\.parquet: the column 'id' is VARCHAR, but BIGINT in .*1\.parquet",
        ),
        (
            pa.table({"id": pa.array([1], pa.int32()), "name": ["x"]}),
            r"the column 'id' is INTEGER, but BIGINT",
        ),
        (pa.table({"id": [{"a": 1}], "name": ["x"]}), r"'id' is STRUCT\(a BIGINT\), but BIGINT"),
    ],
)
def test_parquet_files_of_other_columns(tmp_path, second, message):
    pq.write_table(FIRST, tmp_path / "1.parquet")
    pq.write_table(second, tmp_path / "2.parquet")
    table = open_catalog(tables={"t": str(tmp_path)})["t"]
    for ask in (lambda: table.columns, lambda: table.rows, lambda: table.splits(1)):
        with pytest.raises(CatalogError, match=message):
            ask()


def test_parquet_files_that_differ_in_what_does_not_matter(tmp_path):
    pq.write_table(FIRST, tmp_path / "1.parquet")
    required = pa.schema([pa.field("NAME", pa.large_string()), pa.field("id", pa.int64(), False)])
    second = pa.table({"NAME": ["y"], "id": [2]}, schema=required)
    pq.write_table(second, tmp_path / "2.parquet", compression="zstd", use_dictionary=False)
    assert open_catalog(tables={"t": str(tmp_path)})["t"].rows == 2


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1 and then nonsense PAR1"])
def test_unreadable_parquet(tmp_path, content):
    pq.write_table(FIRST, tmp_path / "1.parquet")
    (tmp_path / "2.parquet").write_bytes(content)
    table = open_catalog(tables={"t": str(tmp_path)})["t"]
    with pytest.raises(CatalogError, match=r"2\.parquet: cannot be read as Parquet"):
        _ = table.columns


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("id,nam\n1,x\n", r"2\.csv: column 2 is called 'nam', but 'name' in .*1\.csv"),
        ("name,id\nx,1\n", r"2\.csv: column 1 is called 'name', but 'id'"),
        ("id\n1\n", r"2\.csv: has 1 column \(id\), but .*; say union_by_name = true"),
        ("id,name,z\n1,x,2\n", r"2\.csv: has 3 columns \(id, name, z\)"),
        ("5,other\n6,more\n", r"2\.csv: column 1 is called '5'"),
    ],
)
def test_csv_files_of_other_headers(tmp_path, second, message):
    (tmp_path / "1.csv").write_text("id,name\n1,x\n2,y\n")
    (tmp_path / "2.csv").write_text(second)
    table = open_catalog(tables={"t": str(tmp_path)})["t"]
    with pytest.raises(CatalogError, match=message):
        _ = table.columns


def test_csv_that_is_no_text(tmp_path):
    (tmp_path / "1.csv").write_text("id,name\n1,x\n")
    (tmp_path / "2.csv").write_bytes(b"id,name\n1,\xff\xfe\n")
    with pytest.raises(CatalogError, match=r"2\.csv.*utf-8"):
        _ = open_catalog(tables={"t": str(tmp_path)})["t"].columns


def test_the_way_out_is_an_option_of_the_table(tmp_path):
    (tmp_path / "t.csv").write_bytes("name\nJosé\n".encode("latin-1"))
    with pytest.raises(CatalogError, match=r't\.csv: .* encoding = "latin-1"$'):
        _ = open_catalog(tmp_path)["t"].columns


def late_failure(place, first: str, usual: str, last: str) -> str:
    """What DuckDB says of a last line that is not like those before."""
    place.write_bytes("\n".join([first, *[usual] * 30_000, last]).encode("latin-1"))
    relation = open_catalog(place)["t"].relation
    with pytest.raises(duckdb.Error) as caught, duckdb.connect() as connection:
        connection.execute(f"SELECT max(#1) FROM (FROM {relation})")
    return str(caught.value)


def test_late_values_of_another_type(tmp_path):
    told = with_way_out(late_failure(tmp_path / "t.csv", "v 1", "7", "oops"))
    assert told.splitlines()[-2:] == [
        f"File: {tmp_path}/t.csv",
        "Name its type in a catalog file, under the table (or in `tables=`): "
        'types = { "v 1" = "VARCHAR" }',
    ]
    assert "sample_size" not in told
    assert "oops" in told
    assert with_way_out(told) == told
    usual, last = '{"v": 7}', '{"v": "oops"}'
    told = with_way_out(late_failure(tmp_path / "t.jsonl", usual, usual, last))
    assert 't.jsonl", in line 30002' in told
    assert "types = {" in told
    assert "Try setting" not in told


def test_late_letters_of_another_encoding(tmp_path):
    told = with_way_out(late_failure(tmp_path / "t.csv", "v", "e", "é"))
    assert told.endswith('encoding = "latin-1"')
    assert "ignore_errors" not in told


def test_calls_of_the_users_own_keep_the_advice_of_duckdb(tmp_path):
    (tmp_path / "t.csv").write_text("v\n" + "7\n" * 30_000 + "oops\n")
    with pytest.raises(duckdb.Error) as caught, duckdb.connect() as connection:
        connection.execute(f"SELECT max(v) FROM read_csv('{tmp_path}/t.csv')")
    assert with_way_out(str(caught.value)) == str(caught.value)


@pytest.mark.parametrize(
    "message",
    [
        'Table with name "bad.t" does not exist because schema "bad" does not exist.',
        'Table with name "bad.main.t" does not exist because schema "bad.main" does not exist.',
        "Table with name Bad does not exist!",
    ],
)
def test_a_missing_table_that_was_passed_over(tmp_path, message):
    (tmp_path / "bad.duckdb").write_bytes(b"nothing of the kind")
    (tmp_path / "other.duckdb").write_bytes(b"nor this")
    skipped = open_catalog(tmp_path).skipped
    told = with_passed_over(message, skipped)
    assert told.splitlines() == [
        message,
        f"passed over: {tmp_path}/bad.duckdb, which is not a DuckDB database file, or cannot be "
        "read",
    ]
    assert with_passed_over(told, skipped) == told
    assert with_passed_over("Parser Error: bad", skipped) == "Parser Error: bad"


@pytest.mark.parametrize("ending", ["arrow", "feather", "ipc"])
def test_arrow_files_are_no_tables(tmp_path, ending):
    place = tmp_path / f"t.{ending}"
    pyarrow.feather.write_feather(FIRST, place)
    with pytest.raises(CatalogError, match=rf"t\.{ending}: is an Arrow file, .* Parquet"):
        open_catalog(tables={"t": str(place)})
    with pytest.raises(CatalogError, match=rf"t\.{ending}: is an Arrow file"):
        open_catalog(place)
    with pytest.raises(CatalogError, match=rf"passed over: .*t\.{ending}, which is an Arrow file"):
        open_catalog(tmp_path)["t"]


def test_types_for_columns_that_are_not_there(tmp_path):
    (tmp_path / "t.csv").write_text("id,name\n1,x\n")
    spec = {"path": str(tmp_path / "t.csv"), "types": {"nope": "DATE"}}
    with pytest.raises(CatalogError, match="nope"):
        _ = open_catalog(tables={"t": spec})["t"].columns


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "", "is empty, so the columns of the table t are unknown"),
        ("t.jsonl", "", "holds no JSON objects"),
        ("t.jsonl", "1\n2\n", "holds no JSON objects"),
        ("t.jsonl", '{"a": 1}\n{"a":\n', "Malformed JSON"),
    ],
)
def test_text_without_rows_to_learn_from(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(CatalogError, match=message) as caught:
        _ = open_catalog(tmp_path)["t"].columns
    assert name in str(caught.value)


def test_a_broken_json_file_among_others_is_named(tmp_path):
    (tmp_path / "1.jsonl").write_text('{"a": 1}\n')
    (tmp_path / "2.jsonl").write_text('{"a": 1}\n{"a"\n')
    with pytest.raises(CatalogError, match=r"2\.jsonl"):
        _ = open_catalog(tables={"t": str(tmp_path)})["t"].columns


def test_json_keys_may_differ(tmp_path):
    (tmp_path / "1.jsonl").write_text('{"a": 1}\n{"b": "x"}\n')
    (tmp_path / "2.json").write_text('[{"a": 1.5, "c": {"d": [1]}}]')
    table = open_catalog(tables={"t": [str(tmp_path / "1.jsonl"), str(tmp_path / "2.json")]})["t"]
    expected = (("a", "DOUBLE"), ("b", "VARCHAR"), ("c", "STRUCT(d BIGINT[])"))
    assert table.columns == expected


def test_folders_of_different_keys(tmp_path):
    for folder in ("y=1/m=1", "y=1"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        pq.write_table(FIRST, tmp_path / folder / "x.parquet")
    table = open_catalog(tables={"t": str(tmp_path)})["t"]
    with pytest.raises(CatalogError, match=r"keys \['y'\].*hive = false"):
        _ = table.columns
    plain = open_catalog(tables={"t": {"path": str(tmp_path), "hive": False}})["t"]
    assert plain.columns == (("id", "BIGINT"), ("name", "VARCHAR"))


def test_files_of_different_formats(tmp_path):
    (tmp_path / "1.csv").write_text("a\n1\n")
    pq.write_table(FIRST, tmp_path / "2.parquet")
    with pytest.raises(CatalogError, match=r"2\.parquet: is parquet, but .*1\.csv is csv"):
        open_catalog(tables={"t": str(tmp_path)})


GOOD = "".join(f'{number},"{number}"\n' for number in range(30_000))


@pytest.mark.parametrize(
    ("last", "cause", "option", "rows"),
    [
        ("7", "Expected Number of Columns: 2 Found: 1", "null_padding = true", 30_001),
        ("7,8,9", "Expected Number of Columns: 2 Found: 3", "ignore_errors = true", 30_000),
        ('7,"8"9', "Value with unterminated quote", "strict_mode = false", 30_001),
        (f"7,{'8' * 2_500_000}", "Maximum line size", "maximum_line_size = 10000000", 30_001),
    ],
)
def test_a_line_that_cannot_be_read_names_an_option_that_helps(tmp_path, last, cause, option, rows):
    place = tmp_path / "t.csv"
    place.write_text(f"id,v\n{GOOD}{last}\n")
    types = {"types": {"v": "VARCHAR"}}
    table = open_catalog(tables={"t": {"path": str(place), **types}})["t"]
    with duckdb.connect() as connection, pytest.raises(duckdb.Error) as caught:
        connection.execute(f"SELECT * FROM {table.relation}").fetchall()
    told = with_way_out(str(caught.value))
    assert cause in told
    assert f"File: {place}" in told
    assert option in told.splitlines()[-1]
    assert max(map(len, told.splitlines())) < 300
    assert "Set By User" not in told
    name, _, value = option.partition(" = ")
    given = {name: {"true": True, "false": False}.get(value, value)}
    given = {name: int(value)} if value.isdigit() else given
    table = open_catalog(tables={"t": {"path": str(place), **types, **given}})["t"]
    with duckdb.connect() as connection:
        assert len(connection.execute(f"SELECT * FROM {table.relation}").fetchall()) == rows


def test_tables_given_as_the_place_of_data_name_the_option():
    with pytest.raises(CatalogError, match=r"is no place of data: give the path .* tables="):
        open_catalog({"t": "t.csv"})
    with pytest.raises(CatalogError, match=r"^a Table is no place of data"):
        open_catalog(pyarrow.table({"a": [1]}))


@pytest.mark.parametrize("given", ["t.csv", ["t.csv"]])
def test_tables_without_names_are_refused(given):
    with pytest.raises(CatalogError, match=r"tables: must be a dictionary of names.*t\.csv"):
        open_catalog(tables=given)


def test_a_table_name_that_is_no_text_is_refused():
    with pytest.raises(CatalogError, match="table name 5: must be a name"):
        open_catalog(tables={5: "t.csv"})
    catalog = open_catalog()
    with pytest.raises(CatalogError, match="unknown added table 5"):
        catalog.remove(5)
    with pytest.raises(CatalogError, match="unknown table '5'"):
        catalog[5]


@pytest.mark.parametrize("option", ["delimiter", "quote", "encoding", "date_format"])
def test_an_option_that_must_be_a_text_is_named(tmp_path, option):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(CatalogError, match=f"table t: {option} must be a text, got 5"):
        open_catalog(tables={"t": {"path": tmp_path / "t.csv", option: 5}})
