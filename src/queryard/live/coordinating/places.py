"""Where the splits of tables are, on a cluster: as the catalog says, or as was seen.

A node that has read a split has it in its caches. So long as the catalog does not name places, the
nodes that have read a split last count as near to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from queryard.core.model import Node, Split, Table

# So many nodes count as near to a split that was read by several.
READERS_KEPT = 2
# Of so many tables it is remembered which nodes have read what.
TABLES_KEPT = 1_000


class _Known(NamedTuple):
    """A table in one state of its files, and the nodes that have read each split, last ones first.

    Of a table that was only read as a whole there is one split.
    """

    fingerprint: str
    table: Table
    readers: list[tuple[str, ...]]


class SplitPlaces:
    """Changed by the coordinator alone."""

    def __init__(self) -> None:
        self._tables: dict[str, _Known] = {}
        self._nodes: dict[str, Node] = {}
        self._named: dict[str, list[str]] = {}
        """Nodes by the names that catalogs may use."""

    def joined(self, node: Node) -> None:
        self._nodes[node.id] = node
        for name in (node.id, *node.places):
            self._named.setdefault(name, []).append(node.id)

    def lost(self, node_id: str) -> None:
        node = self._nodes.pop(node_id, None)
        if node is None:
            return
        for name in (node.id, *node.places):
            self._named[name].remove(node_id)
        for known in self._tables.values():
            for index, readers in enumerate(known.readers):
                if node_id in readers:
                    known.readers[index] = tuple(one for one in readers if one != node_id)

    def scanned(self, fingerprint: str, table: Table) -> Table:
        """A table as the planner has split it, with the nodes that are near to each split."""
        known = self._tables.get(table.name)
        if known is None or (known.fingerprint, len(known.readers)) != (
            fingerprint,
            len(table.splits),
        ):
            # What read the whole of it has read each split.
            readers = known.readers[0] if known is not None and len(known.readers) == 1 else ()
            known = self._keep(_Known(fingerprint, table, [readers] * len(table.splits)))
        return self._placed(known)

    def read_as_whole(self, name: str, size_bytes: float) -> Table:
        """A table that DuckDB reads by itself, with as many splits as are known of it."""
        known = self._tables.get(name)
        if known is None:
            known = self._keep(_Known("", Table(name, (Split(size_bytes),)), [()]))
        return self._placed(known)

    def _keep(self, known: _Known) -> _Known:
        self._tables[known.table.name] = known
        if len(self._tables) > TABLES_KEPT:
            del self._tables[next(iter(self._tables))]
        return known

    def _placed(self, known: _Known) -> Table:
        splits = tuple(
            Split(split.bytes, self._living(split.nodes) or readers)
            for split, readers in zip(known.table.splits, known.readers, strict=True)
        )
        return Table(known.table.name, splits)

    def _living(self, names: Iterable[str]) -> tuple[str, ...]:
        found = {node: None for name in names for node in self._named.get(name, ())}
        return tuple(found)

    def cached(self) -> dict[str, dict[str, tuple[int, int]]]:
        """By node and table: how many splits the node has read last, and how many there are."""
        found: dict[str, dict[str, tuple[int, int]]] = {}
        for name, known in self._tables.items():
            counts = Counter(node for readers in known.readers for node in readers)
            for node, count in counts.items():
                found.setdefault(node, {})[name] = (count, len(known.readers))
        return found

    def note_read(self, table: str, split: int | None, node: str) -> None:
        """A node reads a split, or (None) the whole of a table."""
        known = self._tables.get(table)
        if known is None or node not in self._nodes:
            return
        for index in range(len(known.readers)) if split is None else (split,):
            if index < len(known.readers):
                others = (one for one in known.readers[index] if one != node)
                known.readers[index] = (node, *others)[:READERS_KEPT]


def split_of(index: int, scans: Iterable[str], tables: Mapping[str, Table]) -> tuple[str, int]:
    """The table and the split that a map task reads, of tables that are read one after another.

    >>> tables = {"a": Table("a", (Split(), Split())), "b": Table("b", (Split(),))}
    >>> [split_of(index, ("a", "b"), tables) for index in (0, 1, 2)]
    [('a', 0), ('a', 1), ('b', 0)]
    """
    for name in scans:
        count = len(tables[name].splits)
        if index < count:
            return name, index
        index -= count
    raise IndexError(f"no table of {tuple(scans)} has a split for task {index}")
