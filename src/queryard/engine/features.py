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
from typing import Any, Protocol

from queryard.estimate.prices import Amount, Features, OperatorFeatures, ScanFeatures
from queryard.sql.statistics.distinct import remaining

from . import amounts
from .aliases import by_operator
from .amounts import Amounts, Read
from .filters import LEAST, UNKNOWN, Range, kept_share, ranges, words
from .join_sizes import Pushed, joined, keyed_by, pushed_by
from .plans import (
    WIDTH_BYTES,
    PlanNames,
    column_name,
    is_scan,
    number,
    operator_name,
    texts,
)
from .streams import VECTOR_ROWS, Column, Stream, computed, kept, of_table, source, touched
from .tables import TableFacts

# Groups by a value that was computed: more than a few, fewer than rows.
COMPUTED_POWER = 0.6
# The least that is read of a Parquet file.
GROUP_ROWS = 122_880.0
# What one slot reads of a text file at a time.
TEXT_PART_BYTES = 32e6
_LIMITS = ("LIMIT", "STREAMING_LIMIT")
_STREAMING = ("PROJECTION", "FILTER", "UNNEST", "STREAMING_WINDOW", "STREAMING_SAMPLE", *_LIMITS)
# An upper limit for rows, so that products stay finite.
MOST_ROWS = 1e18
# No plan tells the length of computed lists and the iterations of a recursion. DuckDB estimates 1
# and 1,000.
UNNESTED = 10.0
TURNS = 30.0
TURN_ROWS = 30_000.0
"""The cost of starting an iteration of a recursion, in rows."""

# Rows of a sample that must match before their number is believed.
TELLING = 10
# If a filter leaves out so many row groups, the rows it wants lie together.
TOGETHER = 0.8
# What a row in a hash table or a sort takes beside its values.
HELD_BYTES = 24.0
# Squared errors of the logarithm of rows, by how they were estimated.
GUESSED = math.log(5.0) ** 2
UNJUDGED = math.log(2.5) ** 2
BY_RANGES = math.log(1.5) ** 2
GROUPED = math.log(1.3) ** 2


class Judging(Protocol):
    """Samples of tables that tell what no statistics can."""

    def share(self, key: str, condition: str) -> Any: ...
    def distinct(
        self, key: str, expressions: Sequence[str], condition: str = ""
    ) -> float | None: ...


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
        # The expressions behind names that the statement gives them.
        self._meanings = meanings or {}
        self._counted = counted
        self._done: dict[int, Amounts] = {}
        self._streams: dict[int, Stream] = {}
        self._scans: dict[int, ScanFeatures] = {}
        self._shared: dict[str, Stream] = {}
        self._keys: frozenset[str] = frozenset()
        # Names of expressions that were computed.
        self._made: set[str] = set()
        # Joins whose keys have sifted a scan.
        self._sifted: set[int] = set()

    def of(self, root: Mapping[str, Any]) -> Features:
        """The amounts of a plan, the hand-over of its rows included."""
        self._keys = _keys(root)
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
            _held_bytes(operator_name(node), stream, below),
            max((one.lanes for one in below), default=stream.lanes),
        )
        for child in node.get("children", []):
            yield from self._operators(child)

    def _visit(
        self, node: Mapping[str, Any], used: frozenset[str], pushed: Sequence[Pushed]
    ) -> Stream:
        """What an operator gives. Operators above name what is `used` and sift by `pushed`."""
        info: Mapping[str, Any] = node.get("extra_info") or {}
        used |= _named(info)
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
        if name in _LIMITS:
            return self._limit(node, info, below)
        if name == "PROJECTION":
            return self._projection(node, info, below)
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
        filtered = bool(texts(info.get("Filters")))
        known = [self._facts[key] for key in self._names.holders(name, info) if key in self._facts]
        if known:
            # Where several tables have such columns, the one with as many rows.
            whole = max(1.0, rows / UNKNOWN if filtered else rows)
            facts = min(known, key=lambda one: abs(math.log(max(1.0, one.rows) / whole)))
            return self._scan(node, facts, info, rows, pushed)
        made = [Column(text) for text in texts(info.get("Projections"))] or [Column()]
        if is_scan(name):
            size = rows * len(made)
            self._add(node, {"scan_values": size, "scan_bytes": size * WIDTH_BYTES})
        else:
            self._add(node, {"made_rows": rows})
        return Stream(rows, 1.0, made, GUESSED if filtered else 0.0)

    def _scan(
        self,
        node: Mapping[str, Any],
        facts: TableFacts,
        info: Mapping[str, Any],
        expected: float,
        pushed: Sequence[Pushed],
    ) -> Stream:
        projected = [column_name(text) for text in texts(info.get("Projections"))]
        filters = [text for text in texts(info.get("Filters")) if "Dynamic Filter" not in text]
        must = [text for text in filters if not text.startswith("optional: ")]
        tested = dict.fromkeys(word for text in filters for word in words(text))
        tested = {word: None for word in tested if word in facts.columns}
        wanted: dict[str, Range] = {}
        for text in must:
            wanted |= ranges(text, facts.columns.get)
        passing, doubt = self._passing(facts, must)
        share = max(facts.share_read(wanted), LEAST)
        columns = [self._column(facts, name, " AND ".join(must)) for name in projected]
        here = [one for one in pushed if source(one.key, columns) is not None]
        matching = math.prod(one.share(source(one.key, columns)) for one in here)
        rows = max(1.0, facts.rows * min(passing, share))
        left = rows * matching
        if self._counted:
            left = float(node.get("intermediate_rows", left))
        sifted = [column for one in here if (column := source(one.key, columns)) is not None]
        if facts.is_columnar:
            done, size = amounts.read_columns(
                Read(
                    facts,
                    list(dict.fromkeys(projected) | tested),
                    frozenset(tested),
                    frozenset(column.name for column in sifted),
                    share,
                    min(1.0, passing / share),
                    min(1.0, left / max(1.0, share * facts.rows)),
                )
            )
        else:
            size = facts.bytes
            done = {"text_bytes": size}
        self._scans[id(node)] = ScanFeatures(facts.key, share * facts.rows, len(projected), size)
        self._add(node, done)
        inside = [of_table(facts, name) for name in tested]
        for text in filters:
            self._add(node, amounts.scan_filter(text, share * facts.rows, [*columns, *inside]))
        lanes = max(1.0, facts.groups * share) if facts.is_columnar else size / TEXT_PART_BYTES
        whole = Stream(facts.rows, facts.rows / max(1.0, expected), columns, lanes=max(1.0, lanes))
        passed = replace(whole.thinned(rows, doubt), table=facts.key, conditions=tuple(must))
        read = share * facts.rows / VECTOR_ROWS
        passed = replace(passed, pieces=read * touched(min(1.0, passing / share), VECTOR_ROWS))
        return self._sift(passed, here, left) if here else passed

    def _column(self, facts: TableFacts, name: str, where: str) -> Column:
        """A column of a table; of keys, the sample may know how many values there are."""
        column = replace(of_table(facts, name), where=where)
        if name not in self._keys or facts.analysed or self._judge is None:
            return column
        values = self._judge.distinct(facts.key, (column.text,))
        if values is None:
            return column
        if column.is_whole and column.range is not None:
            values = min(values, column.range[1] - column.range[0] + 1)
        return replace(column, distinct=max(1.0, values), domain=max(1.0, values))

    def _sift(self, passed: Stream, here: Sequence[Pushed], rows: float) -> Stream:
        """What is left of the rows of a table that have partners in joins above."""
        self._sifted |= {one.number for one in here}
        left = passed.thinned(rows, sum(one.doubt for one in here))
        columns = list(left.columns)
        for one in here:
            for place, column in enumerate(passed.columns):
                if column is source(one.key, passed.columns):
                    values = min(column.distinct or one.values, one.values, max(1.0, rows))
                    columns[place] = replace(column, distinct=values)
        return replace(left, columns=columns)

    def _passing(self, facts: TableFacts, conditions: Sequence[str]) -> tuple[float, float]:
        """The share of the rows of a table for which all conditions hold, and the doubt.

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
        judged = None if self._judge is None else self._judge.share(facts.key, " AND ".join(rest))
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

    def _can_judge(self, facts: TableFacts, conditions: Sequence[str]) -> bool:
        """Whether conditions speak of columns of a table only."""
        if self._judge is None or not conditions:
            return False
        return self._judge.share(facts.key, " AND ".join(conditions)) is not None

    def _cte(
        self,
        node: Mapping[str, Any],
        info: Mapping[str, Any],
        used: frozenset[str],
        pushed: Sequence[Pushed],
    ) -> Stream:
        made, user = node["children"]
        stream = self._visit(made, _named_below(user) | used, ())
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
        for place in (id(again), *_below(again)):
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
            self._united(places) for places in zip(*(one.columns for one in below), strict=False)
        ]
        lanes = sum(stream.lanes for stream in below)
        return Stream(sum(stream.rows for stream in below), 1.0, columns, doubt, lanes=lanes)

    def _united(self, columns: Sequence[Column]) -> Column:
        """One column of all branches of a union: at most the values of all together."""
        values = [self._values(column) for column in columns]
        known = None if None in values else sum(value or 0.0 for value in values)
        return replace(columns[0], table="", text="", where="", distinct=known, domain=known)

    def _values(self, column: Column) -> float | None:
        if column.distinct is None and column.text and self._judge is not None:
            return self._judge.distinct(column.table, (column.text,), column.where)
        return column.distinct

    def _limit(self, node: Mapping[str, Any], info: Mapping[str, Any], below: Stream) -> Stream:
        """Reading ends with the row group that has the last row wanted."""
        wanted = number(info.get("Limit"))
        if wanted is None:
            return below
        last = wanted + (number(info.get("Offset")) or 0.0)
        scans = [scan for scan in map(self._scans.get, _below(node)) if scan is not None]
        if scans and _is_stream(node):
            least = GROUP_ROWS / max(1.0, scans[-1].rows)
            self._scale(node, min(1.0, max(least, last / max(1.0, below.rows))))
        return Stream(max(1.0, min(below.rows, wanted)), 1.0, below.columns)

    def _fetch(self, node: Mapping[str, Any], used: frozenset[str]) -> Stream:
        """DuckDB finds out which rows are wanted, and only then reads all of their columns."""
        fetched, found = node["children"]
        wanted = self._visit(found, used, ()).rows
        columns = self._visit(fetched, used, ()).columns
        scans = [scan for scan in map(self._scans.get, (id(fetched), *_below(fetched))) if scan]
        scanned = max(1.0, sum(scan.rows for scan in scans))
        # The first rows of a table lie together; others may lie in a row group each.
        read = wanted + GROUP_ROWS if _is_stream(found) else wanted * GROUP_ROWS
        self._scale({"children": [fetched]}, min(1.0, read / scanned))
        return Stream(wanted, 1.0, columns)

    # --- what is done with them --------------------------------------------------------------

    def _projection(
        self, node: Mapping[str, Any], info: Mapping[str, Any], below: Stream
    ) -> Stream:
        columns = []
        for text in texts(info.get("Projections")):
            handed_on = source(text, below.columns)
            name = text.strip('"').lower()
            meant = self._meanings.get(name, text)
            if meant != text and name not in self._made and name in words(meant):
                handed_on = None  # `date_trunc('month', day) AS day` hides the column
            if text.startswith("#["):
                handed_on = self._key_among(below.columns)
            if handed_on is None and (meant_column := source(meant, below.columns)) is not None:
                handed_on = replace(meant_column, name=name)
            if handed_on is None:
                # What has a name is computed once, and not here if another operator does it.
                if meant == text or not (name in self._made or by_operator(meant)):
                    self._add(node, amounts.compute(meant, below.rows, below.columns))
                self._made.add(name)
                columns.append(replace(computed(meant, below.columns), name=name))
            else:
                if "(" in text:
                    self._add(node, {"cast_values": below.rows})
                columns.append(handed_on)
        return replace(below, columns=columns)

    def _key_among(self, columns: Sequence[Column]) -> Column | None:
        """DuckDB writes keys of correlated subqueries without their names."""
        found = [column for column in columns if column.name and column.name in self._keys]
        return found[0] if len(found) == 1 or len(columns) == 1 else None

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
        facts = self._facts.get(below.table)
        both = (*below.conditions, *conditions)
        if facts is not None and self._can_judge(facts, both):
            share, doubt = self._passing(facts, both)
            thin = below.thinned(min(below.rows, facts.rows * share))
            where = " AND ".join(both)
            columns = [
                replace(column, where=where) if column.table == facts.key else column
                for column in thin.columns
            ]
            return replace(thin, table=facts.key, conditions=both, doubt=doubt, columns=columns)
        rows = below.rows if expected is None else min(below.rows, expected * below.correction)
        return below.thinned(max(1.0, rows), UNJUDGED)

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
        groups = self._groups(keys, below)
        counted = groups
        if self._counted:
            counted = float(node.get("intermediate_rows", groups))
        self._add(node, amounts.aggregate(name, keys, calls, below.rows, counted))
        made = [replace(key, distinct=min(key.distinct or groups, groups)) for key in keys]
        columns = [*made, *[Column() for _ in calls]]
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

    def _groups(self, keys: Sequence[Column], below: Stream) -> float:
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
        product = 1.0
        for key in keys:
            values = key.distinct
            facts = self._facts.get(table)
            rough = values is None or facts is None or not facts.analysed
            if (rough or key.where) and key.text and self._judge is not None:
                found = self._judge.distinct(table, (key.text,), key.where)
                values = found if found is not None else values
            product *= max(1.0, values if values is not None else rows**COMPUTED_POWER)
        if len(keys) > 1 and self._judge is not None and all(key.text for key in keys):
            found = self._judge.distinct(table, [key.text for key in keys], keys[0].where)
            if found is not None:
                return min(product, found)
        return min(rows, product)

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
        own = pushed_by(name, kind, conditions, right)
        left = self._visit(probe, used, [*pushed, *own])
        sifted = any(one.number in self._sifted for one in own)
        found = joined(name, kind, conditions, left, right, expected, sifted, self._judge)
        rows = min(MOST_ROWS, max(1.0, found.rows))
        if self._counted:
            rows = float(node.get("intermediate_rows", rows))
        columns = kept(found.columns, used)
        if name == "HASH_JOIN":
            keyed = keyed_by(kind, conditions, left, right)
            self._add(node, amounts.hash_join(left, right, keyed, rows, columns))
        elif name == "NESTED_LOOP_JOIN":
            self._add(node, {"pairs": left.rows * right.rows, "paired_rows": rows})
        elif name == "BLOCKWISE_NL_JOIN":
            pairs = left.rows * right.rows
            self._add(node, {"made_rows": pairs, "paired_rows": rows})
            for text in conditions:
                self._add(node, amounts.compute(text, pairs, [*left.columns, *right.columns]))
        else:
            for side in (left, right):
                self._add(node, amounts.sort(side, ()))
            weight = amounts.IE_ROWS if name == "IE_JOIN" else 1.0
            self._add(node, {"paired_rows": rows * weight})
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
            keys = [text.rpartition(" ")[0] for text in texts(info.get("Order By"))]
            self._add(node, amounts.sort(below, [source(key, below.columns) for key in keys]))
            return replace(below, lanes=_lanes(below.rows))
        if name == "TOP_N":
            self._add(node, {"topped_rows": below.rows})
            return Stream(min(below.rows, expected or below.rows), 1.0, below.columns)
        if name == "UNNEST":
            return self._unnest(node, below)
        columns = [*below.columns, *[Column() for _ in calls]]
        if name in ("WINDOW", "STREAMING_WINDOW"):
            if name == "WINDOW":
                self._add(node, amounts.window(below, calls))
            else:
                self._add(node, {"expressions": below.rows * len(calls)})
            return replace(below, columns=columns)
        rows = below.rows if expected is None else max(1.0, expected * below.correction)
        return Stream(rows, below.correction, columns, below.doubt)

    def _unnest(self, node: Mapping[str, Any], below: Stream) -> Stream:
        """A row for each value of a list: of the longest, where a table has some."""
        lengths = [column.length for column in below.columns if column.length is not None]
        values = max(lengths, default=UNNESTED)
        rows = min(MOST_ROWS, max(1.0, below.rows * values))
        self._add(node, {"unnested_rows": rows})
        doubt = below.doubt + (0.0 if lengths else GUESSED)
        columns = [*below.columns, Column()]
        return Stream(rows, below.correction * values, columns, doubt)


def _held_bytes(name: str, given: Stream, below: Sequence[Stream]) -> float:
    """What an operator keeps in memory until it has seen all rows."""
    if "JOIN" in name and len(below) > 1:
        return below[1].bytes + HELD_BYTES * below[1].rows
    if name.endswith("GROUP_BY"):
        return given.bytes + HELD_BYTES * given.rows
    if name in ("ORDER_BY", "WINDOW", "CTE") and below:
        return below[0].bytes + HELD_BYTES * below[0].rows
    return 0.0


def _lanes(rows: float) -> float:
    return max(1.0, rows / GROUP_ROWS)


def _named(info: Mapping[str, Any]) -> frozenset[str]:
    """Words in what an operator says of itself: names of columns are among them."""
    return frozenset(
        word for value in info.values() for text in texts(value) for word in words(text)
    )


def _keys(node: Mapping[str, Any]) -> frozenset[str]:
    """Words in conditions of joins and in groups: names of key columns are among them."""
    info: Mapping[str, Any] = node.get("extra_info") or {}
    keys = [*texts(info.get("Conditions")), *texts(info.get("Groups"))]
    found = frozenset(word for text in keys for word in words(text))
    return found.union(*map(_keys, node.get("children", [])))


def _named_below(node: Mapping[str, Any]) -> frozenset[str]:
    found = _named(node.get("extra_info") or {})
    return found.union(*map(_named_below, node.get("children", [])))


def _below(node: Mapping[str, Any]) -> Iterable[int]:
    for child in node.get("children", []):
        yield id(child)
        yield from _below(child)


def _is_stream(node: Mapping[str, Any]) -> bool:
    """Whether rows come out before all were read."""
    children = node.get("children", [])
    if not children:
        name = operator_name(node)
        return is_scan(name) or name == "TABLE_SCAN"
    return operator_name(node) in _STREAMING and all(map(_is_stream, children))
