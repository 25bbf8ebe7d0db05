"""Numbers of any length: DECIMAL, HUGEINT and their kin, as PostgreSQL's type numeric.

In binary, a number is its digits in groups of four, from the first group that is not zero to the
last. The groups of a whole column are found by long division on limbs of 32 bits.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .cells import Cells, cannot, chosen, is_text, matrix, nulls_of

_NEGATIVE = 0x4000
# An Arrow decimal of up to 38 digits, and up to three zeros behind it, fits into five limbs.
_LIMBS, _GROUPS = 5, 11


def numeric_text(column: Any) -> Any:
    """Plain digits: Arrow would write small values with an exponent."""
    if is_text(column.type) or pa.types.is_integer(column.type):
        return column.cast(pa.string())
    scale = column.type.scale
    if scale <= 6:
        return column.cast(pa.string())
    whole = _rescaled(column).cast(pa.string())
    negative = pc.starts_with(whole, "-")
    digits = pc.utf8_lpad(pc.utf8_ltrim(whole, "-"), scale + 1, "0")
    before = pc.utf8_slice_codeunits(digits, 0, -scale)
    after = pc.utf8_slice_codeunits(digits, -scale)
    sign = pc.if_else(negative, "-", "")
    return pc.binary_join_element_wise(pc.binary_join_element_wise(sign, before, ""), after, ".")


def _rescaled(column: Any) -> Any:
    """The same digits without a decimal point."""
    validity, data = column.buffers()
    kind = pa.decimal128(38, 0)
    return pa.Array.from_buffers(kind, len(column), [validity, data], offset=column.offset)


def numeric_binary(column: Any) -> Cells:
    if is_text(column.type):
        rows = [None if value is None else numeric_bytes(Decimal(value)) for value in _py(column)]
        return pa.array(rows, pa.binary())
    if pa.types.is_integer(column.type):
        column = column.cast(pa.decimal128(38, 0))
    if not pa.types.is_decimal128(column.type):
        raise cannot(column, 1700, "binary")
    scale = column.type.scale
    limbs, negative = _limbs(column)
    _multiply(limbs, 10 ** (-scale % 4))
    groups = _groups_of(limbs)
    behind = -(-scale // 4)
    number = len(column)
    filled = groups != 0
    some = filled.any(axis=1)
    first = np.where(some, filled.argmax(axis=1), 0)
    last = np.where(some, _GROUPS - filled[:, ::-1].argmax(axis=1), 0)
    heads = np.zeros((number, 4), dtype=np.int64)
    heads[:, 0] = last - first
    heads[:, 1] = np.where(some, _GROUPS - behind - 1 - first, 0)
    heads[:, 2] = np.where(negative & some, _NEGATIVE, 0)
    heads[:, 3] = scale
    places = np.arange(_GROUPS)
    kept = (places >= first[:, None]) & (places < last[:, None])
    keep = np.concatenate([np.ones((number, 4), dtype=bool), kept], axis=1)
    words = matrix(np.concatenate([heads, groups], axis=1).reshape(-1), ">u2")
    cells = chosen(words.reshape(number, -1), np.repeat(keep, 2, axis=1))
    nulls = nulls_of(column)
    return cells if nulls is None else pc.if_else(pa.array(nulls), None, cells)


def _limbs(column: Any) -> tuple[list[np.ndarray], np.ndarray]:
    """The absolute values in limbs of 32 bits, the lowest first; and which are negative."""
    data = np.frombuffer(column.buffers()[1], dtype="<u4").reshape(-1, 4)
    words = data[column.offset : column.offset + len(column)].astype(np.uint64)
    nulls = nulls_of(column)
    if nulls is not None:
        words[nulls] = 0
    negative = words[:, 3] >= 1 << 31
    limbs: list[np.ndarray] = []
    carry = negative.astype(np.uint64)
    for place in range(4):
        # The negative of a number in two's complement: all bits turned, and 1 added.
        limb = np.where(negative, words[:, place] ^ 0xFFFFFFFF, words[:, place]) + carry
        limbs.append(limb & 0xFFFFFFFF)
        carry = limb >> np.uint64(32)
    limbs.append(carry)
    return limbs, negative


def _multiply(limbs: list[np.ndarray], by: int) -> None:
    if by == 1:
        return
    carry = np.zeros(len(limbs[0]), dtype=np.uint64)
    for place, limb in enumerate(limbs):
        product = limb * np.uint64(by) + carry
        limbs[place] = product & 0xFFFFFFFF
        carry = product >> np.uint64(32)


def _groups_of(limbs: list[np.ndarray]) -> np.ndarray:
    """Four digits per group, the highest group first."""
    number = len(limbs[0])
    groups = np.zeros((number, _GROUPS), dtype=np.int64)
    used = _LIMBS
    ten_thousand = np.uint64(10_000)
    for place in reversed(range(_GROUPS)):
        while used and not limbs[used - 1].any():
            used -= 1
        if not used:
            break
        rest = np.zeros(number, dtype=np.uint64)
        for limb in reversed(range(used)):
            part = (rest << np.uint64(32)) | limbs[limb]
            limbs[limb] = part // ten_thousand
            rest = part - limbs[limb] * ten_thousand
        groups[:, place] = rest
    return groups


def numeric_bytes(value: Decimal) -> bytes:
    """One number in binary.

    >>> numeric_bytes(Decimal("-12345.67")).hex()
    '0003000140000002000109291a2c'
    """
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{value} has no digits")
    scale = max(-exponent, 0)
    whole = int("".join(map(str, digits))) * 10 ** (max(exponent, 0) + -scale % 4)
    groups: list[int] = []
    while whole:
        whole, group = divmod(whole, 10_000)
        groups.insert(0, group)
    weight = len(groups) - -(-scale // 4) - 1 if groups else 0
    negative = _NEGATIVE if sign and groups else 0
    while groups and groups[-1] == 0:
        groups.pop()
    words = [len(groups), weight & 0xFFFF, negative, scale, *groups]
    return np.array(words, dtype=">u2").tobytes()


def _py(column: Any) -> list[Any]:
    found: list[Any] = column.to_pylist()
    return found
