"""What must run exactly, and the reason that is given."""

from __future__ import annotations

import math
import statistics
from pathlib import Path

import duckdb
import pytest
from online_yard import OnlineYard

from queryard.estimate.online import changes_of
from queryard.sql.online import NotOnline, OnlinePlan, Partial

REASONS = {
    "SELECT v FROM sale ORDER BY v": "there is no aggregate over sale",
    "SELECT DISTINCT shop FROM sale": "distinct rows of a part of a table",
    "SELECT 1": "no table is read",
    "SELECT shop, sum(v) OVER (PARTITION BY shop) FROM sale": "window functions",
    "SELECT sum(DISTINCT v) FROM sale": "sum(DISTINCT …) of a part",
    "SELECT count(*) FROM sale a JOIN sale b ON a.id = b.item": "sale is read 2 times",
    "SELECT sum(v) FROM sale WHERE v > (SELECT avg(v) FROM sale)": "an inner aggregate reads sale",
    "SELECT sum(v) FROM sale s WHERE v > (SELECT avg(v) FROM sale t WHERE t.item = s.item)": (
        "an inner aggregate reads sale"
    ),
    "SELECT max(t) FROM (SELECT shop, sum(v) AS t FROM sale GROUP BY shop)": (
        "an aggregate of an aggregate over sale"
    ),
    "SELECT count(*) FROM item WHERE item IN (SELECT item FROM sale)": "are only looked for",
    "SELECT i.item, count(s.id) FROM item i LEFT JOIN sale s ON s.item = i.item GROUP BY ALL": (
        "an outer join keeps rows without a partner in sale"
    ),
    "SELECT count(*) FROM sale s FULL JOIN item i ON s.item = i.item": "an outer join keeps rows",
    "SELECT sum(v) FROM (SELECT v FROM sale ORDER BY v LIMIT 10)": "chooses rows of sale before",
    "SELECT sum(v) FROM (SELECT v FROM sale UNION ALL SELECT price FROM item)": "a set operation",
    "SELECT sum(v) FROM sale UNION ALL SELECT sum(price) FROM item": "a set operation",
    "SELECT shop, max(v) AS m FROM sale GROUP BY shop ORDER BY m": "ORDER BY a quantile, minimum",
    "SELECT shop, sum(v) FROM sale GROUP BY shop HAVING max(v) > 3": "HAVING asks for",
    "SELECT sum(v) / max(v) FROM sale": "mixes an estimate with",
    "SELECT CASE WHEN sum(v) > 5 THEN 'much' END FROM sale": "is no number",
    "SELECT median(v) + 1 FROM sale": "is computed of a quantile",
    "SELECT sum(id) % 7 FROM sale": "the remainder of an estimate",
    "SELECT bit_xor(id) FROM sale": "bit_xor of a part of the rows",
    "SELECT string_agg(shop, ',') FROM sale": "string_agg",
    "SELECT count(*) FROM sale WHERE random() < 0.5": "random() does not give the same answer",
}


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> OnlineYard:
    folder: Path = tmp_path_factory.mktemp("refused")
    tables = {
        "sale": "SELECT i AS id, i % 40 AS item, 'shop ' || i % 5 AS shop, "
        "CAST(i % 97 AS DOUBLE) AS v FROM range(3000) t(i)",
        "item": "SELECT i AS item, i * 1.5::DOUBLE AS price FROM range(40) t(i)",
    }
    with duckdb.connect() as connection:
        for name, sql in tables.items():
            connection.execute(f"COPY ({sql}) TO '{folder / name}.parquet' (FORMAT parquet)")
    return OnlineYard(folder, tuple(tables), files=10)


@pytest.mark.parametrize("sql", REASONS)
def test_the_reason_is_told(yard: OnlineYard, sql: str):
    with pytest.raises(NotOnline) as refused:
        yard.plan(sql)
    assert REASONS[sql] in refused.value.reason


def test_an_outer_join_that_keeps_the_sampled_rows_is_online(yard: OnlineYard):
    yard.assert_exact("SELECT count(i.price) FROM item i RIGHT JOIN sale s ON s.item = i.item")


def test_an_inner_block_over_another_table_runs_first(yard: OnlineYard):
    plan = yard.assert_exact("SELECT sum(v) FROM sale WHERE v > (SELECT avg(price) FROM item)")
    assert [d.tables for d in plan.dimensions] == [("item",)]


def test_a_cte_that_is_read_once_is_inlined(yard: OnlineYard):
    yard.assert_exact(
        "WITH big AS (SELECT shop, v FROM sale WHERE v > 50), few AS (SELECT * FROM item LIMIT 3) "
        "SELECT shop, sum(v), count(*) FROM big, few GROUP BY shop ORDER BY shop"
    )


def test_groups_joined_with_a_table_keep_their_estimates(yard: OnlineYard):
    sql = (
        "SELECT i.price, g.total FROM (SELECT item, sum(v) AS total FROM sale GROUP BY item) g "
        "JOIN item i ON i.item = g.item ORDER BY i.price"
    )
    plan = yard.assert_exact(sql)
    assert [field.kind for field in plan.fields] == ["key", "estimated"]
    found = yard.estimated(plan, read=6)
    assert len(found.rows) == 40


def test_bounds_say_on_which_side_the_truth_is(yard: OnlineYard):
    sql = "SELECT min(v), max(v), count(DISTINCT item), max(v) - min(v), sum(v) FROM sale"
    plan = yard.assert_exact(sql)
    assert [(f.kind, f.direction) for f in plan.fields] == [
        ("bound", "at most"),
        ("bound", "at least"),
        ("bound", "at least"),
        ("bound", ""),
        ("estimated", ""),
    ]
    assert yard.estimated(plan, read=5).rows[0].estimates[:4] == (None,) * 4


def test_quantiles_have_intervals_and_do_not_merge(yard: OnlineYard):
    plan = yard.plan("SELECT shop, median(v), quantile_cont(v, 0.9) FROM sale GROUP BY shop")
    assert not plan.merges
    assert [field.kind for field in plan.fields] == ["key", "quantile", "quantile"]
    for row in yard.estimated(plan, read=6).rows:
        median, high = row.estimates[1:]
        assert median is not None
        assert high is not None
        assert median.low is not None
        assert median.low <= 48 <= (median.high or 0) + 3
        assert high.value == pytest.approx(87, abs=5)


def test_having_and_limit_over_estimates_tell_settled_rows(yard: OnlineYard):
    plan = yard.plan(
        "SELECT item, sum(v) AS total FROM sale GROUP BY item HAVING sum(v) > 3600 "
        "ORDER BY total DESC LIMIT 3"
    )
    assert plan.ordering is not None
    assert (plan.ordering.limit, plan.ordering.descending) == (3, True)
    assert [c.side for c in plan.having] == ["above"]
    found = yard.estimated(plan, read=9)
    assert len(found.rows) <= 3
    assert found.unsettled > 0
    assert yard.estimated(plan, read=10).unsettled == 0


def test_a_heavy_tail_is_noticed(tmp_path: Path):
    sql = (
        "SELECT i AS id, CASE WHEN i = 17 THEN 1e9 ELSE 1.0 + i % 3 END AS v FROM range(5000) t(i)"
    )
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({sql}) TO '{tmp_path / 'odd.parquet'}' (FORMAT parquet)")
    yard = OnlineYard(tmp_path, ("odd",), files=12)
    plan = yard.plan("SELECT sum(v), count(*) FROM odd WHERE id % 2 = 1")
    holds = yard.native.sql(f"SELECT filename FROM {yard.sampled('odd')} WHERE id = 17")
    place = int(holds.fetchall()[0][0][1:])
    (row,) = yard.estimated(plan, read=max(place + 1, 6)).rows
    assert [each.note for each in row.estimates if each is not None] == ["heavy tail", ""]


def test_files_and_rows_are_left_out_as_the_maths_says(yard: OnlineYard):
    """What is summed up over files is what `changes_of` makes of the same files."""
    plan = yard.plan("SELECT avg(v), stddev_pop(v) FROM sale WHERE item < 30")
    partials, relation = yard.partials(plan), yard.sampled("sale")
    (row,) = yard.groups(plan, partials, range(yard.files))[0].to_pylist()
    values = yard.native.sql(f"SELECT filename, v FROM {relation} WHERE item < 30").fetchall()
    everything = [v for _, v in values]
    ends = [min(everything), max(everything)]
    for place, compute in enumerate((statistics.fmean, statistics.pstdev)):
        without = [
            compute([v for file, v in values if file != left_out])
            for left_out in sorted({file for file, _ in values})
        ]
        without_row = []
        for end in ends:
            fewer = list(everything)
            fewer.remove(end)
            without_row.append(compute(fewer))
        wanted = changes_of(compute(everything), without, without_row)
        mine = [row[f"m{place}_{part}"] for part in "dqbr"]
        told = [wanted.total, wanted.squares, wanted.largest, wanted.row]
        assert mine == pytest.approx(told, rel=1e-3, abs=1e-9)


def test_the_largest_values_of_files_tell_of_tails(yard: OnlineYard):
    plan = yard.plan("SELECT sum(v), var_pop(v) FROM sale WHERE item < 30")
    (row,) = yard.groups(plan, yard.partials(plan), range(yard.files))[0].to_pylist()
    values: dict[str, list[float]] = {}
    for file, v in yard.native.sql(
        f"SELECT filename, v FROM {yard.sampled('sale')} WHERE item < 30 AND v IS NOT NULL"
    ).fetchall():
        values.setdefault(file, []).append(float(v))
    of_sum = [max(map(abs, each)) for each in values.values()]
    of_variance = [max(abs(v - statistics.fmean(each)) for v in each) for each in values.values()]
    for additive, largest in zip(plan.additives, (of_sum, of_variance), strict=True):
        wanted = statistics.stdev(math.log(value) for value in largest)
        assert row[f"{additive.name}_s"] == pytest.approx(wanted, rel=1e-6)
        assert row[f"{additive.name}_k"] == len(largest)
    assert [additive.moments for additive in plan.additives] == [2, 4]


def test_later_files_need_not_tell_the_tails_of_sums(yard: OnlineYard):
    plan = yard.plan("SELECT sum(v) AS s, var_pop(v) AS spread FROM sale")
    rows = []
    for tails in (True, False):
        found = yard.native.execute(plan.partial_sql(yard.sampled("sale"), tails=tails))
        names = [column[0] for column in found.description]
        assert names == ["file", "n", *(p.name for p in sorted_partials(plan))]
        rows.append(dict(zip(names, found.fetchall()[0], strict=True)))
    ends = [name for name in rows[0] if name.endswith(("_lo", "_hi"))]
    assert all(rows[0][name] is not None for name in ends)
    assert [rows[1][name] is None for name in ends] == [True, True, False, False]


def sorted_partials(plan: OnlinePlan) -> list[Partial]:
    """Partial columns as statements have them: the ends of values come last."""
    return sorted(plan.partials, key=lambda each: each.name.endswith(("_lo", "_hi")))
