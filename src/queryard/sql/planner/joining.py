"""Joins: with a small side shared by all tasks, or with both sides brought together by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from sqlglot import exp

from .algebra import Join, Node, names
from .assembly import Assembly
from .builder import Builder
from .cardinality import Cardinality, key_pair
from .costs import BUILD_ROW_S, PROBE_ROW_S, SHUFFLE_VALUE_S, Sizing, tasks_for
from .expressions import Expr, bare, text
from .fragment import Fragment, TableSource, Wrap
from .types import hash_type

_SYNTAX = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "full": "FULL JOIN",
    "semi": "SEMI JOIN",
    "anti": "ANTI JOIN",
}
_INLINE_BYTES = 4e6


@dataclass(frozen=True, slots=True)
class _Keys:
    """Pairs of expressions that must be equal, and the type they are hashed in."""

    left: tuple[Expr, ...]
    right: tuple[Expr, ...]
    types: tuple[str, ...]

    def hashed(self, sides: Sequence[Expr]) -> list[str]:
        return [f"CAST({text(e)} AS {t})" for e, t in zip(sides, self.types, strict=True)]

    def columns(self, sides: Sequence[Expr]) -> tuple[str, ...] | None:
        plain = [bare(e) for e in sides]
        if not all(isinstance(e, exp.Column) for e in plain):
            return None
        return tuple(e.name for e in plain)


class Compiling(Protocol):
    """What a join needs of the compilation it is part of (see `Physical`)."""

    builder: Builder
    cardinality: Cardinality
    sizing: Sizing
    assembly: Assembly

    def compile(self, node: Node) -> Fragment: ...

    def wrapped(
        self,
        child: Fragment,
        node: Node,
        sql: Wrap,
        row_s: float,
        story: str = "",
        builds: Sequence[str] = (),
    ) -> Fragment: ...


class Joining:
    """Compiles join nodes for `Physical`."""

    def __init__(self, physical: Compiling) -> None:
        self._physical = physical

    def compile(self, node: Join) -> Fragment:
        """The fragment of a join, in the cheapest of the sound ways."""
        physical = self._physical
        if node.kind == "right":
            node = Join("left", node.right, node.left, node.conditions)
        if node.kind == "inner" and physical.cardinality.bytes(node.left) < (
            physical.cardinality.bytes(node.right)
        ):
            node = Join("inner", node.right, node.left, node.conditions)
        left, right = physical.compile(node.left), physical.compile(node.right)
        keys = self._keys(node)
        if node.kind != "full":
            if left.single and _inlinable(right):
                return self._inlined(node, left, right)
            if node.kind == "inner" and right.single and _inlinable(left):
                return self._inlined(node, right, left)
            joined = self._same_exchange(node, left, right, keys)
            if joined is not None:
                return joined
            if not keys.left or self._broadcast_pays(left, right):
                return self._broadcast(node, left, right)
        return self._partitioned(node, left, right, keys)

    def _keys(self, node: Join) -> _Keys:
        mine = names(node.left)
        types = {f.name: f for f in (*node.left.fields, *node.right.fields)}
        left, right, chosen = [], [], []
        for condition in node.conditions:
            pair = key_pair(condition, mine)
            if pair is None:
                continue
            found = self._physical.builder.types(pair, types.values())
            common = hash_type(*found)
            if common is not None:
                left.append(pair[0])
                right.append(pair[1])
                chosen.append(common)
        return _Keys(tuple(left), tuple(right), tuple(chosen))

    def _broadcast_pays(self, left: Fragment, right: Fragment) -> bool:
        """Whether building a table of the right side in every task beats shuffling both sides."""
        if right.bytes > self._physical.sizing.broadcast_bytes:
            return False
        if left.single:
            return True
        tasks = tasks_for(left.seconds, left.build_seconds)
        shared_s = right.rows * BUILD_ROW_S * (tasks + 1)
        shuffled_s = SHUFFLE_VALUE_S * (
            left.rows * len(left.fields) + right.rows * len(right.fields)
        )
        return self._physical.sizing.target_bytes is not None or shared_s < shuffled_s

    # ------------------------------------------------------------------ ways to join

    def _broadcast(self, node: Join, left: Fragment, right: Fragment) -> Fragment:
        job = self._physical.assembly.closed(right)
        sql = _select(node, f"build_{job.name}")
        joined = self._physical.wrapped(
            left, node, sql, PROBE_ROW_S, f"{node.kind} join {job.name}", builds=[job.name]
        )
        build_s = left.build_seconds + right.rows * BUILD_ROW_S
        return replace(joined, build_seconds=build_s)

    def _inlined(self, node: Join, left: Fragment, right: Fragment) -> Fragment:
        """Both sides are small: one task reads and joins them."""
        (piece,) = right.pieces
        assert isinstance(piece.source, TableSource)
        assert piece.source.splits is not None
        splits = piece.source.splits
        whole = piece.text(splits[0].relation if splits else piece.source.empty)
        sql = _select(node, f"({whole})")
        story = f"{node.kind} join {piece.source.table}"
        joined = self._physical.wrapped(left, node, sql, PROBE_ROW_S, story, builds=piece.builds)
        return replace(
            joined,
            seconds=joined.seconds + right.seconds,
            scan_bytes=joined.scan_bytes + right.scan_bytes,
        )

    def _same_exchange(
        self, node: Join, left: Fragment, right: Fragment, keys: _Keys
    ) -> Fragment | None:
        """If the left side already lies in partitions by these keys, only the right one moves."""
        columns = keys.columns(keys.left)
        job = left.open_job
        if job is None or columns is None or not columns or right.open_job == job:
            return None
        for names_, types in left.hashed:
            order = [columns.index(name) for name in names_ if name in columns]
            if len(order) != len(names_) or not order:
                continue
            if tuple(keys.types[i] for i in order) != types:
                continue
            moved = self._physical.assembly.mappable(right)
            sent_by = keys.hashed(keys.right)
            side = self._physical.assembly.send(job, moved, [sent_by[i] for i in order])
            other = self._physical.assembly.received(job, side, moved)
            joined = self._reduced(node, left, other)
            return joined
        return None

    def _partitioned(self, node: Join, left: Fragment, right: Fragment, keys: _Keys) -> Fragment:
        work_s = (left.rows + right.rows) * (BUILD_ROW_S + PROBE_ROW_S)
        physical = self._physical
        left, right = physical.assembly.mappable(left), physical.assembly.mappable(right)
        mine = physical.assembly.exchange(
            [(left, keys.hashed(keys.left)), (right, keys.hashed(keys.right))], "join", work_s
        )
        job = mine.open_job
        assert job is not None
        other = physical.assembly.received(job, 1, right)
        joined = self._reduced(node, mine, other)
        # Rows that the join pads with NULL lie anywhere, so only a preserved side counts.
        sides = [keys.left, keys.right] if node.kind == "inner" else [keys.left]
        if node.kind != "full":
            found = [columns for side in sides if (columns := keys.columns(side))]
            joined.apart = [frozenset(columns) for columns in found]
            joined.hashed = [(columns, keys.types) for columns in found]
        return joined

    def _reduced(self, node: Join, left: Fragment, right: Fragment) -> Fragment:
        (other,) = right.pieces
        sql = _select(node, f"({other.text('')})")
        return self._physical.wrapped(left, node, sql, PROBE_ROW_S, f"{node.kind} join")


def _inlinable(fragment: Fragment) -> bool:
    """Whether a fragment is one small split that can be read within the SQL of another."""
    if not fragment.single or fragment.tail or fragment.bytes > _INLINE_BYTES:
        return False
    source = fragment.pieces[0].source
    if not isinstance(source, TableSource) or source.splits is None:
        return False
    return not any(split.frame is not None for split in source.splits)


def _select(node: Join, right: str) -> Wrap:
    columns = ", ".join(field.name for field in node.fields) or "1 AS one"
    conditions = " AND ".join(text(c) for c in node.conditions) or "TRUE"
    joined = f" AS l {_SYNTAX[node.kind]} {right} AS r ON {conditions}"
    return Wrap(f"SELECT {columns} FROM ", joined)
