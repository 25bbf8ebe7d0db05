"""Reads of tables: what filters and joins leave of their rows, and what reading takes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from queryard.estimate.prices import ScanFeatures

from . import amounts
from .amounts import Amounts, Read
from .filters import LEAST, Range, ranges, words
from .join_sizes import Pushed
from .judged import Known
from .streams import VECTOR_ROWS, Column, Stream, of_table, source, touched
from .tables import TableFacts
from .tree import column_name, texts

# What one slot reads of a text file at a time.
TEXT_PART_BYTES = 32e6


class Scanned(NamedTuple):
    """What a scan gives and does, and the joins above that sift it."""

    stream: Stream
    amounts: Amounts
    features: ScanFeatures
    sifted_by: frozenset[int]


def scan(
    known: Known,
    facts: TableFacts,
    info: Mapping[str, Any],
    expected: float,
    pushed: Sequence[Pushed],
    counted: float | None = None,
) -> Scanned:
    """A scan of a table of which DuckDB expects so many rows; `counted` if it has run."""
    projected = [column_name(text) for text in texts(info.get("Projections"))]
    filters = [text for text in texts(info.get("Filters")) if "Dynamic Filter" not in text]
    must = [text for text in filters if not text.startswith("optional: ")]
    tested = dict.fromkeys(word for text in filters for word in words(text))
    tested = {word: None for word in tested if word in facts.columns}
    wanted: dict[str, Range] = {}
    for text in must:
        wanted |= ranges(text, facts.columns.get)
    passing, doubt = known.passing(facts, must, projected)
    static = max(facts.share_read(wanted), LEAST)
    columns = [known.column(facts, name, must) for name in projected]
    here = [one for one in pushed if source(one.key, columns) is not None]
    rows = max(1.0, facts.rows * min(passing, static))
    whole = Stream(facts.rows, facts.rows / max(1.0, expected), columns)
    passed = whole.thinned(rows, doubt)
    shares = {one.number: _share(known, one, passed) for one in here}
    matching = math.prod(shares.values())
    share = max(facts.share_read(_narrowed(wanted, here, columns)), LEAST)
    left = rows * matching
    if counted is not None:
        left = counted
    sifted = [column for one in here if (column := source(one.key, columns)) is not None]
    if facts.is_columnar:
        done, size = amounts.read_columns(
            Read(
                facts,
                list(dict.fromkeys(projected) | tested),
                frozenset(tested),
                frozenset(column.name for column in sifted),
                share,
                min(1.0, passing / static),
                min(1.0, left / max(1.0, share * facts.rows)),
            )
        )
    else:
        size = facts.bytes
        done = {"text_bytes": size}
    features = ScanFeatures(facts.key, share * facts.rows, len(projected), size)
    inside = [of_table(facts, name) for name in tested]
    tests = [amounts.scan_filter(text, share * facts.rows, [*columns, *inside]) for text in filters]
    lanes = max(1.0, facts.groups * share) if facts.is_columnar else size / TEXT_PART_BYTES
    read = share * facts.rows / VECTOR_ROWS
    passed = replace(
        passed,
        table=facts.key,
        conditions=tuple(must),
        lanes=max(1.0, lanes),
        pieces=read * touched(min(1.0, passing / static), VECTOR_ROWS),
    )
    return Scanned(
        _sifted(passed, here, left, shares) if here else passed,
        amounts.total((done, *tests)),
        features,
        frozenset(one.number for one in here),
    )


def _narrowed(
    wanted: Mapping[str, Range], here: Sequence[Pushed], columns: Sequence[Column]
) -> dict[str, Range]:
    """The ranges of columns that row groups must have: those of filters and of keys of joins."""
    found = dict(wanted)
    for one in here:
        column = source(one.key, columns)
        if column is not None and one.range is not None:
            low, high = found.get(column.name, one.range)
            found[column.name] = (max(low, one.range[0]), min(high, one.range[1]))
    return found


def _share(known: Known, one: Pushed, passed: Stream) -> float:
    """The share of rows that have a partner in a join above."""
    column = source(one.key, passed.columns)
    found = None
    if column is not None:
        found = known.keys.matched(column, passed.rows, one.column, one.rows)
    return one.share(column) if found is None else max(LEAST, found)


def _sifted(
    passed: Stream, here: Sequence[Pushed], rows: float, shares: Mapping[int, float]
) -> Stream:
    """What is left of the rows of a table that have partners in joins above."""
    left = passed.thinned(rows, sum(one.doubt for one in here))
    columns = list(left.columns)
    for one in here:
        for place, column in enumerate(passed.columns):
            if column is source(one.key, passed.columns):
                values = min(column.distinct or one.values, one.values, max(1.0, rows))
                columns[place] = replace(
                    columns[place],
                    distinct=values,
                    left=column.left,
                    sifted={**columns[place].sifted, one.number: shares[one.number]},
                )
    share = left.rows / max(1.0, passed.rows)
    return replace(
        left, columns=columns, table=passed.table, conditions=passed.conditions, sifted=share
    )
