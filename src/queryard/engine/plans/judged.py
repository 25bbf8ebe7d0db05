"""What is known of the tables of a plan: shares that filters keep, values of keys, groups.

Statistics tell of columns, a sample of whatever a row can be asked. Both know nothing of some
tables, and then it is DuckDB's numbers or a guess.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from queryard.sql.statistics.distinct import remaining

from .filters import LEAST, kept_share, ranges, words
from .keys import Keys
from .streams import Column, Stream, of_table
from .tables import TableFacts

_EQUAL = re.compile(r"\(\"?(\w+)\"? = (?:'|-?\d)")
# Groups by a value that was computed: more than a few, fewer than rows.
COMPUTED_POWER = 0.6
# A column with so many values per row is a key.
UNIQUE = 0.9
# Rows of a sample that must match before their number is believed.
TELLING = 10
# If a filter leaves out so many row groups, the rows it wants lie together.
TOGETHER = 0.8
# The squared error of the logarithm of rows where ranges of columns tell.
BY_RANGES = math.log(1.5) ** 2


class Judging(Protocol):
    """Samples of tables that tell what no statistics can."""

    def share(self, key: str, condition: str) -> Any: ...
    def distinct(
        self, key: str, expressions: Sequence[str], condition: str = ""
    ) -> float | None: ...
    def bounds(self, key: str, expression: str, condition: str) -> tuple[float, float] | None: ...
    def prepare(self, key: str, condition: str, expressions: Sequence[str]) -> None: ...
    def mean(self, key: str, expression: str) -> float | None: ...
    def frequent(
        self, key: str, expression: str, condition: str = "", own: str = ""
    ) -> Mapping[Any, float] | None: ...


class Known:
    """The tables of one plan; `keys` are names of columns that join and group."""

    def __init__(
        self, facts: Mapping[str, TableFacts], judge: Judging | None, keys: frozenset[str]
    ) -> None:
        self.facts = facts
        self.judge = judge
        self._keys = keys
        self.keys = Keys(facts, judge)

    def is_key(self, column: Column) -> bool:
        """Whether rows are joined or grouped by it."""
        return bool(column.name) and column.name in self._keys

    def column(self, facts: TableFacts, name: str, conditions: Sequence[str]) -> Column:
        """A column of a table; of keys, the sample may know how many values there are."""
        column = self._column(facts, name, " AND ".join(conditions))
        return self.keys.of_table(column, facts, conditions) if name in self._keys else column

    def filtered(
        self, column: Column, facts: TableFacts, conditions: Sequence[str], share: float
    ) -> Column:
        """The column where all conditions hold, as they do for a share of the table."""
        if column.table != facts.key:
            return column
        column = replace(column, where=" AND ".join(conditions), left=min(1.0, share))
        return self.keys.of_table(column, facts, conditions) if self.is_key(column) else column

    def _column(self, facts: TableFacts, name: str, where: str) -> Column:
        column = replace(of_table(facts, name), where=where)
        if where and self._is_bounded(column) and self.judge is not None:
            # A filter on another column may leave a range of keys: the days of one year.
            bounds = self.judge.bounds(facts.key, column.text, where)
            column = column if bounds is None else replace(column, range=bounds)
        if name not in self._keys or facts.analysed or self.judge is None:
            return column
        values = self.judge.distinct(facts.key, (column.text,))
        if values is None:
            return column
        if column.is_whole and column.range is not None:
            values = min(values, column.range[1] - column.range[0] + 1)
        return replace(column, distinct=max(1.0, values), domain=max(1.0, values))

    def _is_bounded(self, column: Column) -> bool:
        return column.name in self._keys and column.is_whole

    def passing(
        self, facts: TableFacts, conditions: Sequence[str], names: Sequence[str] = ()
    ) -> tuple[float, float]:
        """The share of the rows of a table for which all conditions hold, and the doubt.

        `names` are those of columns that will be asked for with these conditions.

        Rows of some range may lie together. Then a sample has all of them or none, and what the
        row groups say of their ranges is better.
        """
        together = [text for text in conditions if self._lies_together(facts, text)]
        share = math.prod(kept_share(text, facts.columns.get) for text in together)
        doubt = BY_RANGES if together else 0.0
        rest = [text for text in conditions if text not in together]
        if not rest:
            return max(LEAST, share), doubt
        by_ranges = math.prod(kept_share(text, facts.columns.get) for text in rest)
        if self.judge is not None and not together:
            columns = [of_table(facts, name) for name in names]
            bounded = [column.text for column in columns if self._is_bounded(column)]
            if bounded:
                self.judge.prepare(facts.key, " AND ".join(rest), bounded)
        judged = None if self.judge is None else self.judge.share(facts.key, " AND ".join(rest))
        if judged is None:
            return max(LEAST, share * by_ranges), doubt + BY_RANGES * len(rest)
        if judged.exact or judged.matches >= TELLING:
            found, more = judged.share, 0.0 if judged.exact else 1.0 / judged.matches
        else:
            # Hardly a row of the sample matches: that bounds what the ranges say.
            low, high = judged.interval()
            found, more = max(low, min(by_ranges, high)), BY_RANGES
        return max(LEAST, share * found), doubt + more

    def _lies_together(self, facts: TableFacts, condition: str) -> bool:
        wanted = ranges(condition, facts.columns.get)
        return bool(wanted) and facts.share_read(wanted) < TOGETHER

    def can_judge(self, facts: TableFacts, conditions: Sequence[str]) -> bool:
        """Whether conditions speak of columns of a table only."""
        if self.judge is None or not conditions:
            return False
        return self.judge.share(facts.key, " AND ".join(conditions)) is not None

    def mean(self, column: Column) -> float | None:
        """The mean of the values of a column, whatever filters have left."""
        if self.judge is None or not column.text:
            return None
        return self.judge.mean(column.table, column.text)

    def united(self, columns: Sequence[Column]) -> Column:
        """One column of all branches of a union, which have some of their values in common."""
        values = [self._values(column) for column in columns]
        numbers = [value for value in values if value is not None]
        known = math.sqrt(max(numbers) * sum(numbers)) if len(numbers) == len(values) else None
        return Column(
            columns[0].name, columns[0].width, known, known, columns[0].is_text, columns[0].is_whole
        )

    def _values(self, column: Column) -> float | None:
        if column.distinct is None and column.text and self.judge is not None:
            return self.judge.distinct(column.table, (column.text,), column.where)
        return column.distinct

    def groups(self, keys: Sequence[Column], below: Stream) -> float:
        """Groups among the rows: keys of one table together, those of several as they come."""
        groups = 1.0
        by_table: dict[str, list[Column]] = {}
        for key in keys:
            by_table.setdefault(key.table, []).append(key)
        for table, of_one in by_table.items():
            groups *= max(1.0, self._combinations(table, of_one, below.rows))
        return (
            min(below.rows, remaining(groups, below.rows * groups, 1 / groups))
            if groups > 1
            else 1.0
        )

    def _combinations(self, table: str, keys: Sequence[Column], rows: float) -> float:
        """Combinations of keys of one table. A judgement takes milliseconds: as few as will do."""
        facts = self.facts.get(table)
        if facts is not None:
            # One of them may be different in every row of its table.
            unique = [key for key in keys if (key.domain or 0.0) >= UNIQUE * facts.rows]
            if unique and not any(key.name in words(key.where) for key in unique):
                return min(rows, max(key.distinct or 1.0 for key in unique))
        if len(keys) > 1 and all(key.text for key in keys) and self.judge is not None:
            found = self.judge.distinct(table, [key.text for key in keys], keys[0].where)
            if found is not None:
                # Joins may have left fewer values since.
                left = math.prod(key.distinct if key.distinct else math.inf for key in keys)
                return min(found, left)
        product = 1.0
        for key in keys:
            product *= max(1.0, self._values_of_key(key, rows))
        return min(rows, product)

    def _values_of_key(self, key: Column, rows: float) -> float:
        facts = self.facts.get(key.table)
        rough = key.distinct is None or facts is None or not facts.analysed
        # A filter on the key itself leaves few values, whatever it leaves of the rows.
        if key.text and self.judge is not None and (rough or key.name in words(key.where)):
            found = self.judge.distinct(key.table, (key.text,), key.where)
            if found is not None:
                return found
        return key.distinct if key.distinct is not None else rows**COMPUTED_POWER


def equal_share(condition: str, columns: Sequence[Column]) -> float:
    """The share of rows for which columns have the values that a condition names.

    Values are taken for equally frequent; 1 if no column is compared with a value.

    >>> equal_share("((a = 1) AND (b = 'x'))", [Column("a", distinct=4.0), Column("b")])
    0.25
    """
    if " OR " in condition:
        return 1.0
    share = 1.0
    for name in _EQUAL.findall(condition):
        values = next((one.distinct for one in columns if one.name == name.lower()), None)
        share /= max(1.0, values or 1.0)
    return share
