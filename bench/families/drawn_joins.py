"""The shapes with more than one reading of tables: joins, subqueries, windows, common tables."""

from __future__ import annotations

from .drawn_parts import EVENTS, FACTS, LINKS, LOGS, ORDERS, READINGS, Draw
from .drawn_shapes import aggregates, shape, where


@shape
def named(draw: Draw) -> str:
    facts, key, dim = draw.pick(LINKS)
    by = draw.pick(dim.categories)
    return (
        f"SELECT d.{by} AS c, {aggregates(draw, [f'f.{m}' for m in facts.measures])} "
        f"FROM (SELECT * FROM {facts.table}{where(draw, facts.conditions)}) AS f "
        f"JOIN (SELECT * FROM {dim.table}{where(draw, dim.conditions, 0, 2)}) AS d "
        f"ON f.{key} = d.{dim.key} GROUP BY c ORDER BY c"
    )


@shape
def star(draw: Draw) -> str:
    links = [link for link in LINKS if link[0] is EVENTS]
    chosen = draw.some(links, 2, 3)
    joins = " ".join(
        f"JOIN (SELECT * FROM {dim.table}{where(draw, dim.conditions, 0, 1, (0.1, 0.9))}) AS d{n} "
        f"ON f.{key} = d{n}.{dim.key}"
        for n, (_, key, dim) in enumerate(chosen)
    )
    by = ", ".join(
        f"d{n}.{draw.pick(dim.categories)} AS c{n}" for n, (_, _, dim) in enumerate(chosen[:2])
    )
    return (
        f"SELECT {by}, {aggregates(draw, ['f.amount', 'f.quantity', 'f.discount'])} "
        f"FROM (SELECT * FROM events{where(draw, EVENTS.conditions)}) AS f {joins} "
        "GROUP BY ALL ORDER BY ALL LIMIT 1000"
    )


@shape
def outer(draw: Draw) -> str:
    facts, key, dim = draw.pick([link for link in LINKS if link[1] != "country"])
    kind = draw.pick(("LEFT", "RIGHT", "FULL"))
    rows = f"SELECT * FROM {facts.table}{where(draw, facts.conditions, 1, 2)}"
    if draw.chance(0.5):
        sums = f"sum({facts.measures[0]}) AS {facts.measures[0]}"
        rows = f"SELECT {key}, {sums} FROM ({rows}) GROUP BY {key}"
    return (
        f"SELECT d.{draw.pick(dim.categories)} AS c, count(*), count(f.{key}), "
        f"sum(f.{facts.measures[0]}), avg(d.{dim.measure}) FROM "
        f"(SELECT * FROM {dim.table}{where(draw, dim.conditions, 0, 1)}) AS d "
        f"{kind} JOIN ({rows}) AS f ON f.{key} = d.{dim.key} GROUP BY c ORDER BY c"
    )


@shape
def facts_with_facts(draw: Draw) -> str:
    one = f"SELECT user_id, {aggregates(draw, EVENTS.measures, 3)} FROM events"
    one += where(draw, EVENTS.conditions, 0, 2) + " GROUP BY user_id"
    two = f"SELECT * FROM orders{where(draw, ORDERS.conditions, 0, 2)}"
    return (
        f"SELECT o.status, count(*), sum(o.total), sum(e.a1) FROM ({two}) AS o JOIN ({one}) AS e "
        "ON o.user_id = e.user_id GROUP BY o.status ORDER BY o.status"
    )


@shape
def skewed_with_skewed(draw: Draw) -> str:
    # Only the rare keys: one user of 200,000 has a twentieth of both tables.
    from_user = draw.number(300, 1_000)
    return (
        f"SELECT e.{draw.pick(('device', 'kind'))} AS c, count(*), sum(o.total) "
        f"FROM events AS e JOIN orders AS o ON e.user_id = o.user_id "
        f"AND e.ts {draw.pick(('<', '>='))} o.ordered_at "
        f"WHERE e.user_id > {from_user} AND o.status = '{draw.literal(('paid', 'shipped'))}' "
        "GROUP BY c ORDER BY c"
    )


@shape
def semi(draw: Draw) -> str:
    facts, key, dim = draw.pick(LINKS)
    inner = where(draw, dim.conditions, 1, 1)
    outer_rows = where(draw, facts.conditions, 0, 1)
    measures = aggregates(draw, facts.measures)
    if draw.chance(0.5):
        condition = f"{key} IN (SELECT {dim.key} FROM {dim.table}{inner})"
    else:
        rows = f"(SELECT * FROM {dim.table}{inner}) AS d"
        condition = f"EXISTS (SELECT 1 FROM {rows} WHERE d.{dim.key} = f.{key})"
    rows = f"(SELECT * FROM {facts.table}{outer_rows}) AS f"
    return f"SELECT {measures} FROM {rows} WHERE {condition}"


@shape
def anti(draw: Draw) -> str:
    facts, key, dim = draw.pick([link for link in LINKS if link[1] != "country"])
    inner = f"(SELECT * FROM {facts.table}{where(draw, facts.conditions, 1, 2)}) AS f"
    rows = f"(SELECT * FROM {dim.table}{where(draw, dim.conditions, 0, 1)}) AS d"
    same = f"f.{key} = d.{dim.key}"
    if draw.chance(0.7):
        rows += f" WHERE NOT EXISTS (SELECT 1 FROM {inner} WHERE {same})"
    else:
        rows += f" ANTI JOIN {inner} ON {same}"
    by = draw.pick(dim.categories)
    return f"SELECT d.{by} AS c, count(*) FROM {rows} GROUP BY c ORDER BY c"


@shape
def correlated(draw: Draw) -> str:
    facts = draw.pick((EVENTS, ORDERS, READINGS, LOGS))
    key, measure = draw.pick(facts.keys), facts.measures[0]
    function = draw.pick(("avg", "max", "min", "count"))
    rows = f"{facts.table}{where(draw, facts.conditions, 1, 1, (0.1, 0.6))}"
    return (
        f"SELECT count(*), sum({measure}) FROM (SELECT * FROM {rows}) AS a WHERE {measure} >= "
        f"0.{draw.number(4, 9)} * (SELECT {function}(b.{measure}) FROM {facts.table} AS b "
        f"WHERE b.{key} = a.{key})"
    )


@shape
def of_the_whole(draw: Draw) -> str:
    facts = draw.pick(FACTS)
    measure = draw.pick(facts.measures)
    by = draw.pick((*facts.categories, *facts.keys))
    inner = f"SELECT avg({measure}) FROM {facts.table}{where(draw, facts.conditions, 0, 1)}"
    return (
        f"SELECT {by} AS k, count(*) AS n FROM {facts.table} WHERE {measure} > ({inner}) "
        f"GROUP BY k ORDER BY n DESC, k LIMIT {draw.number(10, 100)}"
    )


# --- windows --------------------------------------------------------------------------------------


@shape
def ranked(draw: Draw) -> str:
    facts = draw.pick(FACTS)
    key = draw.pick((*facts.keys, *facts.categories))
    function = draw.pick(("row_number", "rank", "dense_rank"))
    order = draw.pick((facts.time, f"{facts.measures[0]} DESC NULLS LAST"))
    rows = f"{facts.table}{where(draw, facts.conditions, 1, 2, (0.05, 0.9))}"
    return (
        f"SELECT count(*), sum(v) FROM (SELECT {facts.measures[0]} AS v FROM {rows} QUALIFY "
        f"{function}() OVER (PARTITION BY {key} ORDER BY {order}) <= {draw.number(1, 10)})"
    )


@shape
def moving(draw: Draw) -> str:
    facts = draw.pick(FACTS)
    key, measure = draw.pick(facts.keys), draw.pick(facts.measures)
    function = draw.pick(("avg", "sum", "max", "min"))
    frame = draw.pick(
        (
            "ROWS {} PRECEDING",
            "ROWS BETWEEN {} PRECEDING AND 2 FOLLOWING",
            "ROWS UNBOUNDED PRECEDING",
        )
    )
    rows = f"{facts.table}{where(draw, facts.conditions, 0, 2, (0.03, 0.9))}"
    return (
        f"SELECT count(m), max(m), min(m) FROM (SELECT {function}({measure}) OVER (PARTITION BY "
        f"{key} ORDER BY {facts.time} {frame.format(draw.number(3, 30))}) AS m FROM {rows})"
    )


@shape
def lagged(draw: Draw) -> str:
    facts = draw.pick(FACTS)
    key = draw.pick(facts.keys)
    function = draw.pick(("lag", "lead"))
    rows = f"{facts.table}{where(draw, facts.conditions, 0, 2, (0.05, 0.9))}"
    return (
        f"SELECT date_diff('hour', least(t, u), greatest(t, u)) AS hours, count(*) AS n FROM "
        f"(SELECT {facts.time} AS t, {function}({facts.time}) OVER (PARTITION BY {key} "
        f"ORDER BY {facts.time}) AS u FROM {rows}) WHERE u IS NOT NULL "
        "GROUP BY hours ORDER BY n DESC, hours LIMIT 50"
    )


@shape
def shares_of_groups(draw: Draw) -> str:
    facts = draw.pick(FACTS)
    by, key = draw.pick(facts.categories), draw.pick(facts.keys)
    rows = f"{facts.table}{where(draw, facts.conditions, 0, 1, (0.05, 0.6))}"
    return (
        "SELECT c, k, s, s / sum(s) OVER (PARTITION BY c) AS share FROM "
        f"(SELECT {by} AS c, {key} AS k, sum({facts.measures[0]}) AS s FROM {rows} GROUP BY ALL) "
        f"ORDER BY share DESC NULLS LAST, c, k LIMIT {draw.number(10, 200)}"
    )


# --- common tables and unions ---------------------------------------------------------------------


@shape
def common_table_twice(draw: Draw) -> str:
    facts = draw.pick(FACTS)
    unit = draw.pick(("day", "week", "month"))
    by = draw.pick((*facts.categories, *facts.keys))
    kept = draw.pick(("", "MATERIALIZED "))
    rows = f"{facts.table}{where(draw, facts.conditions, 0, 1)}"
    return (
        f"WITH t AS {kept}(SELECT date_trunc('{unit}', {facts.time}) AS ts, {by} AS k, "
        f"sum({facts.measures[0]}) AS s FROM {rows} GROUP BY ALL) "
        f"SELECT a.ts, count(*), sum(b.s - a.s) FROM t AS a JOIN t AS b "
        f"ON a.k = b.k AND b.ts = a.ts + INTERVAL 1 {unit} GROUP BY a.ts ORDER BY a.ts"
    )


@shape
def rows_in_common(draw: Draw) -> str:
    facts = draw.pick(FACTS)
    key, measure = draw.pick(facts.keys), facts.measures[0]
    rows = f"{facts.table}{where(draw, facts.conditions, 1, 2, (0.1, 0.7))}"
    return (
        f"WITH t AS (SELECT {key} AS k, {measure} AS v, {facts.time} AS ts FROM {rows}), "
        "s AS (SELECT k, avg(v) AS mean, count(*) AS n FROM t GROUP BY k) "
        "SELECT count(*), sum(t.v), max(s.n) FROM t JOIN s ON t.k = s.k "
        f"WHERE t.v > s.mean AND s.n > {draw.number(1, 5)}"
    )


@shape
def union_all(draw: Draw) -> str:
    parts = [
        f"SELECT '{facts.table}' AS source, date_trunc('day', {facts.time}) AS d, "
        f"{facts.measures[0]}::DOUBLE AS v FROM {facts.table}"
        f"{where(draw, facts.conditions, 0, 1)}"
        for facts in draw.some(FACTS, 2, 4)
    ]
    return (
        f"SELECT d, source, count(*), avg(v) FROM ({' UNION ALL '.join(parts)}) "
        "GROUP BY ALL ORDER BY ALL"
    )


@shape
def sets(draw: Draw) -> str:
    kind = draw.pick(("UNION", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL"))
    one = f"SELECT user_id FROM events{where(draw, EVENTS.conditions, 0, 2)}"
    two = f"SELECT user_id FROM orders{where(draw, ORDERS.conditions, 0, 2)}"
    return f"SELECT count(*), sum(user_id) FROM ({one} {kind} {two})"


@shape
def out_of_bounds(draw: Draw) -> str:
    # Without a condition on the value itself: it could contradict the other one.
    conditions = [READINGS.conditions[0], *READINGS.conditions[2:]]
    rows = f"(SELECT * FROM readings{where(draw, conditions, 0, 2)}) AS r"
    beyond = draw.pick(("r.value > s.bounds.high", "r.value < s.bounds.low + 25"))
    by = draw.pick(("kind", "site"))
    return (
        f"SELECT s.{by} AS c, count(*), avg(r.value) FROM {rows} JOIN sensors AS s "
        f"ON r.sensor_id = s.sensor_id AND {beyond} GROUP BY c ORDER BY c"
    )


@shape
def last_before(draw: Draw) -> str:
    left = f"logs{where(draw, LOGS.conditions, 1, 1, (0.05, 0.5))}"
    right = f"readings{where(draw, READINGS.conditions, 1, 1, (0.05, 0.5))}"
    return (
        f"SELECT l.level, count(*), avg(r.value) FROM (SELECT * FROM {left}) AS l ASOF JOIN "
        f"(SELECT * FROM {right}) AS r ON l.ts >= r.ts GROUP BY l.level ORDER BY l.level"
    )
