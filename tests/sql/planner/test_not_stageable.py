"""What is not split says why; what looks similar and is safe is split."""

from __future__ import annotations

import pickle

import pytest
from planner_tables import paper_catalog

from queryard.sql.planner import NotStageable, plan_staged

REFUSED = {
    "SELECT item, sum(price) OVER (PARTITION BY shop) FROM sale": "window functions",
    "SELECT id FROM sale QUALIFY row_number() OVER (ORDER BY id) < 3": "window functions",
    "SELECT median(price) FROM sale": "median has no exact partial form",
    "SELECT quantile_cont(price, 0.5) FROM sale": "quantile_cont has no exact partial form",
    "SELECT list(item) FROM sale": "list has no exact partial form",
    "SELECT string_agg(name, ',') FROM item": "string_agg has no exact partial form",
    "SELECT first(item) FROM sale": "first has no exact partial form",
    "SELECT arg_max(item, price) FROM sale": "arg_max has no exact partial form",
    "SELECT sum(item ORDER BY id) FROM sale": "depends on the order of rows",
    "SELECT min(item, 3) FROM sale": "several arguments",
    "SELECT item, count(*) FROM sale GROUP BY ROLLUP (item)": "grouping sets",
    "SELECT item, count(*) FROM sale GROUP BY GROUPING SETS ((item), ())": "grouping sets",
    "SELECT random() FROM sale": r"random\(\) does not give the same answer",
    "SELECT now() FROM sale": r"now\(\) does not give the same answer",
    "SELECT current_date FROM sale": "current_date is not the same every time",
    "SELECT CURRENT_TIMESTAMP FROM sale": "not the same every time",
    "SELECT nextval('s') FROM sale": "does not give the same answer",
    "SELECT current_setting('threads') FROM sale": "current_setting",
    "SELECT * FROM sale USING SAMPLE 10": "chance",
    "SELECT * FROM sale TABLESAMPLE 10%": "chance",
    "SELECT rowid FROM sale": "positions within a whole table",
    "SELECT unnest([1, 2]) FROM sale": "unnest is not known to be safe",
    "SELECT * FROM range(3)": "table functions",
    "SELECT * FROM read_csv('x.csv')": "table functions",
    "SELECT * FROM sale s, LATERAL (SELECT s.id) l": "not split",
    "SELECT * FROM sale POSITIONAL JOIN item": "joins",
    "SELECT * FROM sale ASOF JOIN item ON sale.item >= item.item": "joins",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) FROM r": "recursive",
    "SELECT DISTINCT ON (item) item, id FROM sale": "DISTINCT ON",
    "SELECT id FROM sale LIMIT 10%": "LIMIT",
    "SELECT id FROM sale LIMIT (SELECT 3)": "LIMIT is not a plain number",
    "SELECT name COLLATE NOCASE FROM item": "collations",
    "SELECT id FROM sale WHERE id = ?": "parameters",
    "SELECT #1 FROM sale": "positional references",
    "SELECT COLUMNS(*) FROM sale": "COLUMNS",
    "SELECT * REPLACE (1 AS id) FROM sale": "REPLACE",
    "SELECT sale FROM sale": "whole row",
    "SELECT list_transform([id], x -> x + 1) FROM sale": "lambda",
    "SELECT id FROM sale EXCEPT ALL SELECT id FROM line": "EXCEPT ALL",
    "SELECT id FROM sale UNION BY NAME SELECT id FROM line": "BY NAME|differently",
    "SELECT * FROM (SELECT * FROM sale ORDER BY id) LIMIT 3": "order of a subquery",
    "SELECT id FROM sale WHERE item > ALL (SELECT item FROM item)": "ANY and ALL",
    "SELECT id FROM sale WHERE (item, shop) IN (SELECT item, 1 FROM item)": "several columns",
    "SELECT id FROM sale s WHERE price > (SELECT avg(price) FROM sale t WHERE t.id < s.id)": (
        "something else than equality"
    ),
    "SELECT id, (SELECT name FROM item i WHERE i.item = s.item LIMIT 1) FROM sale s": "LIMIT",
    "SELECT id, (SELECT name FROM item i WHERE i.item = s.item) FROM sale s": "more than one row",
    "SELECT id, (SELECT item FROM item) FROM sale WHERE 1 = 2": "constant condition",
    "SELECT id FROM sale WHERE item = (SELECT item FROM item) OR true": "constant condition",
    "SELECT id, (SELECT item FROM item) FROM sale LIMIT 0": "LIMIT 0",
    "SELECT item, (SELECT count(*) FROM line l WHERE l.item = s.item) FROM sale s GROUP BY item": (
        "over groups"
    ),
    "SELECT id FROM sale WHERE price IN (SELECT item FROM item)": "IN compares",
    "SELECT sum(price) AS day FROM sale GROUP BY item HAVING day > 3": "can mean two things|DuckDB",
    "SELECT nothing FROM sale": "DuckDB says",
    "SELECT id FROM nowhere": "unknown table",
    "SELEC id FROM sale": "DuckDB says",
    "UPDATE sale SET id = 1": "DuckDB says",
    "SELECT 1; SELECT 2": "2 statements",
    "PIVOT sale ON item": "DuckDB says",
}
STAGED = [
    "SELECT count(*) FROM gone",
    "SELECT id FROM sale LIMIT 10",
    "SELECT max(name) FROM item",
    "SELECT id FROM sale ORDER BY price DESC NULLS FIRST LIMIT 3 OFFSET 4",
    "SELECT DISTINCT item FROM sale",
    "SELECT id FROM sale WHERE item NOT IN (SELECT item FROM item)",
    "SELECT 1 + 1",
    "SELECT id, (SELECT item FROM item) FROM sale LIMIT 10",
    "SELECT id, (SELECT max(item) FROM item) FROM sale WHERE 1 = 2",
    "SELECT 1 UNION SELECT 2 INTERSECT SELECT 2",
    "SELECT max(day) FROM (SELECT day FROM sale ORDER BY id)",
    "(SELECT item FROM sale) EXCEPT (SELECT item FROM item)",
    "SELECT day + INTERVAL '3 days', day + INTERVAL 3 DAY, day + INTERVAL '3' DAY FROM sale",
    "SELECT id FROM sale;",
    "-- a comment\nSELECT id /* here */ FROM sale",
]


@pytest.mark.parametrize(("sql", "reason"), REFUSED.items(), ids=list(REFUSED))
def test_what_cannot_be_split_says_why(sql: str, reason: str) -> None:
    with pytest.raises(NotStageable, match=reason) as caught:
        plan_staged(sql, paper_catalog())
    assert caught.value.reason in str(caught.value)


@pytest.mark.parametrize("sql", STAGED)
def test_what_can_be_split_is(sql: str) -> None:
    assert plan_staged(sql, paper_catalog()).jobs


def test_a_statement_nested_too_deeply_is_refused() -> None:
    with pytest.raises(NotStageable, match=r"nested too deeply|DuckDB says"):
        plan_staged(f"SELECT {'(' * 900}1{')' * 900}", paper_catalog())


def test_the_refusal_travels() -> None:
    again = pickle.loads(pickle.dumps(NotStageable("windows")))
    assert again.reason == "windows"
