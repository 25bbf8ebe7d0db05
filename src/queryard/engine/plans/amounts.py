"""What the operators of a plan do, in amounts: values decoded, rows joined, grouped, sorted.

Each function takes the rows that come in and go out, expected or counted, and gives the amounts
that have a price (`queryard.estimate.prices`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from queryard.estimate.prices import Amount

from .expressions import (
    date_calls,
    list_calls,
    matched_bytes,
    operations,
    regular_bytes,
    searched_bytes,
    text_calls,
    texts_read,
)
from .streams import VECTOR_ROWS, Column, Stream, touched
from .tables import TableFacts

Amounts = dict[Amount, float]

# The cost of a row in a table of rows grows with the logarithm of their number; 1 at a million.
TYPICAL_BITS = 20.0
# What caches of a core hold, and what a row in a hash table takes beside its values.
CACHE_BYTES = 8e6
ROW_BYTES = 16.0
# Rows of a page of a Parquet file.
PAGE_ROWS = 50_000
# Window functions that need no aggregate over a frame.
_RANKING = re.compile(r"(?:row_number|rank|dense_rank|lag|lead|first_value|last_value|ntile)\(")
# Aggregates that keep every value.
_HOLISTIC = re.compile(
    r"(?:median|mode|quantile\w*|percentile\w*|mad|list|array_agg|string_agg|group_concat|histogram"
    r"|arg_\w+|max_by|min_by|first|last|any_value)\(|ORDER BY",
    re.IGNORECASE,
)
# The cost of a row from an IE join, in rows from a merge join.
IE_ROWS = 6.0


@dataclass(frozen=True, slots=True)
class Read:
    """One read of a table of columns: which of them, and what filters leave.

    `share` is that of the rows in row groups that are read, `passed` what filters of the statement
    leave of these, `kept` what filters that joins hand down leave as well.
    """

    facts: TableFacts
    columns: Sequence[str]
    tested: frozenset[str]
    sifted: frozenset[str]
    share: float
    passed: float
    kept: float

    @property
    def rows(self) -> float:
        return self.share * self.facts.rows


def read_columns(read: Read) -> tuple[Amounts, float]:
    """Columns of a Parquet file, and the bytes of them that are decompressed."""
    found: Amounts = {"columns": float(len(read.columns)) * read.facts.groups * read.share}
    size = 0.0
    for name in read.columns:
        # A column is read where filters on columns before it have left something.
        left = 1.0 if name in read.tested else read.passed if name in read.sifted else read.kept
        pages, vectors = touched(left, PAGE_ROWS), touched(left, VECTOR_ROWS)
        in_file = read.facts.decoded_bytes.get(name, 0.0) * read.share
        size += pages * in_file
        if (length := read.facts.lengths.get(name)) is not None:
            _add(found, "scan_lists", vectors * read.rows * (1 + length))
            _add(found, "scan_text_bytes", pages * in_file)
        elif name in read.facts.texts:
            _add(found, "scan_texts", vectors * read.rows)
            _add(found, "scan_text_bytes", pages * in_file)
        else:
            _add(found, "scan_values", vectors * read.rows)
            _add(found, "scan_bytes", pages * in_file)
        if left < 1:
            _add(found, "picked_values", left * read.rows)
    _add(found, "sifted_rows", len(read.sifted) * read.passed * read.rows)
    return found, size


def scan_filter(text: str, rows: float, columns: Sequence[Column]) -> Amounts:
    """A filter inside of a scan."""
    found = compute(text, rows, columns)
    found["tested_values"] = found.pop("expressions")
    if "texts_read" in found:
        found["tested_texts"] = found.pop("texts_read")
    return found


def compute(text: str, rows: float, columns: Sequence[Column]) -> Amounts:
    """An expression on so many rows."""
    found: Amounts = {"expressions": rows * operations(text)}
    for name, each in (
        ("text_calls", text_calls(text)),
        ("called_bytes", text_calls(text) * searched_bytes(text, columns)),
        ("date_calls", date_calls(text)),
        ("list_calls", list_calls(text, columns)),
        ("texts_read", texts_read(text, columns)),
        ("matched_bytes", matched_bytes(text, columns)),
        ("regular_bytes", regular_bytes(text, columns)),
    ):
        if each:
            found[name] = rows * each  # type: ignore[index]
    return found


def hash_join(
    left: Stream, right: Stream, indexed: bool, rows: float, columns: Sequence[Column]
) -> Amounts:
    """The right side is built, the left side looks into it.

    If it is `indexed`, it is no hash table but an array over a small range of whole numbers.
    """
    texts = sum(column.is_text for column in right.columns)
    if indexed:
        return {
            "indexed_values": right.rows * len(right.columns),
            "indexed_texts": right.rows * texts,
            "indexed_rows": left.rows,
            "joined_values": rows * len(columns),
        }
    depth = math.log2(max(2.0, right.rows)) / TYPICAL_BITS
    size = right.bytes + ROW_BYTES * right.rows
    return {
        "far_rows": (left.rows + right.rows) * beyond_cache(size),
        "built_rows": right.rows,
        "built_values": right.rows * len(right.columns),
        "built_texts": right.rows * texts,
        "probe_misses": left.rows * depth,
        "joined_values": rows * len(columns),
    }


def other_join(
    name: str, conditions: Sequence[str], left: Stream, right: Stream, rows: float
) -> Amounts:
    """A join that looks at all pairs, or sorts both sides."""
    pairs = left.rows * right.rows
    if name == "NESTED_LOOP_JOIN":
        return {"pairs": pairs, "paired_rows": rows}
    if name == "BLOCKWISE_NL_JOIN":
        columns = [*left.columns, *right.columns]
        tests = (compute(text, pairs, columns) for text in conditions)
        return total(({"made_rows": pairs, "paired_rows": rows}, *tests))
    weight = IE_ROWS if name == "IE_JOIN" else 1.0
    return total((sort(left), sort(right), {"paired_rows": rows * weight}))


def beyond_cache(size: float) -> float:
    """The share of looks into a table of so many bytes that find it in no cache.

    >>> beyond_cache(1e6), round(beyond_cache(32e6), 2)
    (0.0, 0.75)
    """
    return max(0.0, 1.0 - CACHE_BYTES / max(1.0, size))


def aggregate(
    name: str, keys: Sequence[Column], calls: Sequence[str], rows: float, groups: float
) -> Amounts:
    """Rows of so many groups; without keys, rows are counted by the thousand."""
    holistic = sum(_HOLISTIC.search(call) is not None for call in calls)
    distinct = sum("DISTINCT" in call for call in calls)
    plain = sum(call != "count_star()" for call in calls) if not keys else len(calls)
    found: Amounts = {
        "aggregated_values": rows * max(0, plain - holistic - distinct),
        "kept_values": rows * holistic,
    }
    if keys:
        texts = sum(key.is_text for key in keys)
        if name.startswith("PERFECT"):
            found["direct_rows"] = rows
        else:
            found["grouped_keys"] = rows * len(keys)
            found["grouped_texts"] = rows * texts
            # A table that fits no cache is a miss for every row.
            found["group_misses"] = rows * math.log2(max(1.0, groups)) / TYPICAL_BITS
            found["groups"] = groups
            width = sum(key.width for key in keys) + ROW_BYTES * (1 + len(calls))
            found["far_groups"] = rows * beyond_cache(groups * width)
    return found


def sort(below: Stream) -> Amounts:
    """Rows put in order, with all of their columns."""
    steps = math.log2(max(2.0, below.rows)) / TYPICAL_BITS
    payload = sum(column.is_text for column in below.columns)
    return {
        "sorted_rows": steps * below.rows,
        "sorted_texts": below.rows * payload,
    }


def window(below: Stream, calls: Sequence[str]) -> Amounts:
    """Rows sorted by partition and order, and functions over them."""
    framed = sum(_RANKING.match(call) is None for call in calls)
    found = sort(below)
    found["windowed_rows"] = below.rows * len(calls)
    found["framed_rows"] = below.rows * framed
    return found


def answer(stream: Stream) -> Amounts:
    """Rows handed over."""
    texts = sum(column.is_text for column in stream.columns)
    return {
        "output_values": stream.rows * max(1, len(stream.columns)),
        "output_texts": stream.rows * texts,
    }


def total(parts: Iterable[Mapping[Amount, float]]) -> Amounts:
    """All of them together."""
    found: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            _add(found, name, amount)
    return found


def _add(found: Amounts, name: Amount, amount: float) -> None:
    found[name] = found.get(name, 0.0) + amount


def held_bytes(name: str, given: Stream, below: Sequence[Stream]) -> float:
    """What an operator keeps in memory until it has seen all rows."""
    if "JOIN" in name and len(below) > 1:
        return below[1].bytes + ROW_BYTES * below[1].rows
    if name.endswith("GROUP_BY"):
        return given.bytes + ROW_BYTES * given.rows
    if name in ("ORDER_BY", "WINDOW", "CTE") and below:
        return below[0].bytes + ROW_BYTES * below[0].rows
    return 0.0
