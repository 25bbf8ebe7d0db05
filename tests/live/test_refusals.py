"""What a session may not do: escape the scheduler, or write without being asked to."""

from __future__ import annotations

import pytest

import queryard
from queryard.engine.errors import NotAllowed

GUARDED = [
    "SET threads = 7",
    "set THREADS to 7",
    "SET GLOBAL threads = 7",
    "SET SESSION threads = 7",
    'SET "threads" = 7',
    'SET GLOBAL "Threads" = 7',
    "SET worker_threads = 7",
    "SET external_threads = 0",
    "PRAGMA threads = 7",
    "PRAGMA threads=7",
    'PRAGMA "threads" = 7',
    "RESET threads",
    "RESET GLOBAL threads",
    "SET memory_limit = '9GB'",
    "SET max_memory = '9GB'",
    "PRAGMA memory_limit = '9GB'",
    "RESET memory_limit",
    "SET temp_directory = 'elsewhere'",
    "SET max_temp_directory_size = '1KB'",
    "SET scheduler_process_partial = false",
    "SET streaming_buffer_size = '9GB'",
    "SET lock_configuration = true",
    "-- a comment\nSET threads = 7",
    "/* a comment */ SET threads = 7",
    "/* one */ -- two\n /* three */ SET threads = 7",
    "SET/**/threads = 7",
    "SET/* GLOBAL */GLOBAL/**/threads/**/=/**/7",
    "SET -- why not\n threads = 7",
    "PRAGMA/**/threads = 7",
    "RESET/**/memory_limit",
    "SET/**/temp_directory = 'elsewhere'",
    "SET/**/streaming_buffer_size = '9GB'",
    "SELECT 1; SET threads = 7",
    "SELECT 1; SET/**/threads = 7; SELECT 2",
    "EXPLAIN ANALYZE SET threads = 7",
    "PREPARE p AS SET threads = 7",
]

SETTINGS = (
    "SELECT current_setting('threads'), current_setting('memory_limit'), "
    "current_setting('temp_directory'), current_setting('external_threads'), "
    "current_setting('streaming_buffer_size')"
)


@pytest.mark.parametrize("session", ["reading", "writing"])
def test_no_spelling_escapes_the_slots_and_the_budget(data, tmp_path, session):
    with queryard.connect(
        data, slots=2, memory="512 MB", temp=tmp_path / "temp", write=session == "writing"
    ) as qy:
        qy.sql("CREATE TEMP TABLE here AS SELECT 1 AS one")  # so that the next ones run there
        before = qy.sql(f"{SETTINGS} FROM here").fetchall()
        for sql in GUARDED:
            with pytest.raises(queryard_errors(), match=r".") as refused:
                qy.sql(sql).fetchall()
            assert "IndexError" not in repr(refused.value), sql
            assert qy.sql(f"{SETTINGS} FROM here").fetchall() == before, sql


def queryard_errors() -> type[Exception]:
    from queryard.core.errors import QueryardError

    return QueryardError


def test_the_reason_names_the_setting_and_the_remedy(qy):
    with pytest.raises(NotAllowed, match=r"threads.*connect\(slots"):
        qy.sql("SET threads = 7")
    with pytest.raises(NotAllowed, match=r"memory_limit.*connect\(memory"):
        qy.sql("PRAGMA memory_limit = '9GB'")


def test_other_settings_are_the_users(qy):
    qy.sql("SET default_null_order = 'nulls_first'")
    assert qy.sql("SELECT v FROM (VALUES (1), (NULL)) AS t(v) ORDER BY v").fetchall() == [
        (None,),
        (1,),
    ]
    qy.sql("RESET default_null_order")
    assert qy.sql("SELECT v FROM (VALUES (1), (NULL)) AS t(v) ORDER BY v").fetchall()[0] == (1,)
    qy.sql("SET VARIABLE here = 41")
    assert qy.sql("SELECT getvariable('here') + 1").fetchall() == [(42,)]


# {o} is a path that must not exist afterwards.
WRITES = [
    "CREATE TABLE t AS SELECT 1",
    "CREATE TABLE t (i INTEGER)",
    "CREATE OR REPLACE TABLE t AS SELECT 1",
    "/* x */ CREATE TABLE t AS SELECT 1",
    "COPY dims TO '{o}'",
    "COPY (SELECT 1) TO '{o}'",
    "COPY (FROM dims) TO '{o}' (FORMAT parquet)",
    "COPY dims TO '{o} from here'",
    "COPY /* from */ dims TO '{o}'",
    "COPY dims TO '{o}' -- from",
    "COPY dims (key) TO '{o}'",
    "COPY(FROM dims) TO '{o}'",
    "COPY \"dims\" TO '{o}' (HEADER, DELIMITER ' from ')",
    "-- hello\nCOPY dims TO '{o}'",
    "FROM dims; COPY dims TO '{o}'",
    "ATTACH '{o}' AS other",
    "ATTACH OR REPLACE '{o}' AS other",
    "ATTACH IF NOT EXISTS '{o}' AS other",
    "ATTACH ':memory:' AS other",
    "DETACH memory",
    "EXPORT DATABASE '{o}'",
    "EXPLAIN ANALYZE COPY dims TO '{o}'",
    "EXPLAIN ANALYZE CREATE TABLE t AS SELECT 1",
    "EXPLAIN/**/ANALYZE COPY dims TO '{o}'",
    "EXPLAIN /* x */ ANALYZE /* y */ COPY dims TO '{o}'",
    "EXPLAIN (ANALYZE) COPY dims TO '{o}'",
    "EXPLAIN (FORMAT json, ANALYZE) COPY dims TO '{o}'",
    "PREPARE p AS COPY dims TO '{o}'; EXECUTE p",
    "PREPARE/**/p AS COPY dims TO '{o}'; EXECUTE p",
    "PREPARE p/**/AS/**/COPY dims TO '{o}'; EXECUTE p",
    'PREPARE "a b" AS COPY dims TO \'{o}\'; EXECUTE "a b"',
    "INSTALL json",
    "FORCE INSTALL json",
    "/**/INSTALL json",
    "UPDATE EXTENSIONS",
    "SET log_query_path = '{o}'; SELECT 1",
    "SET profiling_output = '{o}'; PRAGMA enable_profiling = 'json'; SELECT 1",
    "CREATE PERSISTENT SECRET s (TYPE http)",
    'CREATE TEMP TABLE "from" AS SELECT 1 AS a; COPY "from" TO \'{o}\'',
    "COPY \"to\" TO '{o}'",
    "EXPLAIN ANALYSE COPY dims TO '{o}'",
    "EXPLAIN (ANALYSE) COPY dims TO '{o}'",
    "EXPLAIN /*üü*/ ANALYZE /*ü*/ COPY dims TO '{o}'",
    "SELECT * FROM enable_logging('QueryLog', storage='file', storage_path='{o}'); SELECT 1",
    "SELECT * FROM enable_profiling(format='json', save_location='{o}'); SELECT 1",
    "CALL enable_profiling(format='json', save_location='{o}'); SELECT 1",
    "WITH x AS (FROM enable_logging(storage='file', storage_path='{o}')) FROM x; SELECT 1",
    "IMPORT DATABASE '{i}'",
    "PRAGMA import_database('{i}')",
    "CALL enable_logging(storage='file', storage_path='{o}'); SELECT 1",
]


@pytest.fixture(scope="module")
def reader(data):
    """One session for all refusals, which leave nothing behind."""
    with queryard.connect(data, slots=2, memory="512 MB") as session:
        yield session


@pytest.mark.parametrize("sql", WRITES)
def test_a_reading_session_writes_nothing(reader, tmp_path, sql):
    out = tmp_path / "out"
    script = tmp_path / "exported"
    script.mkdir()
    (script / "schema.sql").write_text(f"COPY (SELECT 1) TO '{out}';")
    (script / "load.sql").write_text("")
    with pytest.raises(NotAllowed, match=r"only reads|writ") as refused:
        reader.sql(sql.format(o=out, i=script)).fetchall()
    assert "write=True" in str(refused.value)
    assert not list(tmp_path.glob("out*")), "something was written"
    assert reader.sql("SELECT count(*) FROM dims").fetchall() == [(1000,)]


HARMLESS = [
    "COPY dims_copy FROM '{dims}' (FORMAT parquet)",
    "CREATE TEMP TABLE t AS SELECT 'COPY x TO y'",
    "CREATE/**/TEMP TABLE t AS SELECT 1",
    "CREATE OR REPLACE TEMPORARY TABLE t AS SELECT 1",
    "CREATE TEMP VIEW v AS SELECT 1",
    "CREATE VIEW v AS SELECT 1",
    "CREATE OR REPLACE VIEW v AS SELECT 1",
    "CREATE MACRO m(x) AS x + 1",
    "CREATE OR REPLACE TEMP MACRO m(x) AS TABLE SELECT x",
    "EXPLAIN SELECT 'analyze'",
    "EXPLAIN (SELECT 'analyze')",
    "EXPLAIN (FORMAT json) SELECT 1",
    "EXPLAIN ANALYZE SELECT count(*) FROM facts",
    "EXPLAIN COPY dims TO '{o}'",
    "SELECT 'SET threads = 7'",
    "SELECT 'COPY t TO x' AS \"CREATE TABLE\"",
    "WITH copied AS (FROM dims) FROM copied",
    "PREPARE p AS SELECT 1",
    "PIVOT dims ON part USING count(*)",
    "UNPIVOT dims ON key, part",
    "SUMMARIZE dims",
    "DESCRIBE dims",
    "SHOW TABLES",
    "PRAGMA table_info('dims')",
    "SELECT * FROM pragma_table_info('dims')",
    "PRAGMA version",
    "CALL pragma_version()",
    "FROM dims LIMIT 1",
    "VALUES (1), (2)",
    "USE memory",
    "VACUUM",
    "ANALYZE",
    "CHECKPOINT",
]


@pytest.mark.parametrize("sql", HARMLESS)
def test_a_reading_session_does_the_rest(qy, data, tmp_path, sql):
    qy.sql("CREATE TEMP TABLE dims_copy (key BIGINT, part BIGINT, name VARCHAR)")
    out = tmp_path / "out"
    qy.sql(sql.format(o=out, dims=data / "dims.parquet")).fetchall()
    assert not out.exists()


def test_a_writing_session_writes(writer, tmp_path):
    out = tmp_path / "out.parquet"
    writer.sql(f"COPY (FROM dims WHERE key < 10) TO '{out}'")
    assert writer.sql(f"SELECT count(*) FROM '{out}'").fetchall() == [(10,)]
    writer.sql("CREATE TEMP TABLE kept AS FROM dims WHERE key < 5")
    writer.sql("INSERT INTO kept SELECT 77, 0, 'more'")
    assert writer.sql("SELECT count(*) FROM kept").fetchall() == [(6,)]
    writer.sql(f"ATTACH '{tmp_path / 'new.duckdb'}' AS made")
    writer.sql("CREATE TABLE made.t AS SELECT 42 AS answer")
    assert writer.sql("SELECT answer FROM made.t").fetchall() == [(42,)]
    writer.sql("DETACH made")
    assert (tmp_path / "new.duckdb").exists()
    writer.sql(f"EXPORT DATABASE '{tmp_path / 'exported'}'")
    assert (tmp_path / "exported" / "schema.sql").exists()


def test_a_refused_script_does_nothing_at_all(qy):
    with pytest.raises(NotAllowed):
        qy.sql("CREATE TEMP TABLE first AS SELECT 1; CREATE TABLE second AS SELECT 2")
    with pytest.raises(queryard_errors(), match="first"):
        qy.sql("FROM first").fetchall()
