"""Formulas over estimates, evaluated on many rows at once (`sql.online.formulas`).

NULL is what it is in SQL. What has no number, as the logarithm of 0 or a division by 0, is infinite
or not a number, and has no estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_DOUBLE_DIGITS = 15
NO_NUMBER = pa.scalar(None, pa.float64())
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
    "/": pc.divide,
    "power": pc.power,
    "negative": pc.negate,
    "abs": pc.abs,
    "sqrt": pc.sqrt,
    "ln": pc.ln,
    "exp": pc.exp,
    "coalesce": pc.coalesce,
    "greatest": pc.max_element_wise,
    "least": pc.min_element_wise,
    "=": pc.equal,
    "<>": pc.not_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    "and": pc.and_kleene,
    "or": pc.or_kleene,
    "not": pc.invert,
    "is null": pc.is_null,
}


def evaluated(formula: tuple[Any, ...], columns: Mapping[str, Any]) -> Any:
    """An array, or a scalar if the formula names no column.

    >>> half = ("/", ("column", "a"), ("number", 2.0))
    >>> evaluated(half, {"a": pa.array([1.0, None])}).to_pylist()
    [0.5, None]
    """
    name, *given = formula
    if name == "column":
        return columns[given[0]]
    if name == "number":
        return pa.scalar(given[0], pa.float64())
    if name == "null":
        return NO_NUMBER
    values = [evaluated(each, columns) for each in given]
    if name == "if":
        condition, value, otherwise = values
        return pc.if_else(pc.fill_null(condition, False), value, otherwise)
    if name == "nullif":
        return without(*values)
    if name == "as number":
        return pc.cast(values[0], pa.float64())
    return _FUNCTIONS[name](*values)


def evaluated_rows(formula: tuple[Any, ...], columns: Mapping[str, Any], count: int) -> Any:
    """The same, as an array of so many rows in any case."""
    found = evaluated(formula, columns)
    return pa.repeat(found, count) if isinstance(found, pa.Scalar) else found


def without(values: Any, unwanted: Any) -> Any:
    """The values, NULL where they are equal to another one.

    >>> without(pa.array([0.0, 3.0]), pa.scalar(0.0)).to_pylist()
    [None, 3.0]
    """
    return pc.if_else(pc.fill_null(pc.equal(values, unwanted), False), NO_NUMBER, values)


def typed(values: Any, wanted: Any) -> Any:
    """Numbers in the type of the exact answer, rounded; NULL where they are beyond it.

    >>> typed(pa.array([1.26, 1e9, None]), pa.decimal128(5, 1)).to_pylist()
    [Decimal('1.3'), None, None]
    >>> typed(pa.array([2.7, -1.0]), pa.uint8()).to_pylist()
    [3, None]
    """
    if pa.types.is_floating(wanted):
        return values.cast(wanted)
    if pa.types.is_decimal(wanted):
        digits, most = wanted.scale, 10.0 ** (wanted.precision - wanted.scale)
        least = -most
    else:
        bits, signed = wanted.bit_width, pa.types.is_signed_integer(wanted)
        digits, most = 0, 2.0 ** (bits - 1 if signed else bits)
        least = -most - 1.0 if signed else -1.0
    rounded = pc.round(values, digits) if digits <= _DOUBLE_DIGITS else values
    fits = pc.and_(pc.less(rounded, most), pc.greater(rounded, least))
    kept = pc.if_else(pc.fill_null(fits, False), rounded, NO_NUMBER)
    return kept.cast(wanted, safe=False)
