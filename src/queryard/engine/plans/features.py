"""The operators of a plan of DuckDB's: the rows each gives, and what it does for that.

DuckDB's own cardinalities are corrected where the catalog knows better: what filters keep, by the
sample or the ranges of a table (`filters.py`), how many rows joins give and how many groups there
are, by numbers of distinct values. A correction is handed on to the operators above.

Joins with one equality hand down the keys of their right side, and scans on the left side drop
rows without a partner at once. No plan shows this; it is foreseen here by DuckDB's own rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from queryard.estimate.prices import Amount, Features, OperatorFeatures, ScanFeatures

from . import amounts
from .amounts import Amounts
from .join_sizes import Pushed, is_indexed, joined, pushed_by
from .judged import Judging, Known, equal_share
from .keys import of_groups
from .made_filters import aggregated, made_share, partition_keys
from .nodes import LIMITS, is_stream, key_names, named, named_below
from .nodes import below as below_ids
from .projections import Projections
from .scanned_tables import scanned_tables
from .scans import scan
from .streams import Column, Stream, kept, source
from .tables import TableFacts
from .tree import WIDTH_BYTES, PlanNames, is_scan, number, operator_name, texts

# The least that is read of a Parquet file.
GROUP_ROWS = 122_880.0
# An upper limit for rows, so that products stay finite.
MOST_ROWS = 1e18
# No plan tells the length of computed lists and the iterations of a recursion. DuckDB estimates 1
# and 1,000.
UNNESTED = 10.0
TURNS = 30.0
TURN_ROWS = 30_000.0
"""The cost of starting an iteration of a recursion, in rows."""

# Squared errors of the logarithm of rows, by how they were estimated.
GUESSED = math.log(5.0) ** 2
UNJUDGED = math.log(2.5) ** 2
GROUPED = math.log(1.3) ** 2


class PlanAmounts:
    """Walks over one plan and notes what each of its operators does.

    If `counted`, the plan is that of a query that has run, and its rows are taken as they were.
    """

    def __init__(
        self,
        names: PlanNames,
        facts: Mapping[str, TableFacts],
        judge: Judging | None = None,
        meanings: Mapping[str, str] | None = None,
        counted: bool = False,
    ) -> None:
        self._names = names
        self._facts = facts
        self._judge = judge
        self._known = Known(facts, judge, frozenset())
        self._projections = Projections(meanings or {})
        self._counted = counted
        self._done: dict[int, Amounts] = {}
        self._streams: dict[int, Stream] = {}
        self._tables: dict[int, TableFacts] = {}
        self._scans: dict[int, ScanFeatures] = {}
        self._shared: dict[str, Stream] = {}
        # Words of all operators above one.
        self._above: dict[int, frozenset[str]] = {}
        # Joins whose keys have sifted a scan.
        self._sifted: set[int] = set()

    def of(self, root: Mapping[str, Any]) -> Features:
        """The amounts of a plan, the hand-over of its rows included."""
        self._known = Known(self._facts, self._judge, key_names(root))
        self._tables = scanned_tables(root, self._names, self._facts)
        answer = self._visit(root, frozenset(), ())
        self._add(root, amounts.answer(answer))
        chunks = float(sum(facts.chunks for facts in self._facts.values()))
        operators = tuple(self._operators(root))
        sums = amounts.total(operator.amounts for operator in operators)
        sums["chunks"] = chunks
        return Features(sums, tuple(self._scans.values()), answer.rows, operators)

    def _operators(self, node: Mapping[str, Any]) -> Iterable[OperatorFeatures]:
        """In the order of the plan: an operator before those it reads from."""
        stream = self._streams.get(id(node), Stream(0.0, 1.0, ()))
        below = [self._streams[id(child)] for child in node.get("children", [])]
        yield OperatorFeatures(
            self._done.get(id(node), {}),
            stream.rows,
            stream.bytes,
            stream.doubt,
            amounts.held_bytes(operator_name(node), stream, below),
            max((one.lanes for one in below), default=stream.lanes),
        )
        for child in node.get("children", []):
            yield from self._operators(child)

    def _visit(
        self, node: Mapping[str, Any], used: frozenset[str], pushed: Sequence[Pushed]
    ) -> Stream:
        """What an operator gives. Operators above name what is `used` and sift by `pushed`."""
        info: Mapping[str, Any] = node.get("extra_info") or {}
        self._above[id(node)] = used
        used |= self._projections.with_meanings(named(info))
        found = self._operator(node, info, used, pushed)
        rows = min(MOST_ROWS, max(1.0, found.rows))
        if self._counted and "intermediate_rows" in node:
            rows, found = float(node["intermediate_rows"]), replace(found, doubt=0.0)
        found = replace(found, rows=rows)
        below = [self._streams[id(child)] for child in node.get("children", [])]
        self._add(node, {"vectors": sum(stream.vectors for stream in below)})
        self._streams[id(node)] = found
        return found

    def _operator(
        self,
        node: Mapping[str, Any],
        info: Mapping[str, Any],
        used: frozenset[str],
        pushed: Sequence[Pushed],
    ) -> Stream:
        name = operator_name(node)
        if name == "TABLE_SCAN" and "Function" in info:
            name = str(info["Function"])
        children = node.get("children", [])
        expected = number(info.get("Estimated Cardinality"))
        if not children:
            return self._leaf(node, name, info, expected, pushed)
        if name == "CTE":
            return self._cte(node, info, used, pushed)
        if name.startswith("REC_CTE"):
            return self._recursion(node, info, used)
        if "file_row_number" in str(info.get("Conditions")):
            return self._fetch(node, used)
        if "JOIN" in name and len(children) > 1 and not name.startswith("POSITIONAL"):
            return self._join(node, name, info, expected, used, pushed)
        if len(children) > 1:
            return self._several(node, name, [self._visit(one, used, ()) for one in children])
        passes_on = name in ("PROJECTION", "FILTER")
        if name == "PROJECTION":
            pushed = [one.below(texts(info.get("Projections"))) for one in pushed]
        below = self._visit(children[0], used, pushed if passes_on else ())
        if name in LIMITS:
            return self._limit(node, info, below)
        if name == "PROJECTION":
            given, done = self._projections.of(texts(info.get("Projections")), below, self._known)
            self._add(node, done)
            return given
        if name == "FILTER":
            return self._filter(node, info, below, expected)
        if name.endswith(("GROUP_BY", "AGGREGATE", "DISTINCT")):
            return self._aggregate(node, name, info, below, expected)
        return self._single(node, name, info, below, expected)

    def _add(self, node: Mapping[str, Any], found: Mapping[Amount, float]) -> None:
        self._done[id(node)] = amounts.total((self._done.get(id(node), {}), found))

    def _scale(self, node: Mapping[str, Any], share: float) -> None:
        """Only a share of what is done below is done; or all of it, several times."""
        for child in node.get("children", []):
            done = self._done.get(id(child), {})
            self._done[id(child)] = {name: share * amount for name, amount in done.items()}
            self._scale(child, share)

    # --- where rows come from ----------------------------------------------------------------

    def _leaf(
        self,
        node: Mapping[str, Any],
        name: str,
        info: Mapping[str, Any],
        expected: float | None,
        pushed: Sequence[Pushed],
    ) -> Stream:
        shared = self._shared.get(str(info.get("CTE Index")))
        if shared is not None:
            self._add(node, {"cached_values": shared.rows * len(shared.columns)})
            return shared
        rows = 1.0 if expected is None else expected
        facts = self._tables.get(id(node))
        if facts is not None:
            counted = float(node["intermediate_rows"]) if self._counted else None
            found = scan(self._known, facts, info, rows, pushed, counted)
            self._scans[id(node)] = found.features
            self._sifted |= found.sifted_by
            self._add(node, found.amounts)
            return found.stream
        made = [Column(text) for text in texts(info.get("Projections"))] or [Column()]
        if is_scan(name):
            size = rows * len(made)
            self._add(node, {"scan_values": size, "scan_bytes": size * WIDTH_BYTES})
        else:
            self._add(node, {"made_rows": rows})
        return Stream(rows, 1.0, made, GUESSED if texts(info.get("Filters")) else 0.0)

    def _cte(
        self,
        node: Mapping[str, Any],
        info: Mapping[str, Any],
        used: frozenset[str],
        pushed: Sequence[Pushed],
    ) -> Stream:
        made, user = node["children"]
        wanted = self._projections.with_meanings(named_below(user))
        stream = self._visit(made, wanted | used, ())
        self._add(node, {"cached_values": stream.rows * len(stream.columns)})
        self._shared[str(info.get("Table Index"))] = stream
        return self._visit(user, used, pushed)

    def _recursion(
        self, node: Mapping[str, Any], info: Mapping[str, Any], used: frozenset[str]
    ) -> Stream:
        """The first rows once, and what is made of them again and again."""
        first, again = node["children"]
        begun = self._visit(first, used, ())
        self._shared[str(info.get("Table Index"))] = begun
        added = self._visit(again, used, ())
        self._add(again, {"made_rows": TURN_ROWS})
        self._scale({"children": [again]}, TURNS)
        for place in (id(again), *below_ids(again)):
            stream = self._streams[place]
            self._streams[place] = replace(stream, doubt=stream.doubt + GUESSED)
        return Stream(begun.rows + TURNS * added.rows, 1.0, begun.columns, GUESSED)

    def _several(self, node: Mapping[str, Any], name: str, below: Sequence[Stream]) -> Stream:
        if name == "CROSS_PRODUCT":
            # Every pair, without looking at it: all rows of one side beside each of the other.
            rows = min(MOST_ROWS, below[0].rows * below[1].rows)
            self._add(node, {"made_rows": rows})
            correction = below[0].correction * below[1].correction
            columns = [*below[0].columns, *below[1].columns]
            return Stream(rows, correction, columns, below[0].doubt + below[1].doubt)
        doubt = max(stream.doubt for stream in below)
        if name.startswith("POSITIONAL"):
            columns = [column for stream in below for column in stream.columns]
            return Stream(max(stream.rows for stream in below), 1.0, columns, doubt)
        columns = [
            self._known.united(places)
            for places in zip(*(one.columns for one in below), strict=False)
        ]
        lanes = sum(stream.lanes for stream in below)
        return Stream(sum(stream.rows for stream in below), 1.0, columns, doubt, lanes=lanes)

    def _limit(self, node: Mapping[str, Any], info: Mapping[str, Any], below: Stream) -> Stream:
        """Reading ends with the row group that has the last row wanted."""
        wanted = number(info.get("Limit"))
        if wanted is None:
            return below
        last = wanted + (number(info.get("Offset")) or 0.0)
        scans = [scan for scan in map(self._scans.get, below_ids(node)) if scan is not None]
        if scans and is_stream(node):
            least = GROUP_ROWS / max(1.0, scans[-1].rows)
            self._scale(node, min(1.0, max(least, last / max(1.0, below.rows))))
        return Stream(max(1.0, min(below.rows, wanted)), 1.0, below.columns)

    def _fetch(self, node: Mapping[str, Any], used: frozenset[str]) -> Stream:
        """DuckDB finds out which rows are wanted, and only then reads all of their columns."""
        fetched, found = node["children"]
        wanted = self._visit(found, used, ()).rows
        columns = self._visit(fetched, used, ()).columns
        scans = [scan for scan in map(self._scans.get, (id(fetched), *below_ids(fetched))) if scan]
        scanned = max(1.0, sum(scan.rows for scan in scans))
        # The first rows of a table lie together; others may lie in a row group each.
        read = wanted + GROUP_ROWS if is_stream(found) else wanted * GROUP_ROWS
        self._scale({"children": [fetched]}, min(1.0, read / scanned))
        return Stream(wanted, 1.0, columns)

    # --- what is done with them --------------------------------------------------------------

    def _filter(
        self,
        node: Mapping[str, Any],
        info: Mapping[str, Any],
        below: Stream,
        expected: float | None,
    ) -> Stream:
        conditions = texts(info.get("Expression"))
        for text in conditions:
            self._add(node, amounts.compute(text, below.rows, below.columns))
        self._add(node, {"filtered_values": below.rows * len(below.columns)})
        meanings = self._projections.meanings
        made = made_share(conditions, below.columns, meanings, self._known.mean)
        if made is not None:
            return below.thinned(max(1.0, below.rows * made), UNJUDGED)
        facts = self._facts.get(below.table)
        both = (*below.conditions, *conditions)
        if facts is not None and self._known.can_judge(facts, both):
            share, doubt = self._known.passing(facts, both)
            thin = below.thinned(min(below.rows, facts.rows * share * below.sifted))
            doubt += below.doubt if below.sifted < 1 else 0.0
            columns = [
                self._known.filtered(
                    column, facts, both, share if column.sifted else share * below.sifted
                )
                for column in thin.columns
            ]
            return replace(thin, table=facts.key, conditions=both, doubt=doubt, columns=columns)
        rows = below.rows if expected is None else min(below.rows, expected * below.correction)
        by_values = math.prod(equal_share(text, below.columns) for text in conditions)
        return below.thinned(max(1.0, min(rows, below.rows * by_values)), UNJUDGED)

    def _aggregate(
        self,
        node: Mapping[str, Any],
        name: str,
        info: Mapping[str, Any],
        below: Stream,
        expected: float | None,
    ) -> Stream:
        keys = [source(text, below.columns) or Column() for text in texts(info.get("Groups"))]
        calls = texts(info.get("Aggregates"))
        groups = self._known.groups(keys, below)
        counted = groups
        if self._counted:
            counted = float(node.get("intermediate_rows", groups))
        self._add(node, amounts.aggregate(name, keys, calls, below.rows, counted))
        made = [of_groups(key, groups) for key in keys]
        each = below.rows / max(1.0, groups)
        columns = [*made, *[aggregated(call, below.columns, each) for call in calls]]
        correction = groups / max(1.0, expected or 1.0)
        doubt = (below.doubt + GROUPED) if groups > 0.1 * below.rows else GROUPED
        names = frozenset(key.name for key in keys)
        return Stream(
            groups,
            correction,
            columns,
            doubt if keys else 0.0,
            lanes=_lanes(groups),
            unique=frozenset() if "" in names else names,
        )

    def _join(
        self,
        node: Mapping[str, Any],
        name: str,
        info: Mapping[str, Any],
        expected: float | None,
        used: frozenset[str],
        pushed: Sequence[Pushed],
    ) -> Stream:
        probe, build = node["children"][0], node["children"][1]
        right = self._visit(build, used, ())
        kind = str(info.get("Join Type", ""))
        conditions = texts(info.get("Conditions")) or texts(info.get("Condition"))
        own = pushed_by(id(node), name, kind, conditions, right)
        left = self._visit(probe, used, [*pushed, *own])
        sifted = id(node) if any(one.number in self._sifted for one in own) else None
        found = joined(name, kind, conditions, left, right, expected, sifted, self._known)
        rows = min(MOST_ROWS, max(1.0, found.rows))
        if self._counted:
            rows = float(node.get("intermediate_rows", rows))
        above = self._above[id(node)]
        columns = kept(found.columns, above) if above else found.columns
        if name == "HASH_JOIN":
            indexed = is_indexed(kind, conditions, right)
            self._add(node, amounts.hash_join(left, right, indexed, rows, columns))
        else:
            self._add(node, amounts.other_join(name, conditions, left, right, rows))
        # A join puts small pieces together.
        return replace(found, rows=rows, columns=columns, lanes=left.lanes, pieces=0.0)

    def _single(
        self,
        node: Mapping[str, Any],
        name: str,
        info: Mapping[str, Any],
        below: Stream,
        expected: float | None,
    ) -> Stream:
        calls = texts(info.get("Projections"))
        if name == "ORDER_BY":
            self._add(node, amounts.sort(below))
            return replace(below, lanes=_lanes(below.rows))
        if name == "TOP_N":
            self._add(node, {"topped_rows": below.rows})
            return Stream(min(below.rows, expected or below.rows), 1.0, below.columns)
        if name == "UNNEST":
            return self._unnest(node, below)
        columns = [*below.columns, *[self._windowed(call, below) for call in calls]]
        if name in ("WINDOW", "STREAMING_WINDOW"):
            if name == "WINDOW":
                self._add(node, amounts.window(below, calls))
            else:
                self._add(node, {"expressions": below.rows * len(calls)})
            return replace(below, columns=columns)
        rows = below.rows if expected is None else max(1.0, expected * below.correction)
        return Stream(rows, below.correction, columns, below.doubt)

    def _windowed(self, call: str, below: Stream) -> Column:
        """What a window makes."""
        names = partition_keys(call)
        if names is None:
            return Column(call=call)
        keys = [source(name, below.columns) or Column() for name in names]
        return Column(call=call, group_rows=below.rows / self._known.groups(keys, below))

    def _unnest(self, node: Mapping[str, Any], below: Stream) -> Stream:
        """A row for each value of a list: of the longest, where a table has some."""
        lengths = [column.length for column in below.columns if column.length is not None]
        values = max(lengths, default=UNNESTED)
        rows = min(MOST_ROWS, max(1.0, below.rows * values))
        self._add(node, {"unnested_rows": rows})
        doubt = below.doubt + (0.0 if lengths else GUESSED)
        columns = [*below.columns, Column()]
        return Stream(rows, below.correction * values, columns, doubt)


def _lanes(rows: float) -> float:
    return max(1.0, rows / GROUP_ROWS)
