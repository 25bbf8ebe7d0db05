"""COPY … FROM STDIN: what a client sends is what the table has, in every format, or an error."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import subprocess
import uuid
from decimal import Decimal

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.engine.sealing.access import Access
from queryard.service.config import ServiceLimits
from queryard.service.postgres.copy_lines import CopyLines
from queryard.service.postgres.copy_options import CopyIn, copy_of
from queryard.service.postgres.errors import PostgresError
from queryard.service.postgres.texts import Text
from tests.service.postgres.served_postgres import a_server

psycopg = pytest.importorskip("psycopg")

CELLS = st.one_of(
    st.none(),
    st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=8),
    st.sampled_from(["", "\\N", "\\.", "a\tb", "a,b", 'say "x"', "two\nlines", "\r\n", "\\"]),
)
ROWS = st.lists(st.lists(CELLS, min_size=2, max_size=2), max_size=12)


def parsed(copy, data, sizes):
    lines = CopyLines(copy, ["a", "b"])
    batches = []
    at = 0
    for size in [*sizes, len(data)]:
        batches += lines.feed(data[at : at + size])
        at += size
    batches += lines.end()
    return [[row["c0"], row["c1"]] for batch in batches for row in batch.to_pylist()]


def as_text(value):
    if value is None:
        return "\\N"
    for sign, written in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
        value = value.replace(sign, written)
    return value


def as_csv(value):
    if value is None:
        return ""
    return '"' + value.replace('"', '""') + '"'


@given(ROWS, st.lists(st.integers(0, 20), max_size=6), st.booleans())
def test_text_is_read_as_postgresql_reads_it(rows, sizes, small):
    data = "".join("\t".join(map(as_text, row)) + "\n" for row in rows).encode()
    with pieces_of(40 if small else 1 << 20):
        assert parsed(CopyIn("t"), data, sizes) == rows


@given(ROWS, st.lists(st.integers(0, 20), max_size=6), st.booleans())
def test_csv_is_read_as_postgresql_reads_it(rows, sizes, small):
    data = "".join(",".join(map(as_csv, row)) + "\n" for row in rows).encode()
    copy = CopyIn("t", format="csv", delimiter=",", null="")
    with pieces_of(40 if small else 1 << 20):
        assert parsed(copy, data, sizes) == rows


class pieces_of:
    """Reads in pieces of some bytes."""

    def __init__(self, size):
        self._size = size

    def __enter__(self):
        self._patch = pytest.MonkeyPatch()
        module = "queryard.service.postgres.copy_lines.PIECE_BYTES"
        self._patch.setattr(module, self._size)

    def __exit__(self, *exception):
        self._patch.undo()


@pytest.mark.parametrize(
    ("options", "data", "expected"),
    [
        ("", "1|2\n", "missing data for column"),
        ("(DELIMITER '|', NULL '')", "1|\n|x\\|y\n", [["1", None], [None, "x|y"]]),
        ("(FORMAT csv, HEADER)", 'a,b\n"1",x""y\n', [["1", "xy"]]),
        ("(FORMAT csv, HEADER match)", "a,c\n1,2\n", "the header has the columns"),
        ("(FORMAT csv, QUOTE '^', ESCAPE '!')", "^a,!^b!!^,c\n", [["a,^b!", "c"]]),
        ("(FORMAT csv, NULL 'nil')", 'nil,"nil"\r\n,x\r\n', [[None, "nil"], ["", "x"]]),
        ("CSV", '1,"open\n', "unterminated CSV quoted field"),
        ("CSV", "1,2,3\n", "extra data after last expected column"),
        ("", "a\\x41\\101\tb\n\\.\nrest of it\n", [["aAA", "b"]]),
        ("", "\\303\\251\tx\r\n", [["é", "x"]]),
        ("", "a\tb", [["a", "b"]]),
    ],
)
def test_options_and_errors(options, data, expected):
    copy = copy_of(Text(f"COPY t (a, b) FROM STDIN {options}"))
    if isinstance(expected, str):
        with pytest.raises(PostgresError, match=expected):
            parsed(copy, data.encode(), [])
    else:
        assert parsed(copy, data.encode(), []) == expected


TYPES = {
    "i": ("INTEGER", 7),
    "big": ("HUGEINT", Decimal(2**70)),
    "d": ("DECIMAL(9,2)", Decimal("1.25")),
    "f": ("DOUBLE", 2.5),
    "b": ("BOOLEAN", True),
    "t": ("VARCHAR", 'tab\tand "quotes", \\ and é'),
    "day": ("DATE", dt.date(2024, 2, 29)),
    "moment": ("TIMESTAMP", dt.datetime(2024, 2, 29, 1, 2, 3, 4)),
    "zoned": ("TIMESTAMPTZ", dt.datetime(2024, 2, 29, 1, 2, 3, tzinfo=dt.UTC)),
    "u": ("UUID", uuid.UUID(int=5)),
    "raw": ("BLOB", b"\x00\xff"),
    "many": ("INTEGER[]", [1, None, 3]),
    "words": ("VARCHAR[]", ["a", 'b,"c"']),
    "span": ("INTERVAL", dt.timedelta(days=3, hours=4)),
}
OIDS = {
    **{"i": "int4", "big": "numeric", "d": "numeric", "f": "float8", "b": "bool", "t": "text"},
    **{"day": "date", "moment": "timestamp", "zoned": "timestamptz", "u": "uuid", "raw": "bytea"},
    **{"many": "int4[]", "words": "text[]", "span": "interval"},
}


@pytest.fixture
def made(server):
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("form", ["text", "binary"])
def test_values_of_every_type(made, form):
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
    made.execute(f"CREATE TEMP TABLE brought ({columns})")
    values = tuple(value for _, value in TYPES.values())
    with made.cursor().copy(f"COPY brought FROM STDIN (FORMAT {form})") as copy:
        if form == "binary":
            copy.set_types(list(OIDS.values()))
        for _ in range(3):
            copy.write_row(values)
        copy.write_row([None] * len(values))
    rows = made.execute("SELECT * FROM brought").fetchall()
    assert rows == [values] * 3 + [(None,) * len(values)]


def test_csv_many_rows_and_some_columns(made):
    made.execute("CREATE TEMP TABLE many (n INTEGER, t VARCHAR DEFAULT 'usual', x DOUBLE)")
    cursor = made.cursor()
    with cursor.copy("COPY many (x, n) FROM STDIN WITH CSV HEADER") as copy:
        copy.write("x,n\n")
        for start in range(0, 50_000, 5_000):
            copy.write("".join(f"{n}.5,{n}\n" for n in range(start, start + 5_000)))
    assert cursor.statusmessage == "COPY 50000"
    found = made.execute("SELECT count(*), sum(n), sum(x), min(t) FROM many").fetchone()
    total = sum(range(50_000))
    assert found == (50_000, total, total + 25_000.0, "usual")


@pytest.mark.parametrize(
    ("data", "state", "where"),
    [
        ("1\tx\n2\ty\nthree\tz\n", "22P02", 'COPY few, line 3, column n: "three"'),
        ("1\tx\n2\n", "22P04", "COPY few, line 2"),
        ("1\tx\n300000000000\ty\n", "22", "COPY few, line 2, column n"),
        (b"1\t\xff\n", "22021", "line 1"),
    ],
)
def test_errors_name_line_and_column_and_nothing_is_kept(made, data, state, where):
    made.execute("CREATE TEMP TABLE few (n INTEGER, t VARCHAR)")
    with pytest.raises(psycopg.Error) as found, made.cursor().copy("COPY few FROM STDIN") as copy:
        copy.write(data)
    assert found.value.sqlstate.startswith(state)
    assert where in found.value.diag.context
    assert made.execute("SELECT count(*) FROM few").fetchone() == (0,)


def test_a_client_that_fails_or_cancels_keeps_nothing(made):
    made.execute("CREATE TEMP TABLE few (n INTEGER)")
    with pytest.raises(ZeroDivisionError):
        give_up(made)
    with pytest.raises(psycopg.errors.QueryCanceled, match="due to user request"):
        cancel(made)
    assert made.execute("SELECT count(*) FROM few").fetchone() == (0,)


def give_up(made):
    with made.cursor().copy("COPY few FROM STDIN") as copy:
        copy.write("1\n")
        raise ZeroDivisionError


def cancel(made):
    with made.cursor().copy("COPY few FROM STDIN") as copy:
        copy.write("1\n")
        made.cancel_safe()
        for _ in range(20):
            copy.write("1\n" * 1000)


def test_a_copy_is_part_of_its_transaction(tmp_path):
    (tmp_path / "data").mkdir()
    with duckdb.connect(str(tmp_path / "data" / "shop.duckdb")) as shop:
        shop.execute("CREATE TABLE stock (id INTEGER PRIMARY KEY, what VARCHAR)")
    grants = {"sales": Access(sealed=True, writes=frozenset({"shop"}))}
    limits = ServiceLimits(copy_bytes=10_000)
    with a_server(tmp_path, grants=grants, limits=limits) as served:
        with psycopg.connect(served.dsn()) as made:
            bring(made, "COPY shop.stock FROM STDIN", "1\tone\n2\ttwo\n")
            assert made.execute("SELECT count(*) FROM shop.stock").fetchone() == (2,)
            made.rollback()
            assert made.execute("SELECT count(*) FROM shop.stock").fetchone() == (0,)
            made.execute("INSERT INTO shop.stock VALUES (3, 'three')")
            bring(made, "COPY shop.stock (what, id) FROM STDIN CSV", '"f,our",4\n')
            made.commit()
            with pytest.raises(psycopg.errors.UniqueViolation):
                bring(made, "COPY shop.stock FROM STDIN", "5\tfive\n4\tagain\n")
            made.rollback()
            with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="10,000 bytes"):
                bring(made, "COPY shop.stock FROM STDIN", "9\tx\n" * 3_000)
            made.rollback()
            with pytest.raises(psycopg.errors.UndefinedTable):
                bring(made, "COPY shop.nothing FROM STDIN", "")
        with (
            psycopg.connect(served.dsn("eve"), autocommit=True) as other,
            pytest.raises(psycopg.errors.InsufficientPrivilege, match="may read"),
        ):
            bring(other, "COPY shop.stock FROM STDIN", "7\tx\n")
    with duckdb.connect(str(tmp_path / "data" / "shop.duckdb"), read_only=True) as shop:
        assert shop.execute("FROM stock ORDER BY id").fetchall() == [(3, "three"), (4, "f,our")]
    assert not list((tmp_path / "temp").rglob("rows.parquet"))


def bring(made, sql, data):
    with made.cursor().copy(sql) as copy:
        copy.write(data)


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql_copies_a_file(server, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text('n,t\n1,"a\nb"\n2,\n')
    sql = [
        "CREATE TEMP TABLE t (n INTEGER, t VARCHAR)",
        f"\\copy t FROM '{file}' CSV HEADER",
        "SELECT n, coalesce(t, 'nothing') FROM t ORDER BY n",
    ]
    steps = [part for each in sql for part in ("-c", each)]
    done = subprocess.run(
        ["psql", server.dsn(), "-X", "-A", "-t", "-q", *steps],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    assert (done.stdout, done.stderr) == ("1|a\nb\n2|nothing\n", "")
