"""Workloads in files: TOML or JSON in, JSON out. The format is described in docs/workloads.md.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder:
...     file = Path(folder, "tiny.toml")
...     _ = file.write_text('[[queries]]\\nid = "a"\\nmap = { tasks = 4, seconds = 2 }\\n')
...     load_workload(file).arrivals[0].work_s
8.0
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

from queryard.core.errors import InvalidModel, InvalidRecord, unknown_name
from queryard.core.model import UNBOUNDED, Node, Split, Table
from queryard.core.positions import Path, json_lines, toml_lines

from .cluster import REPLICATION, equal_splits, numbered, parse_nodes, place_table
from .fields import Fields, Source
from .model import Workload
from .read_queries import QUERY_FIELDS, read_query
from .read_tenants import read_tenants
from .write_json import to_json

WORKLOAD_FIELDS = ("name", "seed", "nodes", "tables", "tenants", "queries")
NODE_FIELDS = (
    "id",
    "count",
    "slots",
    "memory",
    "memory_bytes",
    "speed",
    "map_speed",
    "reduce_speed",
    "rack",
    "kept",
    "kept_bytes",
    "host",
)
TABLE_FIELDS = ("name", "size", "size_bytes", "splits", "split_size", "replication")
SPLIT_FIELDS = ("bytes", "nodes")


def load_workload(path: str | FilePath, nodes: Sequence[Node] = ()) -> Workload:
    """Read a workload; given `nodes` take the place of those in the file.

    They are needed here, and not only when it is run, because tables live on nodes.
    """
    file = FilePath(path)
    source, data = parse_file(file)
    top = Fields(source, (), data, "", WORKLOAD_FIELDS)
    seed = top.whole("seed", 0, least=0)
    cluster = tuple(nodes) or _read_nodes(top)
    tables = _read_tables(top, cluster, seed, check_places=not nodes and bool(cluster))
    tenants = read_tenants(top)
    by_name = {table.name: table for table in tables}
    arrivals = []
    first_seen: dict[str, Fields] = {}
    for fields in top.tables("queries", "query", "id", QUERY_FIELDS):
        for arrival in read_query(fields, by_name):
            name = arrival.query.id
            if name in first_seen:
                line = source.line_of(first_seen[name].path)
                fields.fail("id", f"the query of line {line} has the id {name!r} too")
            first_seen[name] = fields
            arrivals.append(arrival)
    if not arrivals:
        top.fail("queries", "a workload needs at least one query; add a [[queries]] table")
    return Workload(top.text("name", file.stem), tuple(arrivals), tables, cluster, tenants)


def save_workload(workload: Workload, path: str | FilePath) -> None:
    """Write a workload as JSON, so that `load_workload` gives the same one back."""
    file = FilePath(path)
    if file.suffix != ".json":
        raise InvalidRecord(f"{file}: workloads are saved as JSON; give the file the ending .json")
    file.write_text(json.dumps(to_json(workload), indent=1) + "\n", encoding="utf-8")


def _read_nodes(top: Fields) -> tuple[Node, ...]:
    if "nodes" in top and isinstance(top["nodes"], str):
        try:
            return parse_nodes(top["nodes"])
        except InvalidRecord as error:
            top.fail("nodes", str(error))
    groups = top.tables("nodes", "node", "id", NODE_FIELDS)
    total = sum(group.whole("count", 1) for group in groups)
    default_ids = iter(numbered("n", total))
    nodes: list[Node] = []
    for group in groups:
        count = group.whole("count", 1)
        ids = [next(default_ids) for _ in range(count)]
        if "id" in group:
            name = group.name("id")
            ids = numbered(name, count) if count > 1 else [name]
        speed = group.positive("speed", 1.0)
        for node_id in ids:
            if any(node.id == node_id for node in nodes):
                group.fail("id", f"two nodes have the id {node_id!r}")
            nodes.append(
                Node(
                    node_id,
                    group.whole("slots"),
                    group.bytes("memory", UNBOUNDED),
                    group.positive("map_speed", speed),
                    group.positive("reduce_speed", speed),
                    group.text("rack", ""),
                    group.bytes("kept", 0.0),
                    group.text("host", ""),
                )
            )
    return tuple(nodes)


def _read_tables(
    top: Fields, nodes: Sequence[Node], seed: int, *, check_places: bool
) -> tuple[Table, ...]:
    found: dict[str, Table] = {}
    for fields in top.tables("tables", "table", "name", TABLE_FIELDS):
        name = fields.text("name")
        if name in found:
            fields.fail("name", f"two tables are called {name!r}")
        if "splits" in fields and isinstance(fields["splits"], list):
            splits = _read_splits(fields, [node.id for node in nodes] if check_places else None)
            found[name] = Table(name, splits)
            continue
        replication = fields.whole("replication", REPLICATION, least=0)
        found[name] = place_table(name, _split_sizes(fields), nodes, seed, replication)
    return tuple(found.values())


def _split_sizes(fields: Fields) -> list[float]:
    """Two of `size`, `splits` (their number) and `split_size` say how a table is cut."""
    has_size = "size" in fields or "size_bytes" in fields
    if has_size and "splits" in fields:
        if "split_size" in fields:
            fields.fail("split_size", "follows from size and splits; give two of the three")
        count = fields.whole("splits")
        return [fields.bytes("size") / count] * count
    if "splits" in fields:
        return [fields.bytes("split_size", 0.0)] * fields.whole("splits")
    if has_size:
        split_bytes = fields.bytes("split_size")
        if split_bytes <= 0:
            fields.fail("split_size", f"must be above 0, got {fields['split_size']!r}")
        return equal_splits(fields.bytes("size"), split_bytes)
    fields.fail(None, "how large is it? give splits and split_size, or size and split_size")


def _read_splits(fields: Fields, node_ids: Sequence[str] | None) -> tuple[Split, ...]:
    """Splits written out one by one, with the nodes that hold them.

    These must be among `node_ids`, unless others than the file's nodes are used.
    """
    splits = []
    for item in fields.tables("splits", "split", "", SPLIT_FIELDS):
        holders = item.names("nodes")
        for i, name in enumerate(holders):
            if node_ids is not None and name not in node_ids:
                item.fail("nodes", unknown_name("node", name, node_ids), (i,))
        splits.append(Split(item.bytes("bytes", 0.0), holders))
    return tuple(splits)


def parse_file(file: FilePath) -> tuple[Source, Any]:
    """What a TOML or JSON file holds, and where each value of it stands."""
    readers: Mapping[str, tuple[Callable[[str], Any], Callable[[str], Mapping[Path, int]]]] = {
        ".toml": (tomllib.loads, toml_lines),
        ".json": (lambda text: json.loads(text, object_pairs_hook=_unique), json_lines),
    }
    if file.suffix not in readers:
        raise InvalidRecord(f"{file}: {unknown_name('ending', file.suffix, readers)}")
    parse, find_lines = readers[file.suffix]
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidRecord(f"{file}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise InvalidRecord(f"{file}: is not text in UTF-8 (byte {error.start})") from error
    try:
        return Source(str(file), text, find_lines), parse(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidRecord(f"{file}: not valid TOML: {error}") from error
    except json.JSONDecodeError as error:
        where = f"(at line {error.lineno}, column {error.colno})"
        raise InvalidRecord(f"{file}: not valid JSON: {error.msg} {where}") from error
    except InvalidModel as error:
        raise InvalidRecord(f"{file}: {error}") from error
    except RecursionError as error:
        raise InvalidRecord(f"{file}: is nested too deeply") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object as a dictionary, unless a key stands in it twice (TOML refuses this itself)."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise InvalidModel(f"an object has the key {key!r} twice; rename or remove one")
        found[key] = value
    return found
