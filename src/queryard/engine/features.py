"""What a plan of DuckDB's does, in amounts: values decoded, rows joined, grouped, sorted.

DuckDB's own cardinalities are corrected where the catalog knows better: what filters on files keep
(`filters.py`), and how many groups there are. A correction is handed on to the operators above.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from queryard.estimate.work import Amount, Features, ScanFeatures

from .filters import LEAST, UNKNOWN, Range, kept_share, ranges, words
from .plans import WIDTH_BYTES, PlanNames, is_scan, number, operator_name, texts
from .tables import TableFacts

TEXT_BYTES = 16.0
# Groups by a value that was computed: more than a few, fewer than rows.
COMPUTED_POWER = 0.6
# What a second key tells, as a power of its distinct values.
FURTHER_KEYS = 0.25
# Rows and groups grow dearer with the logarithm of their number; 1 at a million.
TYPICAL_BITS = 20.0
# Sorting texts, in rows sorted by numbers.
TEXT_KEYS = 3.0
# A CTE is written and read in memory; so much of what decoding a value takes.
IN_MEMORY = 0.25
_REFERENCE = re.compile(r"#(\d+)")
_EQUAL = re.compile(r'("?[\w #]+?"?) (?:=|IS NOT DISTINCT FROM) ("?[\w #]+?"?)')
_PATTERNS = ("contains(", "~~", "LIKE", "like_")
_REGULAR = "regexp_"
# A regular expression looks at every byte several times.
REGULAR_BYTES = 3.0
# Functions that make a text for each row, in operations on numbers.
TEXT_CALLS = 15.0
_TEXT_FUNCTIONS = re.compile(
    r"\b(?:upper|lower|substr|substring|replace|concat|concat_ws|trim|ltrim|rtrim|reverse|strftime|"
    r"split_part|string_split|lpad|rpad|format|printf|md5|sha256)\b|\|\|",
    re.IGNORECASE,
)
# Window functions that need no aggregate over a frame.
_RANKING = re.compile(r"(?:row_number|rank|dense_rank|lag|lead|first_value|last_value|ntile)\(")
# What is read of a Parquet file at least.
GROUP_ROWS = 122_880.0
PAGE_ROWS = 50_000
_LIMITS = ("LIMIT", "STREAMING_LIMIT")
_STREAMING = ("PROJECTION", "FILTER", "UNNEST", "STREAMING_WINDOW", "STREAMING_SAMPLE", *_LIMITS)
_EVERY_PAIR = ("NESTED_LOOP_JOIN", "BLOCKWISE_NL_JOIN", "CROSS_PRODUCT")
_ONE_SIDED = ("SEMI", "ANTI", "MARK")


@dataclass(frozen=True, slots=True)
class _Column:
    """A column between two operators."""

    name: str = ""
    width: float = WIDTH_BYTES
    distinct: float | None = None
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class _Stream:
    """What an operator gives: rows as expected here, and what that is times DuckDB's number."""

    rows: float
    correction: float
    columns: Sequence[_Column]


class PlanAmounts:
    """Walks over one plan and sums up what its operators do."""

    def __init__(self, names: PlanNames, facts: Mapping[str, TableFacts]) -> None:
        self._names = names
        self._facts = facts
        self._sums: defaultdict[Amount, float] = defaultdict(float)
        self._scans: list[ScanFeatures] = []
        self._shared: dict[str, _Stream] = {}

    def of(self, root: Mapping[str, Any]) -> Features:
        """The amounts of a plan, the hand-over of its rows included."""
        answer = self._visit(root)
        self._sums["chunks"] += sum(facts.chunks for facts in self._facts.values())
        self._sums["output_values"] += answer.rows * len(answer.columns)
        return Features(dict(self._sums), tuple(self._scans), answer.rows)

    def _visit(self, node: Mapping[str, Any]) -> _Stream:
        info: Mapping[str, Any] = node.get("extra_info") or {}
        name = operator_name(node)
        expected = number(info.get("Estimated Cardinality"))
        if name == "CTE":
            return self._cte(node, info)
        if "file_row_number" in str(info.get("Conditions")):
            return self._fetch(node)
        before = dict(self._sums)
        below = [self._visit(child) for child in node.get("children", [])]
        if not below:
            return self._leaf(name, info, expected)
        if name in _LIMITS:
            return self._limit(node, info, below[0], before)
        if len(below) > 1:
            if "JOIN" in name or name == "CROSS_PRODUCT":
                return self._join(name, info, below, expected)
            return _Stream(sum(stream.rows for stream in below), 1.0, below[0].columns)
        if name == "PROJECTION":
            return self._projection(info, below[0])
        if name == "FILTER":
            return self._filter(info, below[0], expected)
        if name.endswith(("GROUP_BY", "AGGREGATE", "DISTINCT")):
            return self._aggregate(info, below[0], expected)
        return self._single(name, info, below[0], expected)

    # --- where rows come from ----------------------------------------------------------------

    def _leaf(self, name: str, info: Mapping[str, Any], expected: float | None) -> _Stream:
        shared = self._shared.get(str(info.get("CTE Index")))
        if shared is not None:
            self._sums["scan_values"] += IN_MEMORY * shared.rows * len(shared.columns)
            return shared
        rows = 1.0 if expected is None else expected
        filtered = bool(texts(info.get("Filters")))
        known = [self._facts[key] for key in self._names.holders(name, info) if key in self._facts]
        if known:
            # Where several tables have such columns, the one with as many rows.
            whole = max(1.0, rows / UNKNOWN if filtered else rows)
            return self._scan(
                min(known, key=lambda facts: abs(math.log(max(1.0, facts.rows) / whole))),
                info,
                rows,
            )
        made = [_Column(text) for text in texts(info.get("Projections"))] or [_Column()]
        if is_scan(name):
            self._sums["scan_values"] += rows * len(made)
            self._sums["scan_bytes"] += rows * len(made) * WIDTH_BYTES
        return _Stream(rows, 1.0, made)

    def _scan(self, facts: TableFacts, info: Mapping[str, Any], expected: float) -> _Stream:
        projected = [text.strip('"').lower() for text in texts(info.get("Projections"))]
        filters = [text for text in texts(info.get("Filters")) if "Dynamic Filter" not in text]
        tested: dict[str, None] = {}
        wanted: dict[str, Range] = {}
        kept = 1.0
        for text in filters:
            tested |= dict.fromkeys(word for word in words(text) if word in facts.columns)
            if not text.startswith("optional: "):
                kept *= kept_share(text, facts.columns.get)
                wanted |= ranges(text, facts.columns.get)
        read = dict.fromkeys(projected) | tested
        share = facts.share_read(wanted)
        if facts.is_columnar:
            # Of other columns only pages of which a filter has left something are read.
            touched = 1 - (1 - min(1.0, kept / max(share, LEAST))) ** PAGE_ROWS
            weights = {name: 1.0 if name in tested else touched for name in read}
            size = share * sum(
                w * facts.decoded_bytes.get(name, 0.0) for name, w in weights.items()
            )
            self._sums["scan_bytes"] += size
            self._sums["scan_values"] += share * facts.rows * sum(weights.values())
        else:
            size = facts.bytes
            self._sums["text_bytes"] += size
        self._scans.append(ScanFeatures(facts.key, share * facts.rows, len(read), size))
        columns = [_of_table(facts, name) for name in read]
        for text in filters:
            self._compute(text, share * facts.rows, columns)
        rows = max(1.0, facts.rows * min(kept, share))
        return _Stream(rows, rows / max(1.0, expected), columns[: len(projected)])

    def _cte(self, node: Mapping[str, Any], info: Mapping[str, Any]) -> _Stream:
        made, used = node["children"]
        stream = self._visit(made)
        self._sums["scan_values"] += IN_MEMORY * stream.rows * len(stream.columns)
        self._shared[str(info.get("Table Index"))] = stream
        return self._visit(used)

    def _limit(
        self,
        node: Mapping[str, Any],
        info: Mapping[str, Any],
        below: _Stream,
        before: Mapping[Amount, float],
    ) -> _Stream:
        """Reading ends with the row group that has the last row wanted."""
        wanted = number(info.get("Limit"))
        if wanted is None:
            return below
        last = wanted + (number(info.get("Offset")) or 0.0)
        if self._scans and _is_stream(node):
            least = GROUP_ROWS / max(1.0, self._scans[-1].rows)
            self._scale(before, min(1.0, max(least, last / below.rows)))
        return _Stream(max(1.0, min(below.rows, wanted)), 1.0, below.columns)

    def _fetch(self, node: Mapping[str, Any]) -> _Stream:
        """DuckDB finds out which rows are wanted, and only then reads all of their columns."""
        fetched, found = node["children"]
        wanted = self._visit(found).rows
        before, scans = dict(self._sums), len(self._scans)
        columns = self._visit(fetched).columns
        scanned = max(1.0, sum(scan.rows for scan in self._scans[scans:]))
        # The first rows of a table lie together; others may lie in a row group each.
        read = wanted + GROUP_ROWS if _is_stream(found) else wanted * GROUP_ROWS
        self._scale(before, min(1.0, read / scanned))
        return _Stream(wanted, 1.0, columns)

    def _scale(self, before: Mapping[Amount, float], share: float) -> None:
        """Only a share of what was added since is done."""
        for name, amount in self._sums.items():
            earlier = before.get(name, 0.0)
            self._sums[name] = earlier + share * (amount - earlier)

    # --- what is done with them --------------------------------------------------------------

    def _compute(self, text: str, rows: float, columns: Sequence[_Column]) -> None:
        """An expression on so many rows: every operation stands in parentheses."""
        texts_made = len(_TEXT_FUNCTIONS.findall(text))
        self._sums["expressions"] += rows * (max(1, text.count("(")) + TEXT_CALLS * texts_made)
        weight = REGULAR_BYTES if _REGULAR in text else 1.0
        if weight > 1.0 or any(pattern in text for pattern in _PATTERNS):
            named = set(words(text))
            widths = [column.width for column in columns if column.name in named]
            self._sums["matched_bytes"] += weight * rows * max([TEXT_BYTES, *widths])

    def _projection(self, info: Mapping[str, Any], below: _Stream) -> _Stream:
        columns = []
        for text in texts(info.get("Projections")):
            source = _source(text, below.columns)
            if source is None:
                self._compute(text, below.rows, below.columns)
                columns.append(_Column(text.strip('"').lower()))
            else:
                columns.append(source)
        return _Stream(below.rows, below.correction, columns)

    def _filter(self, info: Mapping[str, Any], below: _Stream, expected: float | None) -> _Stream:
        for text in texts(info.get("Expression")):
            self._compute(text, below.rows, below.columns)
        rows = below.rows if expected is None else min(below.rows, expected * below.correction)
        return _Stream(max(1.0, rows), below.correction, below.columns)

    def _aggregate(
        self, info: Mapping[str, Any], below: _Stream, expected: float | None
    ) -> _Stream:
        keys = [_source(text, below.columns) or _Column() for text in texts(info.get("Groups"))]
        calls = texts(info.get("Aggregates"))
        groups = 1.0
        for key in keys:
            distinct = key.distinct if key.distinct is not None else below.rows**COMPUTED_POWER
            groups = min(below.rows, groups * max(1.0, distinct))
        self._sums["aggregated_values"] += below.rows * len(calls)
        if keys:
            self._sums["grouped_rows"] += below.rows
            # A table that fits no cache is a miss for every row.
            self._sums["group_misses"] += below.rows * math.log2(max(1.0, groups)) / TYPICAL_BITS
            self._sums["groups"] += groups
        columns = [*keys, *[_Column() for _ in calls]]
        return _Stream(groups, groups / max(1.0, expected or 1.0), columns)

    def _join(
        self,
        name: str,
        info: Mapping[str, Any],
        below: Sequence[_Stream],
        expected: float | None,
    ) -> _Stream:
        left, right = below[0], below[1]
        kind = str(info.get("Join Type", ""))
        kept = right if kind.startswith("RIGHT_") else left
        if kind in _ONE_SIDED or kind.startswith("RIGHT_"):
            rows = min(kept.rows, (expected or kept.rows) * kept.correction)
            columns: Sequence[_Column] = kept.columns
        else:
            rows = self._matches(info, left, right, expected)
            columns = [*left.columns, *right.columns]
        if name in _EVERY_PAIR:
            self._sums["pairs"] += left.rows * right.rows
        elif name == "HASH_JOIN":
            self._sums["probed_rows"] += left.rows
            self._sums["built_rows"] += right.rows
        else:
            for side in (left, right):
                self._sort(side, [])
        self._sums["joined_rows"] += rows
        rows = max(1.0, rows)
        return _Stream(rows, rows / max(1.0, expected or rows), columns)

    def _matches(
        self, info: Mapping[str, Any], left: _Stream, right: _Stream, expected: float | None
    ) -> float:
        """Pairs of rows that agree: as many as values are equally frequent on both sides."""
        distinct = []
        for text in texts(info.get("Conditions")):
            if (equal := _EQUAL.fullmatch(text)) is not None:
                sides = (_source(equal[1], left.columns), _source(equal[2], right.columns))
                distinct.append(max([1.0, *(side.distinct or 1.0 for side in sides if side)]))
        pairs = left.rows * right.rows
        if distinct and max(distinct) > 1.0:
            # Further keys mostly depend on the first: they count less and less.
            for power, values in enumerate(sorted(distinct, reverse=True)):
                pairs /= values**FURTHER_KEYS**power
            return pairs
        return pairs if expected is None else expected * left.correction * right.correction

    def _single(
        self, name: str, info: Mapping[str, Any], below: _Stream, expected: float | None
    ) -> _Stream:
        rows = below.rows if expected is None else max(1.0, expected * below.correction)
        calls = texts(info.get("Projections"))
        if name == "ORDER_BY":
            keys = [text.rpartition(" ")[0] for text in texts(info.get("Order By"))]
            self._sort(below, [_source(key, below.columns) for key in keys])
            return below
        if name == "TOP_N":
            self._sums["expressions"] += below.rows
            return _Stream(min(below.rows, expected or rows), 1.0, below.columns)
        if name == "WINDOW":
            self._sort(below, [])
            framed = sum(1 for call in calls if _RANKING.match(call) is None)
            self._sums["windowed_rows"] += below.rows * len(calls)
            self._sums["framed_rows"] += below.rows * framed
        columns = [*below.columns, *[_Column() for _ in calls]]
        return _Stream(rows, below.correction, columns)

    def _sort(self, below: _Stream, keys: Sequence[_Column | None]) -> None:
        weight = TEXT_KEYS if any(key is not None and key.is_text for key in keys) else 1.0
        steps = math.log2(max(2.0, below.rows)) / TYPICAL_BITS
        self._sums["sorted_rows"] += weight * steps * below.rows
        self._sums["sorted_values"] += below.rows * len(below.columns)


def _is_stream(node: Mapping[str, Any]) -> bool:
    """Whether rows come out before all were read."""
    children = node.get("children", [])
    if not children:
        return is_scan(operator_name(node))
    return operator_name(node) in _STREAMING and all(map(_is_stream, children))


def _of_table(facts: TableFacts, name: str) -> _Column:
    known = facts.columns.get(name)
    if known is None:
        return _Column(name)
    return _Column(name, known.average_width_bytes, known.distinct, name in facts.texts)


def _source(text: str, columns: Sequence[_Column]) -> _Column | None:
    """The column that an expression hands on, be it in another type; None if it computes."""
    inner = text.removeprefix("CAST(")
    if inner != text:
        inner = inner.partition(" AS ")[0]
    elif text.startswith("__internal_"):
        inner = text.partition("(")[2].removesuffix(")")
    if (found := _REFERENCE.fullmatch(inner)) is not None:
        place = int(found[1])
        return columns[place] if place < len(columns) else _Column()
    name = inner.strip('"').lower()
    return next((column for column in columns if column.name == name), None)
