"""What a plan of DuckDB's does, in amounts: values decoded, rows joined, grouped, sorted.

DuckDB's own cardinalities are corrected where the catalog knows better: what filters on files keep
(`filters.py`), and how many groups there are. A correction is handed on to the operators above.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from queryard.estimate.work import Amount, Features, ScanFeatures

from .expressions import matched_bytes, operations
from .filters import LEAST, UNKNOWN, Range, kept_share, ranges, words
from .inequality_joins import Compared, compared, matching_share
from .plans import WIDTH_BYTES, PlanNames, is_scan, number, operator_name, texts
from .streams import Column, Stream, of_table, source
from .tables import TableFacts

# Groups by a value that was computed: more than a few, fewer than rows.
COMPUTED_POWER = 0.6
# How much a second key adds to the number of groups: an exponent of its distinct values.
FURTHER_KEYS = 0.25
# The cost per row and group grows with the logarithm of their number; 1 at a million.
TYPICAL_BITS = 20.0
# Sorting texts, in rows sorted by numbers.
TEXT_KEYS = 3.0
# Writing and reading a value of a CTE in memory, as a share of decoding a value.
IN_MEMORY = 0.25
_EQUAL = re.compile(r'("?[\w #]+?"?) (?:=|IS NOT DISTINCT FROM) ("?[\w #]+?"?)')
# Window functions that need no aggregate over a frame.
_RANKING = re.compile(r"(?:row_number|rank|dense_rank|lag|lead|first_value|last_value|ntile)\(")
# The least that is read of a Parquet file.
GROUP_ROWS = 122_880.0
PAGE_ROWS = 50_000
_LIMITS = ("LIMIT", "STREAMING_LIMIT")
_STREAMING = ("PROJECTION", "FILTER", "UNNEST", "STREAMING_WINDOW", "STREAMING_SAMPLE", *_LIMITS)
_ONE_SIDED = ("SEMI", "ANTI", "MARK")
# The cost of a row from an IE join, in rows from a merge join.
IE_ROWS = 6.0
# An upper limit for rows, so that products stay finite.
MOST_ROWS = 1e18
# No plan tells the length of computed lists and the iterations of a recursion. DuckDB estimates 1
# and 1,000.
UNNESTED = 10.0
TURNS = 30.0
TURN_ROWS = 30_000.0
"""The cost of starting an iteration of a recursion, in rows."""
# By which factor amounts may be off where rows are a guess.
GUESSED, COMPARED = 5.0, 2.0


class PlanAmounts:
    """Walks over one plan and sums up what its operators do."""

    def __init__(self, names: PlanNames, facts: Mapping[str, TableFacts]) -> None:
        self._names = names
        self._facts = facts
        self._sums: defaultdict[Amount, float] = defaultdict(float)
        self._scans: list[ScanFeatures] = []
        self._shared: dict[str, Stream] = {}
        self._spread = 1.0

    def of(self, root: Mapping[str, Any]) -> Features:
        """The amounts of a plan, the hand-over of its rows included."""
        answer = self._visit(root)
        self._sums["chunks"] += sum(facts.chunks for facts in self._facts.values())
        self._sums["output_values"] += answer.rows * len(answer.columns)
        return Features(dict(self._sums), tuple(self._scans), answer.rows, self._spread)

    def _visit(self, node: Mapping[str, Any]) -> Stream:
        info: Mapping[str, Any] = node.get("extra_info") or {}
        name = operator_name(node)
        expected = number(info.get("Estimated Cardinality"))
        if name == "CTE":
            return self._cte(node, info)
        if name.startswith("REC_CTE") and node.get("children"):
            return self._recursion(node, info)
        if "file_row_number" in str(info.get("Conditions")):
            return self._fetch(node)
        before = dict(self._sums)
        below = [self._visit(child) for child in node.get("children", [])]
        if not below:
            return self._leaf(name, info, expected)
        if name in _LIMITS:
            return self._limit(node, info, below[0], before)
        if len(below) > 1:
            if name == "CROSS_PRODUCT":
                return self._cross(below[0], below[1])
            if name.startswith("POSITIONAL"):
                columns = [column for stream in below for column in stream.columns]
                return Stream(max(stream.rows for stream in below), 1.0, columns)
            if "JOIN" in name:
                return self._join(name, info, below, expected)
            return Stream(sum(stream.rows for stream in below), 1.0, below[0].columns)
        if name == "PROJECTION":
            return self._projection(info, below[0])
        if name == "FILTER":
            return self._filter(info, below[0], expected)
        if name.endswith(("GROUP_BY", "AGGREGATE", "DISTINCT")):
            return self._aggregate(info, below[0], expected)
        return self._single(name, info, below[0], expected)

    # --- where rows come from ----------------------------------------------------------------

    def _leaf(self, name: str, info: Mapping[str, Any], expected: float | None) -> Stream:
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
        made = [Column(text) for text in texts(info.get("Projections"))] or [Column()]
        if is_scan(name):
            self._sums["scan_values"] += rows * len(made)
            self._sums["scan_bytes"] += rows * len(made) * WIDTH_BYTES
        else:
            self._sums["made_rows"] += rows
        return Stream(rows, 1.0, made)

    def _scan(self, facts: TableFacts, info: Mapping[str, Any], expected: float) -> Stream:
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
        columns = [of_table(facts, name) for name in read]
        for text in filters:
            self._compute(text, share * facts.rows, columns)
        rows = max(1.0, facts.rows * min(kept, share))
        return Stream(rows, rows / max(1.0, expected), columns[: len(projected)])

    def _cte(self, node: Mapping[str, Any], info: Mapping[str, Any]) -> Stream:
        made, used = node["children"]
        stream = self._visit(made)
        self._sums["scan_values"] += IN_MEMORY * stream.rows * len(stream.columns)
        self._shared[str(info.get("Table Index"))] = stream
        return self._visit(used)

    def _recursion(self, node: Mapping[str, Any], info: Mapping[str, Any]) -> Stream:
        """The first rows once, and what is made of them again and again."""
        first, again = node["children"]
        begun = self._visit(first)
        self._shared[str(info.get("Table Index"))] = begun
        before = dict(self._sums)
        added = self._visit(again)
        self._sums["made_rows"] += TURN_ROWS
        self._scale(before, TURNS)
        self._guess(GUESSED)
        return Stream(begun.rows + TURNS * added.rows, 1.0, begun.columns)

    def _guess(self, factor: float) -> None:
        """Amounts may be off by such a factor."""
        self._spread = max(self._spread, factor)

    def _limit(
        self,
        node: Mapping[str, Any],
        info: Mapping[str, Any],
        below: Stream,
        before: Mapping[Amount, float],
    ) -> Stream:
        """Reading ends with the row group that has the last row wanted."""
        wanted = number(info.get("Limit"))
        if wanted is None:
            return below
        last = wanted + (number(info.get("Offset")) or 0.0)
        if self._scans and _is_stream(node):
            least = GROUP_ROWS / max(1.0, self._scans[-1].rows)
            self._scale(before, min(1.0, max(least, last / below.rows)))
        return Stream(max(1.0, min(below.rows, wanted)), 1.0, below.columns)

    def _fetch(self, node: Mapping[str, Any]) -> Stream:
        """DuckDB finds out which rows are wanted, and only then reads all of their columns."""
        fetched, found = node["children"]
        wanted = self._visit(found).rows
        before, scans = dict(self._sums), len(self._scans)
        columns = self._visit(fetched).columns
        scanned = max(1.0, sum(scan.rows for scan in self._scans[scans:]))
        # The first rows of a table lie together; others may lie in a row group each.
        read = wanted + GROUP_ROWS if _is_stream(found) else wanted * GROUP_ROWS
        self._scale(before, min(1.0, read / scanned))
        return Stream(wanted, 1.0, columns)

    def _scale(self, before: Mapping[Amount, float], share: float) -> None:
        """Only a share of what was added since is done; or all of it, several times."""
        for name, amount in self._sums.items():
            earlier = before.get(name, 0.0)
            self._sums[name] = earlier + share * (amount - earlier)

    # --- what is done with them --------------------------------------------------------------

    def _compute(self, text: str, rows: float, columns: Sequence[Column]) -> None:
        """Add the cost of an expression on `rows` rows."""
        self._sums["expressions"] += rows * operations(text)
        self._sums["matched_bytes"] += rows * matched_bytes(text, columns)

    def _projection(self, info: Mapping[str, Any], below: Stream) -> Stream:
        columns = []
        for text in texts(info.get("Projections")):
            handed_on = source(text, below.columns)
            if handed_on is None:
                self._compute(text, below.rows, below.columns)
                columns.append(Column(text.strip('"').lower()))
            else:
                columns.append(handed_on)
        return Stream(below.rows, below.correction, columns)

    def _filter(self, info: Mapping[str, Any], below: Stream, expected: float | None) -> Stream:
        for text in texts(info.get("Expression")):
            self._compute(text, below.rows, below.columns)
        rows = below.rows if expected is None else min(below.rows, expected * below.correction)
        return Stream(max(1.0, rows), below.correction, below.columns)

    def _aggregate(self, info: Mapping[str, Any], below: Stream, expected: float | None) -> Stream:
        keys = [source(text, below.columns) or Column() for text in texts(info.get("Groups"))]
        calls = texts(info.get("Aggregates"))
        groups = 1.0
        for key in keys:
            distinct = key.distinct if key.distinct is not None else below.rows**COMPUTED_POWER
            groups = min(below.rows, groups * max(1.0, distinct))
        # Without groups, rows are counted by the thousand.
        counted = len(calls) if keys else sum(call != "count_star()" for call in calls)
        self._sums["aggregated_values"] += below.rows * counted
        if keys:
            self._sums["grouped_rows"] += below.rows
            # A table that fits no cache is a miss for every row.
            self._sums["group_misses"] += below.rows * math.log2(max(1.0, groups)) / TYPICAL_BITS
            self._sums["groups"] += groups
        columns = [*keys, *[Column() for _ in calls]]
        return Stream(groups, groups / max(1.0, expected or 1.0), columns)

    def _join(
        self,
        name: str,
        info: Mapping[str, Any],
        below: Sequence[Stream],
        expected: float | None,
    ) -> Stream:
        left, right = below[0], below[1]
        kind = str(info.get("Join Type", ""))
        kept = right if kind.startswith("RIGHT_") else left
        if kind in _ONE_SIDED or kind.startswith("RIGHT_"):
            rows = min(kept.rows, (expected or kept.rows) * kept.correction)
            columns: Sequence[Column] = kept.columns
        else:
            rows = self._matches(name, info, left, right, expected)
            columns = [*left.columns, *right.columns]
        if name == "HASH_JOIN":
            self._sums["probed_rows"] += left.rows
            self._sums["built_rows"] += right.rows
            self._sums["joined_rows"] += rows
        elif name == "NESTED_LOOP_JOIN":
            self._sums["pairs"] += left.rows * right.rows
            self._sums["paired_rows"] += rows
        elif name == "BLOCKWISE_NL_JOIN":
            pairs = left.rows * right.rows
            self._sums["made_rows"] += pairs
            for text in texts(info.get("Condition")):
                self._compute(text, pairs, [*left.columns, *right.columns])
            self._sums["paired_rows"] += rows
        else:
            for side in (left, right):
                self._sort(side, [])
            self._sums["paired_rows"] += rows * (IE_ROWS if name == "IE_JOIN" else 1.0)
        rows = min(MOST_ROWS, max(1.0, rows))
        return Stream(rows, rows / max(1.0, expected or rows), columns)

    def _cross(self, left: Stream, right: Stream) -> Stream:
        """Every pair, without looking at it: all rows of one side beside each of the other."""
        rows = min(MOST_ROWS, left.rows * right.rows)
        self._sums["made_rows"] += rows
        correction = left.correction * right.correction
        return Stream(rows, correction, [*left.columns, *right.columns])

    def _matches(
        self,
        name: str,
        info: Mapping[str, Any],
        left: Stream,
        right: Stream,
        expected: float | None,
    ) -> float:
        """Pairs of rows that agree: as many as values are equally frequent on both sides."""
        if name == "ASOF_JOIN":
            return left.rows  # at most one for each
        distinct = []
        comparisons = []
        for text in texts(info.get("Conditions")):
            if (found := compared(text)) is not None:
                one, other = source(found.left, left.columns), source(found.right, right.columns)
                ranges_known = (one.range if one else None, other.range if other else None)
                comparisons.append(Compared(*found[:3], *ranges_known))
            if (equal := _EQUAL.fullmatch(text)) is not None:
                sides = (source(equal[1], left.columns), source(equal[2], right.columns))
                distinct.append(max([1.0, *(side.distinct or 1.0 for side in sides if side)]))
        pairs = left.rows * right.rows
        if distinct and max(distinct) > 1.0:
            # Further keys mostly depend on the first: they count less and less.
            for power, values in enumerate(sorted(distinct, reverse=True)):
                pairs /= values**FURTHER_KEYS**power
            return pairs
        if comparisons:
            self._guess(COMPARED)
            if (share := matching_share(comparisons)) is not None:
                return pairs * share
        return pairs if expected is None else expected * left.correction * right.correction

    def _single(
        self, name: str, info: Mapping[str, Any], below: Stream, expected: float | None
    ) -> Stream:
        rows = below.rows if expected is None else max(1.0, expected * below.correction)
        calls = texts(info.get("Projections"))
        if name == "ORDER_BY":
            keys = [text.rpartition(" ")[0] for text in texts(info.get("Order By"))]
            self._sort(below, [source(key, below.columns) for key in keys])
            return below
        if name == "TOP_N":
            self._sums["expressions"] += below.rows
            return Stream(min(below.rows, expected or rows), 1.0, below.columns)
        if name == "UNNEST":
            return self._unnest(below)
        if name == "WINDOW":
            self._sort(below, [])
            framed = sum(1 for call in calls if _RANKING.match(call) is None)
            self._sums["windowed_rows"] += below.rows * len(calls)
            self._sums["framed_rows"] += below.rows * framed
        columns = [*below.columns, *[Column() for _ in calls]]
        return Stream(rows, below.correction, columns)

    def _unnest(self, below: Stream) -> Stream:
        """A row for each value of a list: of the longest, where a table has some."""
        lengths = [column.length for column in below.columns if column.length is not None]
        if not lengths:
            self._guess(GUESSED)
        values = max(lengths, default=UNNESTED)
        rows = min(MOST_ROWS, max(1.0, below.rows * values))
        self._sums["made_rows"] += rows
        return Stream(rows, below.correction * values, [*below.columns, Column()])

    def _sort(self, below: Stream, keys: Sequence[Column | None]) -> None:
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
