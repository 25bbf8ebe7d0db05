"""The SQL of groupings: in one go, in parts, and the merge of parts."""

from __future__ import annotations

from collections.abc import Sequence

from .algebra import Aggregate
from .cardinality import Cardinality
from .fragment import Wrap
from .oracle import Field


def full_grouping(node: Aggregate) -> Wrap:
    """All rows of every group are in the task."""
    types = _types(node)
    items = [f"{source} AS {name}" for name, source in node.keys]
    items += [f"CAST({call.text()} AS {types[call.out]}) AS {call.out}" for call in node.calls]
    return _select(items, "", [source for _, source in node.keys])


def partial_grouping(node: Aggregate) -> Wrap:
    """The rows of a group are spread over tasks; each gives partial results."""
    items = [f"{source} AS {name}" for name, source in node.keys]
    items += [f"{sql} AS {name}" for call in node.calls for name, sql in call.partial()]
    return _select(items, "", [source for _, source in node.keys])


def partial_fields(node: Aggregate, cardinality: Cardinality) -> tuple[Field, ...]:
    """The columns of `partial_grouping`."""
    sources = {field.name: field.type for field in node.child.fields}
    fields = [Field(name, sources[source]) for name, source in node.keys]
    pairs = [pair for call in node.calls for pair in call.partial()]
    types = cardinality.oracle.types([sql for _, sql in pairs], node.child.fields)
    fields += [Field(name, found) for (name, _), found in zip(pairs, types, strict=True)]
    return tuple(fields)


def merging(node: Aggregate) -> Wrap:
    """Partial results of a group are together; one row comes of them."""
    types = _types(node)
    keys = [name for name, _ in node.keys]
    items = [*keys]
    items += [f"CAST({call.merge()} AS {types[call.out]}) AS {call.out}" for call in node.calls]
    return _select(items, _centres(node), keys)


def combining(node: Aggregate, fields: Sequence[Field]) -> Wrap:
    """Some partial results of a group are together; one partial result comes of them."""
    types = {field.name: field.type for field in fields}
    keys = [name for name, _ in node.keys]
    pairs = [pair for call in node.calls for pair in call.combine()]
    items = [*keys, *(f"CAST({sql} AS {types[name]}) AS {name}" for name, sql in pairs)]
    return _select(items, _centres(node), keys)


def _centres(node: Aggregate) -> str:
    """The columns that a merge needs beside partial results."""
    keys = ", ".join(name for name, _ in node.keys)
    centres = [c for c in (call.centre(keys) for call in node.calls) if c is not None]
    return ", ".join(f"{sql} AS {name}" for name, sql in centres)


def _types(node: Aggregate) -> dict[str, str]:
    return {field.name: field.type for field in node.fields}


def _select(items: list[str], further: str, keys: list[str]) -> Wrap:
    """Group rows by keys, after giving them the `further` columns."""
    grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
    # Grouping without keys or aggregates still is one row, which count(*) makes.
    chosen = ", ".join(items) or "count(*) AS one"
    if further:
        return Wrap(f"SELECT {chosen} FROM (SELECT *, {further} FROM ", f"){grouped}")
    return Wrap(f"SELECT {chosen} FROM ", grouped)
