"""How far an answer moves with each part, computed afterwards from the partial rows."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from queryard.engine.online.course import Course
from queryard.engine.online.leaving_out import estimates
from queryard.engine.online.measure import Measure, WrongMeasure
from queryard.engine.online.wish import OnlineWish
from queryard.estimate.online import error_left
from queryard.sql.catalog import open_catalog
from queryard.sql.online import OnlinePlan, online_plan

FILES = 12
ROWS = 3_000
TABLE = (
    f"SELECT i, hash(i) % {FILES} AS part, hash(i, 1) % 6 AS kind, hash(i, 2) % 1000 / 7.0 AS v "
    f"FROM range({ROWS}) t(i)"
)


class Partials:
    """The partial rows of all parts of a small table, and answers after any number of them."""

    def __init__(self, folder: Path, sql: str) -> None:
        self.native = duckdb.connect(config={"threads": 1})
        self.native.execute(f"COPY ({TABLE}) TO '{folder}/sales.parquet'")
        self.plan: OnlinePlan = online_plan(sql, open_catalog(folder))
        select = self.plan.partial_sql(f"(FROM '{folder}/sales.parquet')", "t.part")
        self.native.execute(f"CREATE TABLE partials AS {select}")
        counted = f"SELECT part, count(*)::DOUBLE FROM '{folder}/sales.parquet' GROUP BY 1"
        self.parts = sorted(self.native.sql(counted).fetchall())

    def gathered(self, read: int) -> pa.Table:
        numbers = ", ".join(str(number) for number, _ in self.parts[:read])
        some = f"(SELECT * FROM partials WHERE file IN ({numbers}))"
        return self.native.sql(self.plan.gathered_sql(some)).to_arrow_table()

    def places(self) -> list[int]:
        return [i for i, f in enumerate(self.plan.fields) if f.kind in ("estimated", "quantile")]

    def course(self, read: int, **wish: Any) -> Course:
        measure = Measure(self.plan.fields, OnlineWish(**wish))
        return Course(self.plan, self.gathered(read), self.parts[:read], ROWS, measure)

    def moves(self, before: int, read: int, **wish: Any) -> list[float]:
        return self.course(read, **wish).moves(before)

    def values(self, read: int) -> dict[tuple[Any, ...], list[float | None]]:
        """The estimates by group, each computed anew from the first parts alone."""
        parts = dict(self.parts[:read])
        told = estimates(self.plan, self.gathered(read), parts, ROWS, 30).to_pylist()
        keys = [i for i, field in enumerate(self.plan.fields) if field.kind == "key"]
        return {
            tuple(row[f"o{key}"] for key in keys): [
                row[f"m{self.plan.fields[place].measure}"] for place in self.places()
            ]
            for row in told
        }

    def one_by_one(self, read: int) -> float:
        """How far the answer moved with the last of some parts."""
        now, old = self.values(read), self.values(read - 1) if read > 1 else {}
        moved = []
        for key, values in now.items():
            for value, before in zip(values, old.get(key, [None] * len(values)), strict=True):
                if value is not None:
                    moved.append(min(1.0, abs(value - (before or 0.0)) / (abs(value) or 1.0)))
        return sum(moved) / len(moved) if moved else 0.0


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(v) AS total FROM sales",
        "SELECT kind, sum(v) AS total, count(*) AS n, avg(v) AS mean FROM sales GROUP BY kind",
        "SELECT kind, sum(v) / count(*) * 2 AS p FROM sales WHERE i < 300 GROUP BY kind",
        "SELECT kind, stddev(v) AS spread, var_pop(v) AS var FROM sales GROUP BY kind",
    ],
)
def test_the_moves_of_all_parts_are_those_of_answers_after_each(tmp_path: Path, sql: str):
    found = Partials(tmp_path, sql)
    each = [found.one_by_one(read) for read in range(1, FILES + 1)]
    assert found.moves(0, FILES) == pytest.approx(each)
    assert found.moves(5, 9) == pytest.approx(each[5:9])
    assert each[0] == 1.0


def test_a_group_that_comes_later_moves_by_its_whole_value(tmp_path: Path):
    sql = f"SELECT CASE WHEN part = {FILES - 1} THEN 'late' ELSE 'early' END AS k, count(*) AS n "
    found = Partials(tmp_path, sql + "FROM sales GROUP BY 1")
    *_, before, last = found.moves(0, FILES)
    assert before < 0.2
    assert last > 0.5


def test_groups_that_a_limit_leaves_out_do_not_count(tmp_path: Path):
    sql = "SELECT kind, sum(v) AS total FROM sales GROUP BY kind ORDER BY total DESC"
    limited = Partials(tmp_path, f"{sql} LIMIT 1")
    [(best, _)] = limited.native.sql(f"{sql} LIMIT 1".replace("sales", f"({TABLE})")).fetchall()
    alone = Partials(tmp_path, f"SELECT sum(v) AS total FROM sales WHERE kind = {best}")
    assert limited.moves(0, FILES) == pytest.approx(alone.moves(0, FILES))


def test_a_quantile_moves_as_those_of_its_parts(tmp_path: Path):
    found = Partials(tmp_path, "SELECT kind, median(v) AS middle FROM sales GROUP BY kind")
    told = found.moves(0, FILES)
    assert told[0] == 1.0
    assert all(0 < each < 0.5 for each in told[1:])
    assert sum(told[-4:]) < sum(told[1:5])


def test_only_the_groups_and_columns_that_are_named_count(tmp_path: Path):
    sql = "SELECT kind, sum(v) AS total, count(*) AS n FROM sales GROUP BY kind"
    found = Partials(tmp_path, sql)
    alone = Partials(tmp_path, "SELECT sum(v) AS total FROM sales WHERE kind = 2")
    assert found.moves(0, FILES, columns=("Total",), groups=(2,)) == pytest.approx(
        alone.moves(0, FILES)
    )
    assert found.moves(2, 5, groups=(99,)) == found.moves(2, 5), "all, while it is not seen"


def test_a_function_says_how_far_the_answer_moved(tmp_path: Path):
    sql = "SELECT kind, sum(v) AS total, count(*) AS n FROM sales GROUP BY kind ORDER BY kind"
    found = Partials(tmp_path, sql)
    seen = []

    def highest(rows: pa.Table) -> float:
        seen.append(rows)
        return max(rows["total"].to_pylist())

    told = found.moves(3, 6, measure=highest)
    assert [rows.column_names for rows in seen] == [["kind", "total", "n"]] * 4
    assert all(rows["kind"].to_pylist() == [0, 1, 2, 3, 4, 5] for rows in seen)
    values = [max(total for total, _ in found.values(read).values()) for read in range(3, 7)]
    pairs = itertools.pairwise(values)
    assert told == pytest.approx([abs(new - old) / new for old, new in pairs])
    assert found.moves(0, 1, measure=highest) == [1.0], "it was nothing before"


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda rows: rows["nowhere"], "measure: the function failed: .*nowhere"),
        (lambda rows: "much", "measure: the function must give a number, it gave 'much'"),
        (lambda rows: math.nan, "it gave nan"),
    ],
)
def test_a_function_that_fails_or_gives_no_number_is_told(tmp_path: Path, function: Any, told: str):
    found = Partials(tmp_path, "SELECT sum(v) AS total FROM sales")
    with pytest.raises(WrongMeasure, match=told):
        found.moves(0, 2, measure=function)


def test_nothing_that_is_estimated_does_not_move(tmp_path: Path):
    found = Partials(tmp_path, "SELECT max(v) AS most FROM sales")
    assert found.moves(3, 5) == [0.0, 0.0]
    assert found.course(5).left() is None


def test_what_is_left_of_the_error_is_computed_from_the_answers_after_each_part(
    tmp_path: Path,
) -> None:
    found = Partials(tmp_path, "SELECT kind, sum(v) AS total, avg(v) AS mean FROM sales GROUP BY 1")
    assert found.course(1).left() == 1.0
    assert found.course(FILES).left() == 0.0
    read = 5
    answers = [found.values(n) for n in range(1, read + 1)]
    told = []
    for key, newest in answers[-1].items():
        for place, value in enumerate(newest):
            series = [answer[key][place] or 0.0 for answer in answers]
            moved = enumerate(itertools.pairwise(series), 1)
            squares = sum(n * (n + 1) * (new - old) ** 2 for n, (old, new) in moved)
            told.append((series[0], value or 0.0, squares / (read - 1)))
    fraction = sum(rows for _, rows in found.parts[:read]) / ROWS
    assert found.course(read).left() == pytest.approx(error_left(told, read, fraction))


def test_what_is_left_is_that_of_the_columns_and_groups_that_count(tmp_path: Path) -> None:
    found = Partials(tmp_path, "SELECT kind, sum(v) AS total, avg(v) AS v FROM sales GROUP BY kind")
    alone = Partials(tmp_path, "SELECT sum(v) AS total FROM sales WHERE kind = 2")
    told = found.course(6, columns=("total",), groups=(2,)).left()
    assert told == pytest.approx(alone.course(6).left())
    assert told != pytest.approx(found.course(6).left())
    assert found.course(6, measure=lambda rows: rows.num_rows).left() is None
