"""What the drawn queries are put together from: the random choices, and columns with conditions.

What decides the structure of a query comes from one source of random numbers, its literals from
another: with the same first and another second source, it is the same template.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import TypeVar

from .drawn_tables import CONTINENTS, DEVICES, KINDS, LEVELS, SENSORS, STATUSES, WORDS

T = TypeVar("T")
YEAR = datetime(2024, 1, 1)
DAYS = 366
# A shorter period of a smaller table takes less than the shortest query is to take, 10 ms.
LEAST_DAYS = 45


class Draw:
    """The random choices of one query over tables with so many rows."""

    def __init__(self, shape: str, literals: str, rows: dict[str, int]) -> None:
        self._shape = Random(shape)
        self.literals = Random(literals)
        self.rows = rows

    def pick(self, values: Sequence[T]) -> T:
        """One that is part of the structure."""
        return self._shape.choice(values)

    def some(self, values: Sequence[T], least: int, most: int) -> list[T]:
        """Several, in an order of their own."""
        return self._shape.sample(values, min(len(values), self._shape.randint(least, most)))

    def chance(self, share: float) -> bool:
        """Whether the structure has something that a share of all queries have."""
        return self._shape.random() < share

    def share(self, least: float = 0.01, most: float = 0.9) -> float:
        """The share of rows that a condition keeps: the template's, within a factor of two."""
        typical = math.exp(self._shape.uniform(math.log(least), math.log(most)))
        return min(most, typical * math.exp(self.literals.uniform(-0.7, 0.7)))

    def literal(self, values: Sequence[T]) -> T:
        """One that is a literal."""
        return self.literals.choice(values)

    def number(self, least: int, most: int) -> int:
        """A whole number that is a literal."""
        return self.literals.randint(least, most)


Condition = Callable[[Draw, float], str]
"""A condition that keeps about such a share of the rows."""


@dataclass(frozen=True)
class Facts:
    """A table of facts; `keys` name a row of another table or many things of their own."""

    table: str
    id: str
    time: str
    measures: tuple[str, ...]
    categories: tuple[str, ...]
    keys: tuple[str, ...]
    text: str
    conditions: tuple[Condition, ...]
    # The columns of a wide answer.
    wide: str = "*"


@dataclass(frozen=True)
class Named:
    """A table that facts name by a key."""

    table: str
    key: str
    categories: tuple[str, ...]
    measure: str
    conditions: tuple[Condition, ...]


def period(column: str) -> Condition:
    """A part of the year: rows lie in this order."""

    def condition(draw: Draw, share: float) -> str:
        days = max(LEAST_DAYS, share * DAYS)
        start = YEAR + timedelta(seconds=draw.literals.uniform(0, DAYS - min(days, DAYS)) * 86400)
        end = start + timedelta(days=days)
        return f"{column} >= TIMESTAMP '{start:%F %T}' AND {column} < TIMESTAMP '{end:%F %T}'"

    return condition


def above(column: str, factor: float, rate: float) -> Condition:
    """More than a threshold, of `factor * exp(rate * u)`."""

    def condition(draw: Draw, share: float) -> str:
        return f"{column} > {factor * math.exp(rate * (1 - share)):.2f}"

    return condition


def one_of(column: str, values: Sequence[str]) -> Condition:
    """One value, or one of two."""

    def condition(draw: Draw, share: float) -> str:
        if draw.chance(0.6):
            return f"{column} = '{draw.literal(values)}'"
        first, second = draw.literals.sample(list(values), 2)
        return f"{column} IN ('{first}', '{second}')"

    return condition


def first_of(column: str, table: str) -> Condition:
    """The most frequent keys of a Zipf distribution over a table, or all others."""

    def condition(draw: Draw, share: float) -> str:
        last = (draw.rows[table] + 1) ** share
        if draw.chance(0.5):
            return f"{column} <= {max(1, last):.0f}"
        return f"{column} > {(draw.rows[table] + 1) ** (1 - share):.0f}"

    return condition


def has_word(column: str) -> Condition:
    """A text that contains a word."""

    def condition(draw: Draw, share: float) -> str:
        word = draw.literal(WORDS)
        kind = draw.pick(("like", "ilike", "contains", "regexp", "not"))
        return {
            "like": f"{column} LIKE '%{word}%'",
            "ilike": f"{column} ILIKE '%{word.upper()}%'",
            "contains": f"contains({column}, '{word}')",
            "regexp": f"regexp_matches({column}, '{word}.*[0-9]{{3}}')",
            "not": f"{column} NOT LIKE '%{word}%'",
        }[kind]

    return condition


def fixed(*texts: str) -> Condition:
    """One of some conditions without literals worth drawing."""
    return lambda draw, share: draw.pick(texts)


EVENTS = Facts(
    "events",
    "event_id",
    "ts",
    ("amount", "quantity", "discount"),
    ("device", "kind", "country", "place.city"),
    ("user_id", "product_id", "session_id"),
    "url",
    (
        period("ts"),
        above("amount", 5, 4),
        one_of("device", DEVICES),
        one_of("kind", KINDS),
        first_of("user_id", "users"),
        first_of("product_id", "products"),
        has_word("url"),
        fixed("url IS NOT NULL", "amount IS NULL", "len(tags) > 1"),
        lambda draw, share: f"quantity > {51 ** (1 - share):.0f} AND discount > 0.02",
        lambda draw, share: f"list_contains(tags, '{draw.literal(WORDS)}')",
        lambda draw, share: f"place.lat > {90 - 180 * share:.2f}",
        lambda draw, share: f"(amount > {5 * math.exp(4 - 4 * share):.2f} OR quantity > 30)",
    ),
    "event_id, ts, user_id, product_id, country, device, kind, amount, quantity, discount, url",
)
ORDERS = Facts(
    "orders",
    "order_id",
    "ordered_at",
    ("total",),
    ("status",),
    ("user_id",),
    "note",
    (
        period("ordered_at"),
        above("total", 10, 5),
        one_of("status", STATUSES),
        first_of("user_id", "users"),
        has_word("note"),
        fixed("shipped_at IS NULL", "note IS NOT NULL", "status <> 'paid'"),
        lambda draw, share: f"shipped_at - ordered_at > INTERVAL {240 - 240 * share:.0f} HOUR",
        lambda draw, share: f"len(lines) >= {draw.number(2, 4)}",
    ),
    "order_id, user_id, ordered_at, shipped_at, status, total, note",
)
READINGS = Facts(
    "readings",
    "ts",
    "ts",
    ("value", "battery", "quality"),
    ("quality",),
    ("sensor_id",),
    "",
    (
        period("ts"),
        lambda draw, share: f"value > {80 - 70 * share:.2f}",
        lambda draw, share: f"sensor_id % {max(2, round(1 / share))} = 0",
        lambda draw, share: f"battery < {20 + 70 * share:.1f} AND quality < {draw.number(2, 5)}",
        fixed("value IS NOT NULL", "quality = 0", "quality <> 0"),
    ),
)
LOGS = Facts(
    "logs",
    "line",
    "ts",
    ("took_ms",),
    ("level", "host"),
    ("path",),
    "message",
    (
        period("ts"),
        above("took_ms", 1, 8),
        one_of("level", LEVELS),
        has_word("message"),
        has_word("path"),
        lambda draw, share: f"host IN ('host-{draw.number(1, 9)}', 'host-{draw.number(10, 60)}')",
        fixed("message LIKE '%timeout%'", "level <> 'INFO'"),
    ),
)
FACTS = (EVENTS, ORDERS, READINGS, LOGS)

USERS = Named(
    "users",
    "user_id",
    ("country", "city", "birth_year"),
    "score",
    (
        lambda draw, share: f"joined < DATE '2015-01-01' + {3200 * share:.0f}",
        lambda draw, share: f"birth_year > {2010 - 70 * share:.0f}",
        lambda draw, share: f"country IN ('C{draw.number(1, 5)}', 'C{draw.number(6, 180)}')",
        lambda draw, share: f"list_contains(interests, '{draw.literal(WORDS)}')",
        has_word("email"),
    ),
)
PRODUCTS = Named(
    "products",
    "product_id",
    ("category", "subcategory", "attributes.color"),
    "price",
    (
        above("price", 3, 4),
        lambda draw, share: f"category = 'category {draw.number(1, 12)}'",
        has_word("description"),
        fixed("weight IS NULL", "weight < 3"),
    ),
)
SENSORS_TABLE = Named(
    "sensors",
    "sensor_id",
    ("kind", "site"),
    "bounds.low",
    (
        one_of("kind", SENSORS),
        lambda draw, share: f"site = 'site {draw.number(1, 10)}'",
        lambda draw, share: f"installed < DATE '2020-01-01' + {1400 * share:.0f}",
    ),
)
COUNTRIES = Named(
    "countries",
    "code",
    ("continent", "name"),
    "population",
    (one_of("continent", CONTINENTS), above("population", 5e6, 5)),
)
# The facts, the key in them, and what it names.
LINKS = (
    (EVENTS, "user_id", USERS),
    (EVENTS, "product_id", PRODUCTS),
    (EVENTS, "country", COUNTRIES),
    (ORDERS, "user_id", USERS),
    (READINGS, "sensor_id", SENSORS_TABLE),
)
