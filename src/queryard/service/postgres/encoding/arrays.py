"""Lists of plain values as PostgreSQL's arrays of one dimension.

The elements of all lists of a column are one Arrow array. They are encoded as a column, and the
bytes of a list are those of its elements, which lie one behind another.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import oids
from .cells import Cells, as_binary, binary, cannot, matrix, nulls_of, offsets_and_data, offsets_of
from .values import binary_values, lengths_and_values, plain, text_values

# An element in these types never needs quotes.
_BARE = frozenset(
    {*oids.SIGNED, *oids.UNSIGNED, oids.BOOL, oids.FLOAT4, oids.FLOAT8, oids.NUMERIC, oids.UUID}
)
_QUOTED = r'^$|^[nN][uU][lL][lL]$|[{},"\\\s]'


def element_of(oid: int) -> int | None:
    """The type of the elements, if it is a type of arrays."""
    return oids.ELEMENTS.get(oid) or oids.VECTORS.get(oid)


def _elements(column: Any, oid: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """All elements, where each list begins among them, and which elements are NULL."""
    kind = column.type
    if pa.types.is_fixed_size_list(kind):
        column = column.cast(pa.list_(kind.value_type))
    elif not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        raise cannot(column, oid, "any")
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    elements = plain(column.flatten())
    nulls = nulls_of(elements)
    return elements, offsets_of(lengths), np.zeros(len(elements), bool) if nulls is None else nulls


def array_text(column: Any, oid: int, zone: str) -> Any:
    element = element_of(oid)
    assert element is not None
    elements, starts, _ = _elements(column, oid)
    written = text_values(elements, element, zone)
    if element not in _BARE:
        written = _quoted(written)
    written = pc.fill_null(written.cast(pa.string()), "NULL")
    lists = pa.ListArray.from_arrays(pa.array(starts, pa.int32()), written)
    if oid in oids.VECTORS:
        joined = pc.binary_join(lists, " ")
    else:
        joined = pc.binary_join_element_wise("{", pc.binary_join(lists, ","), "}", "")
    nulls = nulls_of(column)
    return joined if nulls is None else pc.if_else(pa.array(nulls), None, joined)


def _quoted(written: Any) -> Any:
    written = written.cast(pa.string())
    needs = pc.match_substring_regex(written, _QUOTED)
    if not pc.any(needs).as_py():
        return written
    escaped = pc.replace_substring(pc.replace_substring(written, "\\", "\\\\"), '"', '\\"')
    return pc.if_else(needs, pc.binary_join_element_wise('"', escaped, '"', ""), written)


def array_binary(column: Any, oid: int) -> Cells:
    element = element_of(oid)
    assert element is not None
    elements, starts, nulls = _elements(column, oid)
    some = bool(nulls.any())
    lengths, values = lengths_and_values(binary_values(elements, element), nulls if some else None)
    joined = pc.binary_join_element_wise(as_binary(matrix(lengths, ">i4")), values, b"")
    offsets, data = offsets_and_data(joined)
    bodies = binary(offsets[starts], data)
    heads = _heads(starts, nulls, element, first=0 if oid in oids.VECTORS else 1)
    cells = pc.binary_join_element_wise(heads, bodies, b"")
    missing = nulls_of(column)
    return cells if missing is None else pc.if_else(pa.array(missing), None, cells)


def _heads(starts: np.ndarray, nulls: np.ndarray, element: int, first: int) -> Any:
    """Dimensions, whether an element is NULL, the type; of a list that has elements, their
    number and the first index as well.
    """
    counts = np.diff(starts)
    before = np.zeros(len(nulls) + 1, np.int64)
    np.cumsum(nulls, out=before[1:])
    has_null = (before[starts[1:]] - before[starts[:-1]]) > 0
    words = np.zeros((len(counts), 5), np.int64)
    words[:, 0] = counts > 0
    words[:, 1] = has_null
    words[:, 2] = element
    words[:, 3] = counts
    words[:, 4] = first
    rows = matrix(words.reshape(-1), ">i4").reshape(len(counts), 20)
    lengths = np.where(counts > 0, 20, 12)
    keep = np.arange(20) < lengths[:, None]
    return binary(offsets_of(lengths), rows[keep])
