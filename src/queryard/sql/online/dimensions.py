"""What the sampled table is joined with: each block is made once, filtered and projected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from queryard.sql.planner.algebra import Join, Node, Scan, Shared, inputs
from queryard.sql.planner.cardinality import Cardinality
from queryard.sql.planner.contract import CatalogLike

from .plan import Dimension
from .rendering import Rendering


class Dimensions:
    """The blocks beside the path to the sampled table, in an order in which they can be made."""

    def __init__(self, catalog: CatalogLike, cardinality: Cardinality, prefix: str) -> None:
        self.found: list[Dimension] = []
        self.placed: dict[int, str] = {}
        self._nodes: list[Node] = []  # kept, so that no other node has the identity of one
        self._rendering = Rendering(catalog, self.placed)
        self._cardinality = cardinality
        self._prefix = prefix

    def beside(self, path: Sequence[Node]) -> None:
        """Make a dimension of every other side of the joins on a path."""
        on_path = {id(node) for node in path}
        for node in reversed(path):
            if isinstance(node, Join):
                for side in inputs(node):
                    if id(side) not in on_path:
                        self._add(side)

    def _add(self, node: Node) -> None:
        if id(node) in self.placed:
            return
        for shared in _shared_within(node):
            self._add(shared)
        if id(node) in self.placed:
            return
        name = f"{self._prefix}{len(self.found) + 1}"
        self.found.append(
            Dimension(
                name,
                self._rendering.sql(node),
                tuple(dict.fromkeys(_tables(node))),
                self._cardinality.rows(node),
                self._cardinality.bytes(node),
            )
        )
        self._nodes.append(node)
        self.placed[id(node)] = f"SELECT * FROM {name}"


def _shared_within(node: Node) -> Iterator[Shared]:
    for child in inputs(node):
        yield from _shared_within(child)
        if isinstance(child, Shared):
            yield child


def _tables(node: Node) -> Iterator[str]:
    if isinstance(node, Scan):
        yield node.table
    for child in inputs(node):
        yield from _tables(child)
