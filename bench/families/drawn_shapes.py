"""The shapes of the drawn queries: each makes the text of one, from the choices handed to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .drawn_parts import EVENTS, FACTS, LOGS, ORDERS, READINGS, Condition, Draw
from .drawn_tables import WORDS

Shape = Callable[[Draw], str]
SHAPES: dict[str, Shape] = {}


def shape(make: Shape) -> Shape:
    """Register a shape by its name."""
    SHAPES[make.__name__.replace("_", "-")] = make
    return make


def aggregates(draw: Draw, measures: Sequence[str], most: int = 4) -> str:
    """A few aggregates, named a1, a2 and so on."""
    found = ["count(*)"] if draw.chance(0.5) else []
    for _ in range(draw.pick(range(1, most))):
        function = draw.pick(("sum", "avg", "min", "max", "count", "stddev"))
        found.append(f"{function}({draw.pick(measures)})")
    return ", ".join(f"{one} AS a{place}" for place, one in enumerate(found, 1))


def where(
    draw: Draw,
    conditions: Sequence[Condition],
    least: int = 0,
    most: int = 2,
    shares: tuple[float, float] = (0.05, 0.9),
) -> str:
    """A few conditions, as a WHERE clause; it may be empty."""
    chosen = draw.some(conditions, least, most)
    texts = [condition(draw, draw.share(*shares)) for condition in chosen]
    if len(texts) > 1 and draw.chance(0.2):
        return " WHERE (" + " OR ".join(f"({text})" for text in texts) + ")"
    return " WHERE " + " AND ".join(texts) if texts else ""


# --- one table ------------------------------------------------------------------------------------


@shape
def totals(draw: Draw) -> str:
    facts = draw.pick(FACTS)
    return f"SELECT {aggregates(draw, facts.measures, 6)} FROM {facts.table}" + where(
        draw, facts.conditions, 1, 3
    )


@shape
def few_groups(draw: Draw) -> str:
    facts = draw.pick(FACTS)
    by = ", ".join(draw.some(facts.categories, 1, 2))
    return (
        f"SELECT {by}, {aggregates(draw, facts.measures)} FROM {facts.table}"
        f"{where(draw, facts.conditions)} GROUP BY ALL ORDER BY ALL"
    )


@shape
def many_groups(draw: Draw) -> str:
    facts = draw.pick(FACTS)
    key = draw.pick(facts.keys)
    inner = (
        f"SELECT {key} AS k, {aggregates(draw, facts.measures)}, count(*) AS n FROM {facts.table}"
    )
    inner += where(draw, facts.conditions, 0, 2, (0.2, 0.9)) + f" GROUP BY {key}"
    if draw.chance(0.4):
        inner += f" HAVING count(*) > {draw.number(1, 4)}"
    if draw.chance(0.5):
        return f"{inner} ORDER BY n DESC, k LIMIT {draw.number(10, 100)}"
    return f"SELECT count(*), sum(n), max(a1) FROM ({inner})"


@shape
def pairs_of_groups(draw: Draw) -> str:
    facts = draw.pick((EVENTS, READINGS, LOGS))
    by = f"{draw.pick(facts.keys)} AS k, {draw.pick(facts.categories)} AS c"
    rows = where(draw, facts.conditions, 0, 1, (0.2, 0.9))
    return (
        f"SELECT c, count(*), max(a1) FROM (SELECT {by}, {aggregates(draw, facts.measures)} "
        f"FROM {facts.table}{rows} GROUP BY ALL) GROUP BY c ORDER BY c"
    )


@shape
def grouping_sets(draw: Draw) -> str:
    facts = draw.pick((EVENTS, LOGS))
    by = ", ".join(draw.some(facts.categories, 2, 2))
    kind = draw.pick(("ROLLUP", "CUBE"))
    return (
        f"SELECT {by}, {aggregates(draw, facts.measures)} FROM {facts.table}"
        f"{where(draw, facts.conditions, 1, 2)} GROUP BY {kind} ({by}) ORDER BY ALL"
    )


@shape
def distinct_counts(draw: Draw) -> str:
    facts = draw.pick(FACTS)
    kind = draw.pick(("exact", "approximate", "grouped", "rows"))
    key, category = draw.pick(facts.keys), draw.pick(facts.categories)
    rows = facts.table + where(draw, facts.conditions)
    if kind == "exact":
        return f"SELECT count(DISTINCT {key}), count(DISTINCT {category}), count(*) FROM {rows}"
    if kind == "approximate":
        return f"SELECT {category}, approx_count_distinct({key}) FROM {rows} GROUP BY 1 ORDER BY 1"
    if kind == "grouped":
        return f"SELECT {category} AS c, count(DISTINCT {key}) FROM {rows} GROUP BY c ORDER BY c"
    return f"SELECT count(*) FROM (SELECT DISTINCT {key}, {category} FROM {rows})"


@shape
def quantiles(draw: Draw) -> str:
    facts = draw.pick(FACTS)
    measure, share = draw.pick(facts.measures), draw.number(1, 99) / 100
    function = draw.pick(
        ("median({0})", "quantile_cont({0}, {1})", "quantile_disc({0}, {1})", "mad({0})")
    )
    by = draw.pick(facts.categories)
    return (
        f"SELECT {by}, {function.format(measure, share)} AS q FROM {facts.table}"
        f"{where(draw, facts.conditions)} GROUP BY 1 ORDER BY 1"
    )


@shape
def cases(draw: Draw) -> str:
    facts = draw.pick(FACTS)
    measure = draw.pick(facts.measures)
    low = draw.number(5, 20)
    band = (
        f"CASE WHEN {measure} IS NULL THEN 'none' WHEN {measure} < {low} THEN 'low' "
        f"WHEN {measure} < {low * 4} THEN 'middle' ELSE 'high' END"
    )
    sums = ", ".join(
        f"sum(CASE WHEN month({facts.time}) = {month} THEN {measure} ELSE 0 END) AS m{month}"
        for month in draw.some(range(1, 13), 2, 6)
    )
    return (
        f"SELECT {band} AS band, {sums}, count(*) FROM {facts.table}"
        f"{where(draw, facts.conditions)} GROUP BY band ORDER BY band"
    )


@shape
def dates(draw: Draw) -> str:
    facts = draw.pick(FACTS)
    by = draw.pick(
        (
            f"date_trunc('{draw.pick(('hour', 'day', 'week', 'month'))}', {facts.time})",
            f"dayofweek({facts.time})",
            f"strftime({facts.time}, '%Y-%m-%d %H')",
            f"date_diff('day', {facts.time}, TIMESTAMP '2025-01-01')",
            f"time_bucket(INTERVAL {draw.number(2, 12)} HOUR, {facts.time})",
        )
    )
    return (
        f"SELECT {by} AS t, {aggregates(draw, facts.measures)} FROM {facts.table}"
        f"{where(draw, facts.conditions)} GROUP BY t ORDER BY t"
    )


@shape
def top(draw: Draw) -> str:
    facts = draw.pick(FACTS)
    measure = draw.pick(facts.measures)
    return (
        f"SELECT {facts.wide} FROM {facts.table}{where(draw, facts.conditions)} "
        f"ORDER BY {measure} DESC NULLS LAST, {facts.id} LIMIT {draw.number(10, 1000)}"
    )


@shape
def sorted_rows(draw: Draw) -> str:
    facts = draw.pick(FACTS)
    by = draw.pick((*facts.measures, *facts.keys, facts.text or facts.time))
    return (
        f"SELECT {facts.id}, {by} AS v FROM {facts.table}"
        f"{where(draw, facts.conditions, 0, 2, (0.03, 0.9))} ORDER BY v, {facts.id}"
    )


@shape
def wide_answers(draw: Draw) -> str:
    facts = draw.pick(FACTS)
    columns = "*" if draw.chance(0.3) else facts.wide
    return f"SELECT {columns} FROM {facts.table}" + where(draw, facts.conditions, 1, 2, (0.03, 0.3))


# --- texts and nested types -----------------------------------------------------------------------


@shape
def text_search(draw: Draw) -> str:
    facts = draw.pick((EVENTS, ORDERS, LOGS))
    text, word, other = facts.text, draw.literal(WORDS), draw.literal(WORDS)
    condition = draw.pick(
        (
            f"{text} LIKE '%{word}%{other}%'",
            f"{text} ILIKE '%{word}%'",
            f"regexp_matches({text}, '({word}|{other})[ /]')",
            f"regexp_matches({text}, '{word}.*[0-9]+')",
            f"{text} SIMILAR TO '.*{word}.*{other}.*'",
            f"length({text}) > {draw.number(40, 80)}",
        )
    )
    return (
        f"SELECT {draw.pick(facts.categories)} AS c, count(*), min({text}) FROM {facts.table} "
        f"WHERE {condition} GROUP BY c ORDER BY c"
    )


@shape
def text_groups(draw: Draw) -> str:
    facts = draw.pick((EVENTS, ORDERS, LOGS))
    text = facts.text
    by = draw.pick(
        (
            f"upper(substr({text}, 1, {draw.number(8, 24)}))",
            f"split_part({text}, ' ', 2)",
            f"split_part({text}, '/', 4)",
            f"regexp_extract({text}, '([a-z]+)[^a-z]*$', 1)",
            f"regexp_replace({text}, '[0-9]+', '#', 'g')",
            f"string_split({text}, ' ')[2]",
            f"reverse(left({text}, 30))",
            f"length(replace({text}, '{draw.literal(WORDS)}', ''))",
        )
    )
    return (
        f"SELECT {by} AS t, count(*) AS n, {aggregates(draw, facts.measures, 2)} FROM {facts.table}"
        f"{where(draw, facts.conditions, 0, 1)} GROUP BY t ORDER BY n DESC, t LIMIT 100"
    )


@shape
def unnested_words(draw: Draw) -> str:
    column, facts = draw.pick(
        (("tags", EVENTS), ("string_split(note, ' ')", ORDERS), ("string_split(path, '/')", LOGS))
    )
    rows = facts.table + where(draw, facts.conditions, 0, 1, (0.1, 0.9))
    return (
        f"SELECT w, count(*) AS n, count(DISTINCT k) FROM (SELECT {facts.keys[0]} AS k, "
        f"unnest({column}) AS w FROM {rows}) GROUP BY w ORDER BY n DESC, w "
        f"LIMIT {draw.number(10, 50)}"
    )


@shape
def unnested_lines(draw: Draw) -> str:
    rows = "orders" + where(draw, ORDERS.conditions, 0, 2, (0.1, 0.9))
    lines = f"(SELECT order_id, user_id, status, unnest(lines) AS l FROM {rows})"
    kind = draw.pick(("products", "status", "orders"))
    if kind == "products":
        by = draw.pick(("category", "subcategory"))
        return (
            f"SELECT {by}, sum(l.n * l.price), count(*) FROM {lines} JOIN products "
            f"ON l.product_id = products.product_id GROUP BY {by} ORDER BY {by}"
        )
    if kind == "status":
        return f"SELECT status, sum(l.n), avg(l.price) FROM {lines} GROUP BY status ORDER BY status"
    return (
        f"SELECT count(*), max(s) FROM (SELECT order_id, sum(l.n * l.price) AS s FROM {lines} "
        "GROUP BY order_id)"
    )


@shape
def list_functions(draw: Draw) -> str:
    kind = draw.pick(("filter", "sum", "sort", "contains", "transform"))
    word, least = draw.literal(WORDS), draw.number(2, 8)
    orders = "orders" + where(draw, ORDERS.conditions, 0, 1)
    events = "events" + where(draw, EVENTS.conditions, 0, 1)
    return {
        "filter": "SELECT status, sum(len(list_filter(lines, lambda l: l.price > "
        f"{least * 5}))) FROM {orders} GROUP BY status ORDER BY status",
        "sum": "SELECT status, avg(list_sum(list_transform(lines, lambda l: l.n * l.price))) "
        f"FROM {orders} GROUP BY status ORDER BY status",
        "sort": f"SELECT list_sort(tags)[1] AS t, count(*) FROM {events} GROUP BY t ORDER BY t",
        "contains": f"SELECT device, count(*) FILTER (list_has_any(tags, ['{word}', 'amber'])) "
        f"FROM {events} GROUP BY device ORDER BY device",
        "transform": "SELECT array_to_string(list_transform(tags, lambda t: upper(t[1:2])), '-') "
        f"AS t, count(*) AS n FROM {events} GROUP BY t ORDER BY n DESC, t LIMIT 50",
    }[kind]


@shape
def collected(draw: Draw) -> str:
    facts = draw.pick((EVENTS, ORDERS, LOGS))
    key = draw.pick(facts.keys)
    category = draw.pick(facts.categories)
    function = draw.pick(
        (
            f"len(list({category}))",
            f"length(string_agg({category}, ','))",
            f"arg_max({facts.id}, {facts.measures[0]})",
            f"mode({category})",
            f"max(struct_pack(a := {facts.measures[0]}, b := {facts.id}))",
        )
    )
    return (
        f"SELECT count(*), min(v), max(v) FROM (SELECT {key}, {function} AS v FROM {facts.table}"
        f"{where(draw, facts.conditions, 0, 2, (0.05, 0.5))} GROUP BY {key})"
    )
