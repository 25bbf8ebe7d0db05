"""Conditions judged on samples: what share of a table they keep, and the like.

What no histogram can tell (a function of columns, a pattern, several conditions at once) is counted
on the rows of a sample, in about a millisecond.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import duckdb
import pyarrow as pa

from queryard.core.errors import QueryardError
from queryard.sql.catalog.quoting import identifier

from .distinct import Seen, from_pieces, seen_sql
from .model import Histogram
from .positions import fixed_width_bytes, value_sql
from .samples import PIECE, PIECES_SEEN, TableSample

REMEMBERED = 20_000
"""Judgements that are remembered; then all are forgotten, which costs a millisecond each."""

OFTEN, OFTEN_PLACES = 10, 3
"""A frequent value is seen so often in a sample, and not only where its rows lie together."""

ALIKE = 4.0
"""That values are kept alike counts like so many rows of each that match."""

MOST_FREQUENT = 1000
POINTS = 16
"""As many points of each bucket of a histogram are tried."""

BOUNDING = 100
"""Rows of a sample that must match before their bounds are taken for those of all."""

MEMORY = "256MB"
_OPTIMIZERS = frozenset(["filter_pushdown", "unused_columns", "top_n"])
_SUBQUERY = ("select ", "select(", "select\n")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Share:
    """How many of the rows of a sample matched a condition.

    >>> Share(5, 100, exact=False).share, Share(0, 100, exact=False).share
    (0.05, 0.005)
    """

    matches: int
    rows: int
    exact: bool
    """Whether the sample is the whole table."""

    @property
    def share(self) -> float:
        """The estimate. No match means less than one row of the sample: half of one."""
        if not self.rows:
            return 0.0
        return (self.matches if self.matches or self.exact else 0.5) / self.rows

    def interval(self, z: float = 1.64) -> tuple[float, float]:
        """Wilson's interval of the share, of 90 % unless another z is given."""
        if self.exact or not self.rows:
            return self.share, self.share
        n, p = self.rows, self.matches / self.rows
        middle = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return max(0.0, min(middle - half, p)), min(1.0, max(middle + half, p))


class _Loaded(NamedTuple):
    """A sample as a table of the judge's own: None where it cannot be read."""

    version: str
    relation: str | None
    pieces: int = 1


class Judge:
    """Answers questions about tables from their samples; None where there is no answer.

    Conditions and expressions are SQL over the bare names of a table's columns. Any thread may
    ask; one question at a time is worked on. Answers are remembered for as long as a table's
    sample is the same.
    """

    def __init__(self, sample: Callable[[str], TableSample | None]) -> None:
        self._sample = sample
        self._lock = threading.Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._loaded: dict[str, _Loaded] = {}
        self._answers: dict[tuple[str, ...], object] = {}

    def share(self, key: str, condition: str) -> Share | None:
        """What share of the rows of a table a condition keeps; several are joined by AND."""

        def of(relation: str, sample: TableSample) -> Share | None:
            row = self._row(f"SELECT count(*) FROM {relation} WHERE ({condition}\n)")
            return None if row is None else Share(int(row[0]), sample.rows, sample.exact)

        return self._answer(key, ("share", condition), of)

    def distinct(self, key: str, expressions: Sequence[str], condition: str = "") -> float | None:
        """About how many different combinations of these a table has, or its rows that match.

        A null is a value like others, as for GROUP BY.
        """
        items = ", ".join(f"({expression}\n)" for expression in expressions)
        where = f"WHERE ({condition}\n)" if condition else ""

        def of(relation: str, sample: TableSample) -> float | None:
            counted = self._rows(seen_sql("0", items, relation, where, PIECES_SEEN))
            if counted is None:
                return None
            pieces = self._loaded[sample.key].pieces
            seen = Seen.of(((n, places, values) for _, n, places, values in counted), pieces)
            if sample.exact:
                return seen.distinct
            return from_pieces(seen, seen.rows / sample.rows * sample.rows_of_table)

        return self._answer(key, ("distinct", items, where), of)

    def distinct_of_share(self, key: str, expressions: Sequence[str], share: float) -> float | None:
        """The same for a share of the rows, taken evenly: frequent combinations stay."""
        whole = self.distinct(key, expressions)
        if whole is None or share >= 1:
            return whole
        items = ", ".join(f"({expression}\n)" for expression in expressions)

        def of(relation: str, sample: TableSample) -> float | None:
            each = max(sample.rows_of_table / max(sample.rows, 1), 1.0)
            row = self._row(
                f"""SELECT count(*), sum(1 - pow(1 - {share!r}, n * {each!r}))
                    FROM (SELECT count(*) FROM {relation} GROUP BY {items}) AS counted(n)"""
            )
            if row is None:
                return None
            seen, left = float(row[0]), float(row[1] or 0.0)
            return left + max(whole - seen, 0.0) * share

        return self._answer(key, ("share of distinct", items, repr(share)), of)

    def frequent(
        self, key: str, expression: str, condition: str = "", own: str = ""
    ) -> Mapping[Any, float] | None:
        """The values that many rows have, with their share of the non-nulls among rows that match.

        `own` is the part of the condition that reads the expression alone: it keeps all rows of a
        value or none, which any row of the value shows. Of the rest of the condition a sample may
        show few rows. So the number of rows of a value is what they would be if all values were
        kept alike, and the more the sample shows the more what it shows. Where the sample is the
        whole table, it is right, and all values are told if they are few.
        """
        where = f"WHERE ({own}\n)" if own else ""
        matches = f"({condition}\n)" if condition else "true"

        def of(relation: str, sample: TableSample) -> Mapping[Any, float] | None:
            if sample.exact:
                found = self._rows(
                    f"""SELECT v, count(*) AS n, sum(count(*)) OVER () FROM (
                            SELECT ({expression}\n) FROM {relation} WHERE {matches}) AS those(v)
                        WHERE v IS NOT NULL GROUP BY v
                        ORDER BY n DESC, v LIMIT {MOST_FREQUENT + 1}"""
                )
            else:
                found = self._rows(
                    f"""SELECT v, count(*), count(*) FILTER (matches), {PIECES_SEEN},
                            sum(count(*)) OVER (), sum(count(*) FILTER (matches)) OVER ()
                        FROM (SELECT ({expression}\n), {matches}, {identifier(PIECE)}
                            FROM {relation} {where}) AS those(v, matches, {identifier(PIECE)})
                        WHERE v IS NOT NULL GROUP BY v QUALIFY count(*) >= {OFTEN}"""
                )
            try:
                if found is None:
                    return None
                return _frequent_of_all(found) if sample.exact else _frequent(found)
            except TypeError:  # lists are no keys
                return None

        return self._answer(key, ("frequent", expression, matches, where), of)

    def share_by_histogram(
        self, key: str, column: str, type_: str, histogram: Histogram, condition: str
    ) -> float | None:
        """What share of the values of one column a condition keeps, tried at many points of it.

        For columns whose rows lie in order, of which a sample sees only some places.
        """
        value = value_sql("p", type_)
        if value is None or not histogram.total:
            return None
        name = identifier(column)
        counts = ", ".join(repr(count) for count in histogram.counts)

        def of(relation: str, sample: TableSample) -> float | None:
            row = self._row(
                f"""SELECT sum(w) FILTER (WHERE ({condition}\n)), sum(w) FROM (
                    SELECT {value}, w FROM (
                        SELECT {histogram.low!r} + (b - 1 + (j + 0.5) / {POINTS})
                            * {histogram.width!r}, w
                        FROM (SELECT unnest([{counts}]), unnest(range(1, {len(histogram) + 1})))
                            AS buckets(w, b), range({POINTS}) AS points(j)) AS placed(p, w)
                    ) AS values_of({name}, w)"""
            )
            return None if row is None or not row[1] else float(row[0] or 0.0) / float(row[1])

        return self._answer(key, ("points", column, counts, condition), of)

    def bounds(self, key: str, expression: str, condition: str) -> tuple[float, float] | None:
        """The least and the largest value of a number among rows for which a condition holds.

        None where too few rows of the sample tell.
        """

        def of(relation: str, sample: TableSample) -> tuple[float, float] | None:
            found = f"count(*), {_bounds_sql(expression)}"
            row = self._row(f"SELECT {found} FROM {relation} WHERE ({condition}\n)")
            return None if row is None else _bounds(row[1:], int(row[0]), sample)

        return self._answer(key, ("bounds", expression, condition), of)

    def prepare(self, key: str, condition: str, expressions: Sequence[str]) -> None:
        """Answer at once what is asked for next: `share` of a condition and `bounds` with it.

        Beginning a statement takes about as long as counting a sample.
        """

        def of(relation: str, sample: TableSample) -> None:
            found = ", ".join(["count(*)", *map(_bounds_sql, expressions)])
            row = self._row(f"SELECT {found} FROM {relation} WHERE ({condition}\n)")
            if row is None:
                return  # each by itself may have an answer
            matches = int(row[0])
            known = (sample.key, sample.version)
            self._answers[(*known, "share", condition)] = Share(matches, sample.rows, sample.exact)
            for place, expression in enumerate(expressions):
                bounds = _bounds(row[1 + 2 * place : 3 + 2 * place], matches, sample)
                self._answers[(*known, "bounds", expression, condition)] = bounds

        self._answer(key, ("prepared", condition, *expressions), of)

    def mean(self, key: str, expression: str) -> float | None:
        """The mean of a number over the rows where it is not null; 0 if there are none."""

        def of(relation: str, sample: TableSample) -> float | None:
            row = self._row(f"SELECT CAST(avg({expression}\n) AS DOUBLE) FROM {relation}")
            return None if row is None else float(row[0] or 0.0)

        return self._answer(key, ("mean", expression), of)

    def mean_width(self, key: str, expression: str) -> float | None:
        """Bytes of a value in memory."""

        def of(relation: str, sample: TableSample) -> float | None:
            row = self._row(f"SELECT typeof(({expression}\n)) FROM {relation} LIMIT 1")
            if row is None:
                return None
            fixed = fixed_width_bytes(str(row[0]))
            if fixed is not None:
                return fixed
            value = (
                f"({expression}\n)" if row[0] == "VARCHAR" else f"CAST(({expression}\n) AS VARCHAR)"
            )
            row = self._row(f"SELECT avg(strlen({value})) FROM {relation}")
            return None if row is None else float(row[0] or 0.0)

        return self._answer(key, ("width", expression), of)

    def _answer(
        self,
        key: str,
        question: tuple[str, ...],
        of: Callable[[str, TableSample], Answer | None],
    ) -> Answer | None:
        try:
            sample = self._sample(key)
        except QueryardError:
            return None
        if sample is None:
            return None
        remembered = (sample.key, sample.version, *question)
        with self._lock:
            if remembered in self._answers:
                return self._answers[remembered]  # type: ignore[return-value]
            # A subquery would read other tables than the sample, or count for hours.
            lower = " ".join(question).lower()
            relation = None if any(word in lower for word in _SUBQUERY) else self._table(sample)
            found = None if relation is None else of(relation, sample)
            if len(self._answers) >= REMEMBERED:
                self._answers.clear()
            self._answers[remembered] = found
            return found

    def _row(self, sql: str) -> tuple[Any, ...] | None:
        rows = self._rows(sql)
        return rows[0] if rows else None

    def _rows(self, sql: str) -> list[tuple[Any, ...]] | None:
        assert self._connection is not None
        try:
            # All rows: a result with rows left would keep the connection.
            return self._connection.execute(sql).fetchall()
        except duckdb.Error:
            return None  # a function of the user's, a name that is no column: not for the sample

    def _table(self, sample: TableSample) -> str | None:
        """The sample as a table of the judge's own instance; None where it cannot be read."""
        held = self._loaded.get(sample.key)
        if held is not None and held.version == sample.version:
            return held.relation
        if self._connection is None:
            self._connection = _instance()
        name = identifier(f"sample {sample.key}")
        try:
            self._connection.register("frame", sample.frame())
            self._connection.execute(
                f"CREATE OR REPLACE TABLE {name} AS SELECT {', '.join(sample.items())} FROM frame"
            )
            self._connection.unregister("frame")
            row = self._row(f"SELECT {PIECES_SEEN} FROM {name}")
        except (duckdb.Error, OSError, pa.ArrowException):
            self._loaded[sample.key] = _Loaded(sample.version, None)
            return None
        pieces = row[0] if row is not None and row[0] else 1
        self._loaded[sample.key] = _Loaded(sample.version, name, pieces)
        return name


def _frequent_of_all(rows: Sequence[tuple[Any, ...]]) -> Mapping[Any, float]:
    """The shares of values from their rows and all rows, the most frequent ones first."""
    few = len(rows) <= MOST_FREQUENT
    return {value: n / total for value, n, total in rows[:MOST_FREQUENT] if few or n >= OFTEN}


def _frequent(rows: Sequence[tuple[Any, ...]]) -> Mapping[Any, float]:
    """The shares of values of which rows, those that match and pieces were counted, with sums."""
    shares = {}
    for value, n, matches, places, all_rows, all_matches in rows:
        if places >= OFTEN_PLACES:
            kept = n * all_matches / all_rows
            shares[value] = n / all_rows * (matches + ALIKE) / (kept + ALIKE)
    most = sorted(shares, key=lambda value: -shares[value])[:MOST_FREQUENT]
    whole = max(1.0, sum(shares[value] for value in most))
    return {value: shares[value] / whole for value in most}


def _bounds_sql(expression: str) -> str:
    """Of something else than a number they are null."""
    return ", ".join(f"TRY_CAST({end}(({expression}\n)) AS DOUBLE)" for end in ("min", "max"))


def _bounds(
    ends: Sequence[float | None], matches: int, sample: TableSample
) -> tuple[float, float] | None:
    low, high = ends
    if low is None or high is None or (matches < BOUNDING and not sample.exact):
        return None
    return low, high


def _instance() -> duckdb.DuckDBPyConnection:
    settings: dict[str, str | bool | int | float | list[str]] = {
        "threads": 1,
        "memory_limit": MEMORY,
        "enable_external_access": False,
        "temp_directory": "",
    }
    connection = duckdb.connect(":memory:", config=settings)
    # To optimise a statement over so few rows takes longer than to run it as it is.
    rows = connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()
    idle = ",".join(name for (name,) in rows if name not in _OPTIMIZERS)
    connection.execute(f"SET disabled_optimizers = '{idle}'")
    return connection
