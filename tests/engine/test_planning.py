"""What DuckDB's plans tell of the work of statements, without running them."""

from __future__ import annotations

import threading

import duckdb
import pyarrow as pa
import pytest

from queryard.engine import planning
from queryard.engine.planning import Planner
from queryard.engine.plans.filters import kept_share, ranges
from queryard.engine.syntax.classify import classify
from queryard.estimate.prices import Features, bounded, doubt_of, total_of
from queryard.sql.catalog import open_catalog
from queryard.sql.statistics import ColumnStatistics
from queryard.sql.statistics.judge import Judge
from queryard.sql.statistics.quick import quick_statistics

ROWS = 400_000


@pytest.fixture
def planner(facts):
    made = Planner(open_catalog(facts))
    yield made
    made.close()


def features(planner: Planner, sql: str, parameters=()) -> Features:
    found = planner.features(classify(sql)[0], parameters)
    assert found is not None
    return found


def work_of(found: Features) -> float:
    return bounded(sum(total_of([found]).values()))


def test_a_scan_tells_its_table_its_rows_and_the_bytes_of_its_columns(planner):
    one = features(planner, "SELECT max(amount + 1) FROM facts")
    two = features(planner, "SELECT max(amount + 1), max(words || 'x') FROM facts")
    (scan,) = one.scans
    assert (scan.table, scan.rows, scan.columns) == ("facts", ROWS, 1)
    assert two.scans[0].columns == 2
    assert 0 < scan.bytes < two.scans[0].bytes
    assert one.rows == 1


def test_row_groups_that_cannot_hold_a_value_are_not_read(planner):
    whole = features(planner, "SELECT sum(amount) FROM facts")
    part = features(planner, "SELECT sum(amount) FROM facts WHERE id < 1000")
    assert part.scans[0].rows == pytest.approx(51_200)
    assert work_of(part) < work_of(whole)


def test_filters_are_known_by_the_ranges_of_columns(planner):
    few = features(planner, "SELECT id FROM facts WHERE small < 10 ORDER BY id")
    most = features(planner, "SELECT id, day FROM facts WHERE small < 90 ORDER BY id")
    assert few.rows == pytest.approx(ROWS * 10 / 96, rel=0.05)
    assert most.rows == pytest.approx(ROWS * 90 / 96, rel=0.05)


def test_groups_are_as_many_as_there_are_values(planner):
    found = features(planner, "SELECT key, count(*) FROM facts GROUP BY key")
    assert found.amounts["direct_rows"] == ROWS
    assert 500 <= found.rows <= 2_000


def test_joins_tell_rows_built_and_probed(planner):
    sql = "SELECT part, sum(amount) FROM facts JOIN dims USING (key) GROUP BY part"
    amounts = features(planner, sql).amounts
    assert amounts["indexed_rows"] == pytest.approx(ROWS, rel=0.1)
    assert amounts["indexed_values"] == pytest.approx(2_000, rel=0.1)
    by_text = features(planner, "SELECT count(*) FROM facts a JOIN facts b USING (words)").amounts
    assert by_text["built_values"] == pytest.approx(ROWS, rel=0.1)
    assert by_text["probe_misses"] == pytest.approx(ROWS, rel=0.1)


@pytest.mark.parametrize(
    ("sql", "amount"),
    [
        ("SELECT id, words FROM facts ORDER BY amount", "sorted_rows"),
        ("SELECT id, sum(amount) OVER (PARTITION BY key ORDER BY id) FROM facts", "windowed_rows"),
        ("SELECT count(*) FROM facts WHERE words LIKE '%ab%cd%'", "matched_bytes"),
        ("SELECT count(*) FROM facts a JOIN facts b ON a.small <> b.small", "pairs"),
        ("SELECT count(*) FROM facts a, facts b WHERE a.amount * b.amount = 7", "made_rows"),
        ("SELECT count(*) FROM facts a JOIN facts b ON a.amount < b.amount", "paired_rows"),
    ],
)
def test_every_kind_of_work_counts(planner, sql, amount):
    plain = "SELECT id, words, amount, key FROM facts"
    assert features(planner, plain).amounts.get(amount, 0.0) == 0.0
    assert features(planner, sql).amounts[amount] > ROWS / 100


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT a.id FROM facts a, dims b", ROWS * 1e3),
        ("SELECT a.id FROM facts a, dims b, range(50)", ROWS * 5e4),
        ("SELECT a.id FROM facts a JOIN dims b ON a.key < b.key", ROWS * 500),
        ("SELECT a.id FROM facts a JOIN dims b ON a.key <> b.key", ROWS * 1e3),
        ("SELECT a.key FROM dims a ASOF JOIN facts b ON a.key >= b.id", 1e3),
        ("SELECT range FROM range(30000000)", 3e7),
        ("SELECT * FROM (SELECT id FROM facts) POSITIONAL JOIN (SELECT key FROM dims)", ROWS),
    ],
)
def test_joins_without_keys_give_as_many_rows_as_they_do(planner, sql, rows):
    assert features(planner, sql).rows == pytest.approx(rows, rel=0.05)


def test_a_cross_product_costs_by_its_pairs_and_counting_them_next_to_nothing(planner):
    small, large = (
        work_of(features(planner, f"SELECT count(*) FROM {tables}"))
        for tables in ("facts, dims", "facts a, facts b")
    )
    assert 0.02 < small < 1.0
    assert 10.0 < large < 100.0


def test_ranges_that_overlap_are_a_band_and_no_half_of_all_pairs(tmp_path):
    duckdb.sql(
        "COPY (SELECT range * 3 AS lo, range * 3 + hash(range) % 20 AS hi, random() AS x, "
        f"hash(range) % 1000 AS k FROM range(20000)) TO '{tmp_path}/spans.parquet'"
    )
    planner = Planner(open_catalog(tmp_path))
    joined = "SELECT a.lo FROM spans a JOIN spans b ON"
    band = features(planner, f"{joined} a.lo < b.hi AND a.hi > b.lo")
    within = features(planner, f"{joined} a.x BETWEEN b.lo AND b.hi")
    apart = features(planner, f"{joined} a.x < b.x AND a.k > b.k")
    planner.close()
    assert apart.rows == pytest.approx(20_000**2 / 4, rel=0.1)
    assert max(band.rows, within.rows) < 20_000**2 / 100
    assert work_of(apart) > 20 * work_of(band)


def test_lists_are_as_long_as_the_file_says_and_a_guess_else(tmp_path):
    duckdb.sql(
        "COPY (SELECT range AS a, list_transform(range(7), lambda x: x + range) AS l "
        f"FROM range(1000)) TO '{tmp_path}/lists.parquet'"
    )
    planner = Planner(open_catalog(tmp_path))
    known = features(planner, "SELECT unnest(l) FROM lists")
    guessed = features(planner, "SELECT unnest(range(a)) FROM lists")
    planner.close()
    assert (known.rows, doubt_of(known)) == (7_000, 0.0)
    assert guessed.rows > 1_000
    assert doubt_of(guessed) > 0.1


def test_a_recursion_is_more_than_one_turn_and_a_guess(planner):
    once = features(planner, "SELECT key + 1 FROM facts WHERE id < 5")
    again = features(
        planner,
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t, facts WHERE id = n) "
        "SELECT * FROM t",
    )
    assert work_of(again) > 3 * work_of(once)
    assert doubt_of(again) > 0.1


def test_nonsense_cardinalities_keep_their_order_and_stay_finite(planner):
    works = [
        work_of(features(planner, "SELECT count(*) FROM " + ", ".join(["facts", *tables])))
        for tables in ([], ["facts b"], ["facts b", "facts c"], [f"facts x{n}" for n in range(60)])
    ]
    assert works == sorted(works)
    assert works[1] < works[2] < works[3] < 1e6


def test_a_limit_ends_the_reading(planner):
    whole = features(planner, "SELECT * FROM facts")
    assert work_of(features(planner, "SELECT * FROM facts LIMIT 5")) < work_of(whole) / 3
    # A sort must see all rows first.
    ordered = features(planner, "SELECT id, key FROM facts ORDER BY amount LIMIT 5")
    assert ordered.scans[0].rows == ROWS


def test_text_files_are_read_whole(planner, tmp_path):
    path = tmp_path / "lines.csv"
    duckdb.sql(f"COPY (SELECT range AS a, range * 2 AS b FROM range(5000)) TO '{path}'")
    text = Planner(open_catalog(tmp_path))
    try:
        assert features(text, "SELECT sum(a) FROM lines").amounts["text_bytes"] == (
            path.stat().st_size
        )
    finally:
        text.close()


def test_parameters_are_bound(planner):
    sql = "SELECT sum(amount) FROM facts WHERE id < ?"
    assert features(planner, sql, [1000]).scans[0].rows == pytest.approx(51_200)
    named = "SELECT min(amount) FROM facts WHERE id < $most"
    assert features(planner, named, {"most": 1000}).scans[0].rows == pytest.approx(51_200)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM nowhere",
        "SELECT nothing FROM facts",
        "SELECT own_function(id) FROM facts",
        "SELECT sum(amount) FROM facts WHERE id < ?",  # without its parameter
        "SET threads = 3",
        "CREATE TEMP TABLE t AS FROM facts",
        "EXPLAIN FROM facts",
        "SELECT * FROM frame",
    ],
)
def test_what_cannot_be_planned_over_files_is_none_and_no_error(facts, sql):
    planner = Planner(open_catalog(facts, {"frame": pa.table({"a": [1, 2]})}))
    assert planner.features(classify(sql)[0]) is None
    planner.close()


@pytest.mark.parametrize(
    "sql",
    [
        "WITH a AS (FROM facts), b AS (FROM a WHERE id < 100) SELECT * FROM a JOIN b USING (id)",
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 9) FROM t, dims",
        "SELECT * FROM dims d, LATERAL (SELECT count(*) FROM facts WHERE key = d.key) x",
        "SELECT * FROM dims ASOF JOIN facts ON dims.key = facts.key AND part >= id",
        "SELECT * FROM dims FULL JOIN facts ON dims.key = facts.key AND part < id",
        "SELECT * FROM dims a JOIN dims b ON a.key < b.key AND a.part > b.part",
        "SELECT * FROM dims POSITIONAL JOIN facts",
        "SELECT DISTINCT ON (key) * FROM facts ORDER BY key, id DESC",
        "SELECT key, part, count(*) FROM dims GROUP BY ROLLUP (key, part)",
        "SELECT id FROM facts EXCEPT SELECT key FROM dims",
        "SELECT unnest([1, 2, 3]), name FROM dims LIMIT 10 PERCENT",
        "SELECT * FROM facts USING SAMPLE 1 PERCENT",
        "SELECT * FROM facts WHERE words LIKE '%it''s (odd) AND%' OR NOT (small IN (1, NULL))",
        "SELECT * FROM (VALUES (1, 'a')) v(x, y) JOIN dims ON x = key",
        "SELECT * FROM none JOIN facts USING (key)",
        "SUMMARIZE facts",
        "SELECT range FROM range(10)",
    ],
)
def test_statements_of_every_shape_have_amounts(planner, sql):
    found = features(planner, sql)
    assert found.rows >= 0
    assert all(amount >= 0 for amount in found.amounts.values())
    assert work_of(found) < 60


def test_a_statement_is_planned_once_as_long_as_its_files_stay(tmp_path, monkeypatch):
    path = tmp_path / "numbers.parquet"
    duckdb.sql(f"COPY (SELECT range AS a FROM range(1000)) TO '{path}'")
    catalog = open_catalog(tmp_path)
    planner = Planner(catalog)
    asked: list[str] = []
    explain = planning._explain
    monkeypatch.setattr(
        planning,
        "_explain",
        lambda connection, sql, _: (asked.append(sql), explain(connection, sql, ()))[1],
    )
    one, two = (classify("SELECT sum(a) FROM numbers WHERE a > 1")[0] for _ in range(2))
    assert planner.known(one) is None
    assert planner.features(one) is planner.features(two) is planner.known(two)
    assert len(asked) == 1
    duckdb.sql(f"COPY (SELECT range AS a FROM range(5000)) TO '{path}'")
    catalog.refresh()
    assert planner.known(one) is None
    found = planner.features(one)
    assert found is not None
    assert found.scans[0].rows == 5000
    planner.close()


def test_every_statement_has_the_plan_of_its_own_literals(planner):
    text = "SELECT id FROM facts WHERE small < {}"
    few, most = (classify(text.format(n))[0] for n in (5, 90))
    found = [planner.features(one) for one in (few, most)]
    assert [one.rows for one in found] == pytest.approx([ROWS * 5 / 96, ROWS * 90 / 96], rel=0.1)
    assert [planner.known(few), planner.known(most)] == found
    assert planner.known(classify(text.format(50))[0]) is None
    assert planner.alike(classify(text.format(50))[0]) is found[1]
    given = classify(text.format("?"))[0]
    assert planner.features(given, [5]).rows == found[0].rows
    assert planner.features(given, [90]).rows == found[1].rows
    assert planner.known(given, [5]).rows == found[0].rows


def test_a_template_that_cannot_be_planned_is_tried_once_and_one_that_can_again(
    planner, monkeypatch
):
    tried = []
    explain = planning._explain
    monkeypatch.setattr(
        planning, "_explain", lambda *asked: (tried.append(asked[1]), explain(*asked))[1]
    )
    for number in (1, 2, 3):
        lost = classify(f"SELECT nothing FROM facts WHERE id = {number}")[0]
        assert planner.features(lost) is None
    assert len(tried) == 1
    for column, is_planned in ((1, True), (7, False), (2, True)):
        one = classify(f"SELECT id, key FROM facts ORDER BY {column}")[0]
        assert (planner.features(one) is not None) == is_planned


def test_what_is_learnt_of_a_table_is_judged_without_another_plan_of_duckdb(facts, monkeypatch):
    catalog = open_catalog(facts)
    planner = Planner(catalog)
    tried = []
    explain = planning._explain
    monkeypatch.setattr(
        planning, "_explain", lambda *asked: (tried.append(asked[1]), explain(*asked))[1]
    )
    sql = "SELECT id FROM facts WHERE small % 3 = 0"
    before = features(planner, sql)
    quick_statistics(catalog, "facts")
    after = features(planner, sql)
    planner.close()
    assert len(tried) == 1
    assert before.rows != after.rows
    assert after.rows == pytest.approx(ROWS / 3, rel=0.1)


def test_the_filter_of_a_table_is_judged_with_all_its_keys_in_one_statement(facts, monkeypatch):
    catalog = open_catalog(facts)
    for key in catalog.tables:
        quick_statistics(catalog, key)
    asked = []
    answer = Judge._rows
    monkeypatch.setattr(Judge, "_rows", lambda self, sql: (asked.append(sql), answer(self, sql))[1])
    planner = Planner(catalog)
    features(planner, "SELECT name FROM facts JOIN dims USING (key) WHERE part < 3 AND small < 9")
    planner.close()
    by_table = [
        [sql for sql in asked if f'FROM "sample {key}" WHERE' in sql] for key in ("facts", "dims")
    ]
    assert [len(found) for found in by_table] == [1, 1]


def test_bounds_and_shares_are_the_same_whether_asked_for_together_or_apart(facts):
    together, apart = open_catalog(facts), open_catalog(facts)
    for catalog in (together, apart):
        quick_statistics(catalog, "facts")
    condition, names = "small < 9 AND id > 100", ("id", "key", "words", "day")
    together.judge.prepare("facts", condition, names)
    for judge in (together.judge, apart.judge):
        assert judge.bounds("facts", "words", condition) is None
        assert judge.bounds("facts", "id", condition)[1] > 100
    assert together.judge.share("facts", condition) == apart.judge.share("facts", condition)
    for name in names:
        found = [judge.bounds("facts", name, condition) for judge in (together.judge, apart.judge)]
        assert found[0] == found[1]


def test_tables_of_the_same_columns_are_told_apart_by_schema(tmp_path):
    for schema, rows in (("small", 10), ("large", 50_000)):
        (tmp_path / schema).mkdir()
        duckdb.sql(
            f"COPY (SELECT range AS a FROM range({rows})) TO '{tmp_path / schema}/t.parquet'"
        )
    tables = {f"{s}.t": str(tmp_path / s / "t.parquet") for s in ("small", "large")}
    planner = Planner(open_catalog(None, tables))
    assert features(planner, "SELECT sum(a * 2) FROM large.t").scans[0].rows == 50_000
    assert features(planner, "SELECT sum(a * 2) FROM small.t").scans[0].rows == 10
    both = features(planner, "SELECT * FROM small.t JOIN large.t USING (a)")
    assert sorted(scan.rows for scan in both.scans) == [10, 50_000]
    planner.close()


def test_many_threads_may_ask_at_once_and_a_closed_planner_says_none(planner):
    statements = [classify(f"SELECT sum(amount) AS c{n} FROM facts")[0] for n in range(8)]
    found: list[Features | None] = []
    threads = [
        threading.Thread(target=lambda s=s: found.append(planner.features(s))) for s in statements
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert None not in found
    planner.close()
    assert planner.features(classify("SELECT sum(price) FROM facts")[0]) is None


# --- filters as DuckDB writes them ---------------------------------------------------------------

NUMBERS = {"x": ColumnStatistics(0.0, 0, 100, 101.0, 8.0), "y": ColumnStatistics(0.0, 1, 4, 4, 8.0)}


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("(x < 25)", 0.25),
        ("((x >= 20) AND (x <= 70))", 0.5),
        ("(y = 3)", 0.25),
        ("(y != 3)", 0.75),
        ("(y IN (1, 2))", 0.5),
        ("(NOT (x < 25))", 0.75),
        ("((x < 50) OR (y = 3))", 0.625),
        ("((x < 50) AND (y = 3))", 0.125),
        ("(x > 1000)", 1e-9),
        ("(z = 1)", 0.2),
        ("contains(w, 'AND (x < 1)')", 0.08),
        ("(x IS NOT NULL)", 1.0),
        ("something new", 0.2),
    ],
)
def test_the_share_a_filter_keeps(text, share):
    assert kept_share(text, NUMBERS.get) == pytest.approx(share)


def test_only_what_must_hold_bounds_a_column():
    found = ranges("((x >= 20) AND (x < 70) AND (y = 3))", NUMBERS.get)
    assert found == {"x": (20.0, 70.0), "y": (3.0, 3.0)}
    assert ranges("((x >= 20) OR (y = 3))", NUMBERS.get) == {}
