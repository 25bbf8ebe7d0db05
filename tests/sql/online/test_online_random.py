"""Random queries: partial rows of all files, merged, give DuckDB's answer."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from online_yard import OnlineYard

from queryard.estimate.online import changes_of
from queryard.sql.online import OnlinePlan

AGGREGATES = (
    "count(*)",
    "count(s.v)",
    "sum(s.v)",
    "sum(s.q * s.v)",
    "avg(s.v)",
    "avg(s.q)",
    "var_samp(s.v)",
    "stddev_pop(s.q)",
    "min(s.day)",
    "max(s.v)",
    "count(DISTINCT s.item)",
    "sum(s.q) FILTER (WHERE s.v > 2)",
    "count_if(s.q > 3)",
    "bool_or(s.q > 8)",
    "100.0 * sum(CASE WHEN s.q > 5 THEN s.v ELSE 0 END) / sum(s.v)",
    "round(avg(s.v), 1)",
    "sum(s.v) - count(*)",
    "CASE WHEN sum(s.v) > 400 THEN sum(s.v) ELSE -1 END",
    "sum(s.v) / nullif(sum(s.q), 0)",
    "greatest(abs(sum(s.v) - 50), 3)",
    "coalesce(sum(s.v), 0) * 2",
    "sqrt(power(avg(s.q), 2))",
)
KEYS = ("s.shop", "s.q", "year(s.day)", "s.q % 3", "coalesce(s.shop, 'none')")
JOINS = {
    "": (),
    "JOIN item i ON i.item = s.item": ("i.kind",),
    "LEFT JOIN item i ON i.item = s.item AND i.price > 5": ("i.kind",),
    "JOIN item i ON i.item = s.item JOIN kind k ON k.kind = i.kind": ("k.label",),
}
CONDITIONS = (
    "s.v > 1.5",
    "s.shop IS NOT NULL",
    "s.day < DATE '2021-06-01'",
    "s.item IN (SELECT item FROM item WHERE price > 8)",
    "s.item NOT IN (SELECT item FROM item WHERE kind = 2)",
    "EXISTS (SELECT 1 FROM item x WHERE x.item = s.item AND x.price > s.v)",
    "s.v > (SELECT min(price) FROM item)",
    "s.q = 77",
)
HAVINGS = ("", "HAVING count(*) > 20", "HAVING sum(s.v) > (SELECT avg(price) FROM item)")


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> OnlineYard:
    folder: Path = tmp_path_factory.mktemp("online")
    tables = {
        "sale": "SELECT i AS id, CAST(hash(i) % 40 AS INTEGER) AS item, "
        "CASE WHEN hash(i + 1) % 7 > 0 THEN 'shop ' || (hash(i + 2) % 5) END AS shop, "
        "CASE WHEN hash(i + 3) % 9 > 0 THEN CAST((hash(i + 4) % 1000) / 100 AS DECIMAL(9, 2)) END "
        "AS v, CAST(hash(i + 5) % 10 AS SMALLINT) AS q, "
        "DATE '2020-01-01' + CAST(hash(i + 6) % 900 AS INTEGER) AS day FROM range(2000) t(i)",
        "item": "SELECT CAST(i AS INTEGER) AS item, CAST(i % 4 AS INTEGER) AS kind, "
        "(i * 7 % 13)::DOUBLE AS price FROM range(35) t(i)",
        "kind": "SELECT CAST(i AS INTEGER) AS kind, 'kind ' || i AS label FROM range(3) t(i)",
    }
    with duckdb.connect() as connection:
        for name, sql in tables.items():
            path = folder / f"{name}.parquet"
            connection.execute(f"COPY ({sql}) TO '{path}' (FORMAT parquet)")
    return OnlineYard(folder, tuple(tables), files=6)


@st.composite
def queries(draw: st.DrawFn) -> str:
    join = draw(st.sampled_from(list(JOINS)))
    keys = draw(st.lists(st.sampled_from((*KEYS, *JOINS[join])), max_size=2, unique=True))
    aggregates = draw(st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=4, unique=True))
    where = draw(st.lists(st.sampled_from(CONDITIONS), max_size=2, unique=True))
    having = draw(st.sampled_from(HAVINGS)) if keys else ""
    source = draw(st.sampled_from(("sale s", "(SELECT * FROM sale WHERE q < 9) s")))
    items = [*keys, *aggregates]
    # Not ordered by floating-point numbers, which may differ in the last bit.
    order = f"ORDER BY {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else ""
    return (
        f"SELECT {', '.join(items)} FROM {source} {join}"
        f"{' WHERE ' + ' AND '.join(where) if where else ''}"
        f"{' GROUP BY ' + ', '.join(keys) if keys else ''} {having} {order}"
    )


@given(sql=queries(), read=st.integers(min_value=1, max_value=5))
def test_all_files_merged_are_the_answer_of_duckdb(yard: OnlineYard, sql: str, read: int):
    plan = yard.assert_exact(sql, ordered=False)
    assert plan.table == "sale"
    partials = yard.partials(plan)
    _check_all_files(yard, plan, partials)
    _check_some_files(yard, plan, partials, read)
    _check_leaving_out(yard, plan, partials, read)


def _check_all_files(yard: OnlineYard, plan: OnlinePlan, partials: str) -> None:
    """Estimates are the exact numbers once all files are read."""
    if plan.having:
        return  # a sum at the very border of HAVING may fall on the other side as DOUBLE
    found = yard.estimated(plan, 6, partials)
    wanted = yard.native.sql(plan.sql).fetchall()
    assert len(found.rows) == len(wanted)
    for place, field in enumerate(plan.fields):
        if field.kind == "estimated" and "round(" not in field.name:  # estimates are not rounded
            one = sorted(float(v) for row in found.rows if (v := row.values[place]) is not None)
            other = sorted(float(v) for row in wanted if (v := row[place]) is not None)
            assert one == pytest.approx(other, rel=1e-6, abs=1e-6)


def _check_some_files(yard: OnlineYard, plan: OnlinePlan, partials: str, read: int) -> None:
    """Estimates lie within their intervals, which need five files."""
    for row in yard.estimated(plan, read, partials).rows:
        for each in row.estimates:
            if each is not None and each.low is not None:
                assert each.value is not None
                assert each.high is not None
                assert each.low <= each.value <= each.high
                assert read >= 5


def _check_leaving_out(yard: OnlineYard, plan: OnlinePlan, partials: str, read: int) -> None:
    """What leaving out a file changes is the difference to the estimate without it."""
    if not plan.keys or read < 2:
        return
    keys = [f"o{i}" for i, field in enumerate(plan.fields) if field.kind == "key"]

    def by_key(numbers: list[int]) -> dict[tuple[str, ...], dict[str, Any]]:
        rows = yard.groups(plan, partials, numbers, few=0)[0].to_pylist()
        return {tuple(str(row[key]) for key in keys): row for row in rows}

    every = list(range(read))
    whole = by_key(every)
    less = [by_key([i for i in every if i != file]) for file in every]
    for key, row in whole.items():
        # A group that one file alone has is not there without it.
        if row["files"] < 2 or not all(key in each for each in less):
            continue
        for i in range(plan.measures):
            values = [each[key][f"m{i}"] for each in less]
            if row[f"m{i}"] is None or None in values or row["files"] < read:
                continue
            wanted = changes_of(row[f"m{i}"], values)
            size = 1e-9 * (1 + row[f"m{i}"] ** 2)
            found = (row[f"m{i}_d"], row[f"m{i}_q"], row[f"m{i}_b"])
            for one, other in zip(
                found, (wanted.total, wanted.squares, wanted.largest), strict=True
            ):
                assert math.isclose(one, other, rel_tol=1e-6, abs_tol=size)
