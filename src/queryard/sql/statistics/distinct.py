"""How many different values: a sketch reckoned in SQL, and an estimate from samples.

The sketch keeps, for each of m registers, the least hash that fell into it. With d distinct values
each is the least of about d/m uniform numbers, and m(m-1) / Σ minima is an estimate of d with a
relative error of 1/√(m-2); as long as registers are empty, counting those is better (Lumbroso, "An
optimal cardinality estimation algorithm based on order statistics and its full analysis", AofA
2010). DuckDB's own sketch is not used because its 64 registers err by about 13 %.
"""

from __future__ import annotations

import math

HASH_BITS = 64


def sketch_sql(column: str, group: str, source: str, registers: int) -> str:
    """A statement with one row a group: its key, values, registers in use, sum of their minima.

    Hashes are scaled to (0, 1). `registers` is a power of two. Nulls are left out. What is
    reckoned is named outside of the inner statement, where no column of the table is in sight.
    """
    bits = registers.bit_length() - 1
    scale = 2.0 ** -(HASH_BITS - bits)
    return f"""
        SELECT part, sum(n), count(*), sum(least * {scale!r})
        FROM (
            SELECT {group}, hash({column}) & {registers - 1},
                min(hash({column}) >> {bits}), count(*)
            FROM {source} WHERE {column} IS NOT NULL GROUP BY ALL
        ) AS registers(part, register, least, n)
        GROUP BY part ORDER BY part"""


def distinct_values(used: int, sum_of_minima: float, registers: int) -> float:
    """The estimate from the registers in use and the sum of the least hashes in them.

    >>> distinct_values(0, 0.0, 1024), round(distinct_values(1, 0.3, 1024))
    (0.0, 1)
    """
    if not used:
        return 0.0
    empty = registers - used
    ordinary = registers * (registers - 1) / (sum_of_minima + empty)
    if empty and ordinary < 2.5 * registers:
        return registers * math.log(registers / empty)
    return ordinary


def from_sample(distinct: float, once: float, sampled_rows: float, rows: float) -> float:
    """Distinct values of all rows, from those of rows drawn by chance.

    `once` of them were seen once only. The estimator Duj1 of Haas and Stokes (JASA 1998), which is
    exact for keys and for columns of few values.

    >>> from_sample(1000.0, 1000.0, 1000.0, 10_000.0)  # all seen once: probably a key
    10000.0
    >>> from_sample(7.0, 0.0, 1000.0, 10_000.0)
    7.0
    """
    if not sampled_rows or sampled_rows >= rows:
        return distinct
    unseen = (1 - sampled_rows / rows) * min(once, sampled_rows) / sampled_rows
    return min(rows, distinct / (1 - unseen))


def from_ranges(distinct: float, sampled_rows: float, rows: float) -> float:
    """Distinct values of all rows, from whole ranges of a table in which equal values lie together.

    What was not read holds other values, so they grow with the rows.

    >>> from_ranges(100, 1000, 10_000)
    1000.0
    """
    return min(rows, distinct * rows / sampled_rows) if sampled_rows else distinct


def from_pieces(distinct: float, once: float, places: float, sampled: float, rows: float) -> float:
    """Distinct values of all rows, from pieces of a table: rows that lie beside each other.

    `places` is the sum over values of the pieces that they occur in, `once` counts the values of
    one piece only. Rows of one value in one piece count as one row, so that values which lie
    together do not look as if they came again and again.

    >>> from_pieces(5000.0, 5000.0, 5000.0, 20_000.0, 6_000_000.0)  # four rows each, together
    1500000.0
    >>> from_pieces(7.0, 0.0, 112.0, 20_000.0, 6_000_000.0)  # all values in all 16 pieces
    7.0
    """
    if not sampled or not places:
        return distinct
    return from_sample(distinct, once, places, rows * places / sampled)


def remaining(distinct: float, rows: float, share: float) -> float:
    """How many of the distinct values of some rows are left in a share of the rows (Cardenas).

    >>> remaining(100.0, 100.0, 0.5), round(remaining(10.0, 1000.0, 0.5))
    (50.0, 10)
    """
    if share >= 1 or distinct <= 0 or rows <= 0:
        return max(distinct, 0.0)
    if share <= 0:
        return 0.0
    each = max(rows / distinct, 1.0)
    return float(distinct * -math.expm1(each * math.log1p(-share)))
