"""Clusters written as one word, and where the splits of tables are placed on them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from queryard.core.amounts import parse_bytes
from queryard.core.errors import InvalidModel, InvalidRecord
from queryard.core.model import UNBOUNDED, Node, Split, Table

REPLICATION = 3
# As many as can be simulated.
MOST_NODES = 100_000

_GROUP = re.compile(
    r"\s*(?:(?P<count>\d+)\s*x\s*)(?P<slots>\d+)"
    r"(?:\s*@\s*(?P<map>[\d.]+)(?:\s*/\s*(?P<reduce>[\d.]+))?)?"
    r"(?:\s*:\s*(?P<memory>[^,]+?))?\s*"
)
_GRAMMAR = (
    "write groups of nodes as COUNTxSLOTS, with @SPEED and :MEMORY where they matter, such as "
    "16x12 or 4x4,2x8@0.5:24GB"
)


def parse_nodes(text: str) -> tuple[Node, ...]:
    """Nodes from groups such as `16x12`: COUNTxSLOTS[@SPEED[/REDUCE_SPEED]][:MEMORY].

    >>> [(n.id, n.slots, n.map_speed) for n in parse_nodes("2x4,1x8@0.5")]
    [('n1', 4, 1.0), ('n2', 4, 1.0), ('n3', 8, 0.5)]
    """
    nodes: list[tuple[int, float, float, float]] = []
    for part in text.split(","):
        group = _GROUP.fullmatch(part)
        if group is None:
            raise InvalidRecord(f"nodes {text!r}: cannot read {part.strip()!r}; {_GRAMMAR}")
        try:
            map_speed = float(group["map"] or 1)
            reduce_speed = float(group["reduce"] or map_speed)
            memory_bytes = parse_bytes(group["memory"]) if group["memory"] else UNBOUNDED
        except (ValueError, InvalidRecord) as error:
            raise InvalidRecord(f"nodes {text!r}: {error}; {_GRAMMAR}") from error
        shape = (int(group["slots"]), memory_bytes, map_speed, reduce_speed)
        count = int(group["count"])
        if len(nodes) + count > MOST_NODES:
            problem = f"{part.strip()!r} makes more than {MOST_NODES:,} nodes; give them more slots"
            raise InvalidRecord(f"nodes {text!r}: {problem}")
        nodes.extend([shape] * count)
    if not nodes:
        raise InvalidRecord(f"nodes {text!r}: there is no node; {_GRAMMAR}")
    try:
        return tuple(
            Node(name, *shape) for name, shape in zip(numbered("n", len(nodes)), nodes, strict=True)
        )
    except InvalidModel as error:
        raise InvalidRecord(f"nodes {text!r}: {error}") from error


def numbered(prefix: str, count: int) -> list[str]:
    """Numbered ids in alphabetical order, since ties are settled by id.

    >>> numbered("n", 10)[:2]
    ['n01', 'n02']
    """
    width = len(str(count))
    return [f"{prefix}{number:0{width}}" for number in range(1, count + 1)]


def place_table(
    name: str,
    sizes: Sequence[float],
    nodes: Sequence[Node],
    seed: int | str,
    replication: int = REPLICATION,
) -> Table:
    """A table with each split on `replication` nodes, drawn from the seed and the table's name.

    The name is part of the seed, so that adding a table does not move the splits of others.
    """
    rng = Random(f"{seed}/{name}")
    ids = [node.id for node in nodes]
    copies = min(replication, len(ids))
    return Table(name, tuple(Split(size, tuple(rng.sample(ids, copies))) for size in sizes))


def equal_splits(size_bytes: float, split_bytes: float) -> list[float]:
    """A table's bytes in as few equal splits as keep each within `split_bytes`."""
    count = max(1, -int(-size_bytes // split_bytes))
    return [size_bytes / count] * count
