"""The tables of the drawn queries: skewed keys, correlated columns, nulls, nested types.

Four tables of facts (`events`, `orders`, `readings`, `logs`), in the order of their times, and four
of what they name. Keys follow Zipf's law with exponent 1: the first of 200,000 users has 6 % of the
events. A user's country, the device used there, the quantity and the discount, the kind of a sensor
and its values go together.
"""

from __future__ import annotations

ROWS = {
    "countries": 180,
    "users": 200_000,
    "products": 40_000,
    "sensors": 2_000,
    "events": 2_500_000,
    "orders": 800_000,
    "readings": 4_000_000,
    "logs": 900_000,
}
"""At size 1; the first has as many at any size."""

WORDS = (
    "amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "haven",
    "islet", "jetty", "knoll", "lotus", "maple", "north", "ocean", "prism",
    "quartz", "river", "solar", "tundra", "umber", "valley", "willow", "xenon",
    "yonder", "zephyr", "anchor", "bridge", "copper", "dragon", "engine", "forest",
    "garden", "harbor", "island", "jungle", "kernel", "ladder", "meadow", "needle",
)  # fmt: skip
DEVICES = ("phone", "laptop", "tablet", "watch", "tv")
KINDS = ("view", "click", "cart", "buy", "return")
STATUSES = ("paid", "shipped", "delivered", "returned", "lost")
LEVELS = ("INFO", "DEBUG", "WARN", "ERROR")
SENSORS = ("heat", "power", "flow", "noise")
CONTINENTS = ("Africa", "America", "Antarctica", "Asia", "Europe", "Oceania")

MACROS = f"""
CREATE MACRO word(i, salt) AS ({list(WORDS)})[1 + (zipf(i, salt, 80) - 1) % {len(WORDS)}];
CREATE MACRO words(i, salt) AS word(i, salt) || ' ' || word(i, salt + 1) || ' ' ||
  word(i, salt + 2) || ' ' || word(i, salt + 3) || ' ' || word(i, salt + 4) || ' ' ||
  word(i, salt + 5) || ' ' || hash(i * 64 + salt + 6) % 100000;
CREATE MACRO pick(names, i, salt, most) AS
  names[least(len(names), zipf(i, salt, most))];
CREATE MACRO country_of(u) AS 'C' || zipf(u, 40, 180);
CREATE MACRO at_place(i, n) AS TIMESTAMP '2024-01-01' +
  to_milliseconds(((i + draw(i, 50)) * 31622400000 / n)::BIGINT);
"""


def counts(size: float) -> dict[str, int]:
    """Rows of each table at a size."""
    return {
        table: rows if table == "countries" else max(50, round(rows * size))
        for table, rows in ROWS.items()
    }


def tables(size: float) -> dict[str, str]:
    """The query that makes each table."""
    n = counts(size)
    return {
        "countries": f"""
SELECT 'C' || i AS code, 'Country of ' || word(i, 1) || ' ' || i AS name,
  ({list(CONTINENTS)})[1 + i % 6] AS continent, (1e9 / i)::BIGINT AS population
FROM (SELECT range + 1 AS i FROM range({n["countries"]}))""",
        "users": f"""
SELECT i AS user_id, word(i, 1) || ' ' || word(i, 2) AS name,
  word(i, 1) || '.' || word(i, 2) || i || '@' || word(i, 3) || '.example' AS email,
  country_of(i) AS country, country_of(i) || '-city-' || zipf(i, 4, 30) AS city,
  DATE '2015-01-01' + (i * 3200 // {n["users"]})::INTEGER AS joined,
  CASE WHEN draw(i, 5) > 0.15 THEN (1940 + 70 * draw(i, 6))::SMALLINT END AS birth_year,
  [word(i, 7 + k) for k in range(zipf(i, 16, 6) - 1)] AS interests,
  round(100 * sqrt(draw(i, 17)), 3) AS score
FROM (SELECT range + 1 AS i FROM range({n["users"]}))""",
        "products": f"""
SELECT i::INTEGER AS product_id, 'The ' || word(i, 1) || ' ' || word(i, 2) || ' ' || i AS name,
  'category ' || c AS category, 'category ' || c || '.' || zipf(i, 4, 12) AS subcategory,
  round((1 + c) * exp(3 * draw(i, 5)), 2) AS price,
  CASE WHEN draw(i, 6) > 0.2 THEN 10 * draw(i, 7) END AS weight,
  words(i, 8) || '. ' || words(i, 15) || '. ' || words(i, 22) AS description,
  {{'color': word(i, 30), 'sizes': range(zipf(i, 31, 8))}} AS attributes
FROM (SELECT range + 1 AS i, zipf(range, 3, 25) AS c FROM range({n["products"]}))""",
        "sensors": f"""
SELECT i::INTEGER AS sensor_id, ({list(SENSORS)})[1 + i % 4] AS kind,
  'site ' || zipf(i, 2, 40) AS site,
  DATE '2020-01-01' + (draw(i, 3) * 1400)::INTEGER AS installed,
  {{'low': 10 + 5 * draw(i, 4), 'high': 60 + 20 * draw(i, 5)}} AS bounds
FROM (SELECT range + 1 AS i FROM range({n["sensors"]}))""",
        "events": f"""
SELECT i AS event_id, at_place(i, {n["events"]}) AS ts, user_id, product_id, i // 7 AS session_id,
  CASE WHEN draw(i, 3) < 0.9 THEN country_of(user_id) ELSE 'C' || zipf(i, 4, 180) END AS country,
  CASE WHEN user_id % 3 = 0 THEN 'phone' ELSE pick({list(DEVICES)}, i, 5, 40) END AS device,
  pick({list(KINDS)}, i, 6, 12) AS kind,
  CASE WHEN draw(i, 7) > 0.1 THEN round(5 * exp(4 * draw(i, 8)), 2) END AS amount,
  quantity::SMALLINT AS quantity, round(quantity * 0.01 + 0.05 * draw(i, 10), 4) AS discount,
  CASE WHEN draw(i, 11) > 0.2 THEN 'https://shop.example/' || word(i, 12) || '/' || word(i, 13) ||
    '/' || product_id || '?ref=' || word(i, 14) || '&campaign=' || zipf(i, 15, 500) END AS url,
  [word(i, 16 + k) for k in range(zipf(i, 25, 5) - 1)] AS tags,
  {{'city': 'city ' || zipf(i, 26, 400), 'lat': 180 * draw(i, 27) - 90,
    'lon': 360 * draw(i, 28) - 180}} AS place
FROM (SELECT range AS i, zipf(range, 0, {n["users"]}) AS user_id,
  zipf(range, 1, {n["products"]})::INTEGER AS product_id, zipf(range, 9, 50) AS quantity
  FROM range({n["events"]}))""",
        "orders": f"""
SELECT i AS order_id, zipf(i, 0, {n["users"]}) AS user_id, ordered_at,
  CASE WHEN draw(i, 1) > 0.08 THEN ordered_at + to_hours((draw(i, 2) * 240)::BIGINT) END
    AS shipped_at,
  pick({list(STATUSES)}, i, 3, 30) AS status, (10 * exp(5 * draw(i, 4)))::DECIMAL(12, 2) AS total,
  CASE WHEN draw(i, 5) > 0.3 THEN words(i, 6) || '; ' || words(i, 13) END AS note,
  [{{'product_id': zipf(i * 5 + k, 20, {n["products"]})::INTEGER, 'n': zipf(i * 5 + k, 21, 20),
     'price': round(2 * exp(4 * draw(i * 5 + k, 22)), 2)}} for k in range(zipf(i, 23, 5))] AS lines
FROM (SELECT range AS i, at_place(range, {n["orders"]}) AS ordered_at FROM range({n["orders"]}))""",
        "readings": f"""
SELECT at_place(i, {n["readings"]}) AS ts, sensor_id::INTEGER AS sensor_id,
  CASE WHEN draw(i, 1) > 0.03 THEN round(25 + sensor_id % 4 * 12
    + 15 * sin(i * 2300.0 / {n["readings"]}) + 10 * draw(i, 2), 3) END AS value,
  (zipf(i, 3, 9) - 1)::TINYINT AS quality,
  round(100 - 60.0 * i / {n["readings"]} - 30 * draw(sensor_id, 4), 1)::FLOAT AS battery
FROM (SELECT range AS i, 1 + range * 7919 % {n["sensors"]} AS sensor_id
  FROM range({n["readings"]}))""",
        "logs": f"""
SELECT i AS line, at_place(i, {n["logs"]}) AS ts, pick({list(LEVELS)}, i, 1, 9) AS level,
  'host-' || zipf(i, 2, 60) AS host,
  '/' || word(i, 3) || '/' || word(i, 4) || '/' || zipf(i, 5, 5000) AS path,
  round(exp(8 * draw(i, 6)), 2) AS took_ms,
  '[' || word(i, 7) || '] user=' || zipf(i, 8, {n["users"]}) || ' ' || words(i, 9) || ' ' ||
    words(i, 16) || CASE WHEN draw(i, 30) < 0.05 THEN ' failed: timeout after ' ||
    (draw(i, 31) * 1000)::INTEGER || ' ms' ELSE ' ok' END AS message
FROM (SELECT range AS i FROM range({n["logs"]}))""",
    }
