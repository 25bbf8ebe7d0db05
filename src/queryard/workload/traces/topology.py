"""The nodes of a Hadoop cluster, from Rumen's topologies and SLS's lists of nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from queryard.core.model import UNBOUNDED, Node

from .hadoop import whole_number
from .text import fail, head, json_objects

# What a node of those days ran at a time where its file does not say: two maps and two reduces.
SLOTS = 4


def recognises(head: str) -> bool:
    begin = "".join(head.split())
    return begin.startswith(('{"rack":', '{"name":"<root>"'))


def read_nodes(file: Path) -> tuple[Node, ...]:
    """The nodes of either kind of file; the same host twice is one node."""
    found: dict[str, Node] = {}
    for line, data in json_objects(file):
        if not isinstance(data, dict) or not ("children" in data or {"rack", "nodes"} <= set(data)):
            fail(
                file,
                'is no topology: expected is Rumen\'s tree (an object with "name" and "children") '
                'or SLS\'s racks (objects with "rack" and "nodes")',
                line,
            )
        try:
            for node in _rumen(data) if "children" in data else _sls(data):
                found.setdefault(node.id, node)
        except (TypeError, RecursionError) as error:
            fail(file, f"racks and hosts are not listed as they should be ({error})", line)
    if not found:
        fail(file, "there is no node in it")
    return tuple(found.values())


def named(file: Path) -> tuple[tuple[Node, ...], tuple[str, ...]]:
    """The nodes of a file, and what to say of them."""
    nodes = read_nodes(file)
    are = "host is that" if len(nodes) == 1 else "hosts are those"
    slots = f"{SLOTS} slots each"
    if any(node.slots != SLOTS for node in nodes):
        slots += ", but for those of which it says how many vcores they have"
    return nodes, (f"the {len(nodes):,} {are} of {file.name}, with {slots}",)


def beside(file: Path) -> tuple[tuple[Node, ...], tuple[str, ...]]:
    """The nodes of the topology that lies beside a trace, named like it; and what to say of it.

    `19-jobs.trace.json.gz` has `19-jobs.topology.json.gz`.
    """
    other = file.with_name(re.sub(r"trace", "topology", file.name))
    if other == file or not other.is_file() or not recognises(head(other)):
        return (), ()
    return named(other)


def _rumen(data: Any, rack: str = "") -> Iterator[Node]:
    """Leaves of the tree are hosts, what they hang from is their rack."""
    if not isinstance(data, dict) or not isinstance(data.get("name"), str):
        raise TypeError(f'an object with a "name" is expected, got {data!s:.40}')
    name = data["name"].replace("\\", "")
    children = data.get("children") or []
    if not isinstance(children, list):
        raise TypeError(f"the children of {name} must be a list")
    if not children and name and name != "<root>":
        yield Node(name.replace("/", "-"), SLOTS, rack=rack)
    for child in children:
        yield from _rumen(child, name)


def _sls(data: dict[str, Any]) -> Iterator[Node]:
    """A rack with its nodes; some files end in an empty one."""
    if not isinstance(data["nodes"], list):
        raise TypeError(f"the nodes of {data['rack']!s:.40} must be a list")
    for node in data["nodes"]:
        if not isinstance(node, dict) or (node and not isinstance(node.get("node"), str)):
            raise TypeError(f'an object with a "node" is expected, got {node!s:.40}')
        if node.get("node"):
            cores = whole_number(node.get("vcores"))
            memory = whole_number(node.get("memory-mb"))
            yield Node(
                str(node["node"]).replace("/", "-"),
                cores if cores > 0 else SLOTS,
                memory * 2.0**20 if memory > 0 else UNBOUNDED,
                rack=str(data["rack"]),
            )
