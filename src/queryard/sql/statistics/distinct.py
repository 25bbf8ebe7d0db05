"""How many different values: a sketch computed in SQL, and an estimate from samples.

The sketch keeps, for each of m registers, the least hash that fell into it. With d distinct values
each is the least of about d/m uniform numbers, and m(m-1) / Σ minima is an estimate of d with a
relative error of 1/√(m-2); as long as registers are empty, counting those is better (Lumbroso, "An
optimal cardinality estimation algorithm based on order statistics and its full analysis", AofA
2010). DuckDB's own sketch is not used because its 64 registers err by about 13 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

HASH_BITS = 64


def sketch_sql(column: str, group: str, source: str, registers: int) -> str:
    """A statement with one row per group: its key, values, registers in use, sum of their minima.

    Hashes are scaled to (0, 1). `registers` is a power of two. Nulls are left out. What is
    computed is named outside of the inner statement, where no column of the table is in sight.
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


RARE = 50
"""A value seen more often than this is surely known, and tells nothing of values not seen."""

TOGETHER = 1.5
"""From this factor on rows of equal values lie together rather than here and there."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Values in a sample that is made of pieces: rows that lie beside each other.

    Of `rows` rows with `distinct` values, `once` occur in one row and `in_one_piece` in one piece;
    `pieces` is the sum over values of the pieces that they occur in, and `scattered` what that sum
    would be if rows were scattered. The others are of values in at most RARE rows: their number,
    their rows, and the sum of n(n-1) over them.
    """

    distinct: float
    rows: float
    once: float
    in_one_piece: float
    pieces: float
    scattered: float
    rare: float
    rare_rows: float
    rare_pairs: float

    @classmethod
    def of(cls, counted: Iterable[tuple[int, int, int]], pieces: float) -> Seen:
        """From how many values there are by the rows and the pieces that each is in.

        The sample has so many pieces.

        >>> Seen.of([(1, 1, 3), (80, 2, 1)], 2.0)  # three values once each, one eighty times
        Seen(distinct=4, rows=83, once=3, in_one_piece=3, pieces=5, scattered=5.0, rare=3, \
rare_rows=3, rare_pairs=0)
        """
        counted = list(counted)
        rare = [(n, values) for n, _, values in counted if n <= RARE]
        return cls(
            sum(values for _, _, values in counted),
            sum(n * values for n, _, values in counted),
            sum(values for n, _, values in counted if n == 1),
            sum(values for _, places, values in counted if places == 1),
            sum(places * values for _, places, values in counted),
            sum(values * pieces * (1 - (1 - 1 / pieces) ** n) for n, _, values in counted),
            sum(values for _, values in rare),
            sum(n * values for n, values in rare),
            sum(n * (n - 1) * values for n, values in rare),
        )


def seen_sql(part: str, values: str, source: str, where: str, pieces_seen: str) -> str:
    """A statement: by part, how many values there are in so many rows and so many pieces.

    `pieces_seen` is an aggregate: of how many pieces rows are. What is computed is named outside of
    the inner statement, where no column of the table is in sight. All that can be computed
    afterwards is: DuckDB takes longer to plan a statement with more in it than to run it.
    """
    group = f"({part} + 0)"  # a bare number would be the place of a column
    return f"""
        SELECT part, n, places, count(*)
        FROM (
            SELECT {group}, count(*), {pieces_seen} FROM {source} {where} GROUP BY {group}, {values}
        ) AS counted(part, n, places)
        GROUP BY part, n, places"""


def from_pieces(seen: Seen, rows: float) -> float:
    """Distinct values of all `rows`, from those in pieces of them.

    Where equal values lie together, rows of one value in one piece count as one, so that values do
    not look as if they came again and again. Else it is Duj2a of Haas and Stokes (JASA 1998): as
    Duj1, with a term for skew, and without the most frequent values.

    >>> orders = Seen(5000, 20_000, 0, 5000, 5000, 18_000, 5000, 20_000, 60_000)
    >>> from_pieces(orders, 6_000_000)  # four rows of each value, together
    1500000.0
    >>> from_pieces(Seen(7, 20_000, 0, 0, 112, 112, 0, 0, 0), 6_000_000)
    7.0
    """
    if not seen.rows or seen.rows >= rows:
        return seen.distinct
    if seen.scattered > TOGETHER * seen.pieces:
        places = rows * seen.pieces / seen.rows
        return from_sample(seen.distinct, seen.in_one_piece, seen.pieces, places)
    if not seen.rare:
        return float(seen.distinct)
    share = seen.rows / rows
    rare_rows = rows * seen.rare_rows / seen.rows
    unseen = (1 - share) * seen.once / seen.rare_rows
    first = seen.rare / (1 - unseen)
    skew = max(0.0, first / seen.rare_rows**2 * seen.rare_pairs + first / rare_rows - 1)
    more = seen.once * (1 - share) * -math.log1p(-share) / share * skew
    found = seen.distinct - seen.rare + (seen.rare + more) / (1 - unseen)
    return min(rows, max(found, seen.distinct))


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
