"""What share of rows a filter keeps, read from how DuckDB writes it in a plan.

DuckDB takes every filter on files for a fifth of the rows; ranges and numbers of distinct values,
which the catalog knows, tell more. What is not understood is a fifth here, too.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache

from queryard.sql.statistics import ColumnStatistics, position

UNKNOWN = 0.2
PATTERN = 0.08  # LIKE '%word%'
PREFIX = 0.05
LEAST = 1e-9
# A text of more letters is not remembered.
LONGEST = 1000

_NAME = r'(\w+|"(?:[^"]|"")+")'
_VALUE = r"('(?:[^']|'')*'(?:::[\w ]+)?|-?[\d.]+(?:e[-+]?\d+)?)"
_WORD, _TEXT = re.compile(_NAME), re.compile(r"'(?:[^']|'')*'")
_COMPARED = re.compile(rf"{_NAME} (<=|>=|<|>|=|!=) {_VALUE}", re.IGNORECASE)
_AMONG = re.compile(rf"{_NAME} IN \((.*)\)", re.IGNORECASE | re.DOTALL)
_PATTERNS = ("contains(", "regexp_matches(", "suffix(", "~~", "LIKE", "like_escape(")

Lookup = Callable[[str], ColumnStatistics | None]
Range = tuple[float, float]


def kept_share(text: str, column: Lookup) -> float:
    """The share of rows for which a condition holds.

    >>> found = ColumnStatistics(0.0, 0, 10, 11.0, 8.0)
    >>> kept_share("((x >= 2) AND (x < 7))", lambda name: found)
    0.5
    >>> kept_share("(y = 'a')", lambda name: None)
    0.2
    """
    return min(1.0, max(LEAST, _share(text, column)))


def ranges(text: str, column: Lookup) -> dict[str, Range]:
    """For each column the range its values must lie in, as far as a condition says so."""
    found: dict[str, Range] = {}
    text = _bare(text)
    parts = _split(text, " AND ")
    if len(parts) > 1:
        for part in parts:
            for name, (low, high) in ranges(part, column).items():
                known = found.get(name, (float("-inf"), float("inf")))
                found[name] = (max(known[0], low), min(known[1], high))
    elif (compared := _COMPARED.fullmatch(text)) is not None:
        name, sign, written = _name(compared[1]), compared[2], compared[3]
        statistics = column(name)
        value = None if statistics is None else _value(written, statistics)
        if value is not None and sign != "!=":
            low = float("-inf") if sign.startswith("<") else value
            found[name] = (low, float("inf") if sign.startswith(">") else value)
    return found


def words(text: str) -> tuple[str, ...]:
    """Whatever may be the name of a column."""
    return _words(text) if len(text) <= LONGEST else _words.__wrapped__(text)


@lru_cache(maxsize=2048)
def _words(text: str) -> tuple[str, ...]:
    """The same of a text that is not too long to be kept: one plan asks of it many times."""
    return tuple(map(_name, _WORD.findall(_TEXT.sub("", text))))


def _share(text: str, column: Lookup) -> float:
    text = _bare(text)
    if len(parts := _split(text, " OR ")) > 1:
        missed = 1.0
        for part in parts:
            missed *= 1 - _share(part, column)
        return 1 - missed
    if len(parts := _split(text, " AND ")) > 1:
        return _all(parts, column)
    if text.upper().startswith("NOT "):
        return 1 - _share(text[4:], column)
    if " !~~ " in text:
        return 1 - PATTERN
    if text.startswith("prefix("):
        return PREFIX
    if any(word in text for word in _PATTERNS):
        return PATTERN
    return _one(text, column)


def _all(parts: list[str], column: Lookup) -> float:
    """Ranges of one column together, the rest as if independent."""
    share = 1.0
    bounds: dict[str, Range] = {}
    for part in parts:
        within = ranges(part, column)
        if not within:
            share *= _share(part, column)
        for name, (low, high) in within.items():
            known = bounds.get(name, (float("-inf"), float("inf")))
            bounds[name] = (max(known[0], low), min(known[1], high))
    for name, bound in bounds.items():
        statistics = column(name)
        assert statistics is not None
        share *= _within(bound, statistics)
    return share


def _one(text: str, column: Lookup) -> float:
    if (among := _AMONG.fullmatch(text)) is not None:
        statistics = column(_name(among[1]))
        count = len(_split(among[2], ", "))
        return UNKNOWN if statistics is None else count / max(count, statistics.distinct)
    compared = _COMPARED.fullmatch(text)
    if compared is None:
        return 1.0 if text.upper().endswith(" IS NOT NULL") else UNKNOWN
    name, sign = _name(compared[1]), compared[2]
    statistics = column(name)
    if statistics is None:
        return UNKNOWN
    if sign in ("=", "!="):
        equal = 1 / max(1.0, statistics.distinct)
        return equal if sign == "=" else 1 - equal
    within = ranges(text, column).get(name)
    return UNKNOWN if within is None else _within(within, statistics)


def _within(bound: Range, statistics: ColumnStatistics) -> float:
    """The share of values in a range: by the histogram, else as if evenly spread."""
    low, high = position(statistics.min), position(statistics.max)
    if low is None or high is None:
        return UNKNOWN
    least = 1 / max(1.0, statistics.distinct)
    if bound[0] > high or bound[1] < low:
        return LEAST
    if statistics.histogram is not None and statistics.histogram.total:
        histogram = statistics.histogram
        count = histogram.count_below(bound[1]) - histogram.count_below(bound[0])
        return max(least, count / histogram.total)
    if high <= low:
        return 1.0
    return max(least, (min(bound[1], high) - max(bound[0], low)) / (high - low))


def _value(written: str, statistics: ColumnStatistics) -> float | None:
    """A literal on the axis of its column."""
    text = written.split("::")[0].strip("'")
    try:
        if isinstance(statistics.min, datetime.datetime):
            return position(datetime.datetime.fromisoformat(text))
        if isinstance(statistics.min, datetime.date):
            return position(datetime.date.fromisoformat(text[:10]))
        if isinstance(statistics.min, int | float | Decimal):
            return float(text)
    except ValueError:
        pass
    return None


# --- the structure of a text ---------------------------------------------------------------------


def _name(word: str) -> str:
    return word.strip('"').replace('""', '"').lower()


def _bare(text: str) -> str:
    """Without parentheses around all of it.

    >>> _bare("((a) AND (b))"), _bare("(a) AND (b)")
    ('(a) AND (b)', '(a) AND (b)')
    """
    text = text.strip().removeprefix("optional: ")
    while text.startswith("(") and text.endswith(")") and _closes_at(text) == len(text) - 1:
        text = text[1:-1].strip()
    return text


def _closes_at(text: str) -> int:
    """Where the parenthesis that opens at the start is closed."""
    depth = 0
    quoted = False
    for place, letter in enumerate(text):
        if letter == "'":
            quoted = not quoted
        elif not quoted:
            depth += (letter == "(") - (letter == ")")
            if depth == 0:
                return place
    return -1


def _split(text: str, separator: str) -> list[str]:
    """Parts between separators that stand outside of parentheses and quotes."""
    if separator not in text:
        return [text]
    parts = []
    depth = start = place = 0
    quoted = False
    while place < len(text):
        letter = text[place]
        if letter == "'":
            quoted = not quoted
        elif not quoted:
            depth += (letter == "(") - (letter == ")")
            if depth == 0 and text.startswith(separator, place):
                parts.append(text[start:place])
                start = place + len(separator)
                place = start
                continue
        place += 1
    parts.append(text[start:])
    return parts
