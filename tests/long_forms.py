"""Short and long forms of one test, by its parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import settings


def some_of(values: Iterable[Any], number: int) -> list[Any]:
    """All values as parameters; the short form has so many of them, evenly spread.

    >>> [value if value.__class__ is int else "long" for value in some_of(range(6), 2)]
    [0, 'long', 'long', 3, 'long', 'long']
    """
    every = list(values)
    short = {round(place * len(every) / number) for place in range(number)}
    return [value if place in short else _long(value) for place, value in enumerate(every)]


def except_for(values: Iterable[Any], *long: Any) -> list[Any]:
    """All values as parameters; those named last are in the long form only.

    >>> [value if value.__class__ is str else "long" for value in except_for("abc", "b")]
    ['a', 'long', 'c']
    """
    return [_long(value) if value in long else value for value in values]


def one_each(values: Sequence[Any], ways: Sequence[Any]) -> list[Any]:
    """Each value in each way as a pair of parameters; the short form has each value in one way.

    The ways take turns, so that the short form has each of them, too.
    """
    return [
        (value, way) if place % len(ways) == number else _long((value, way))
        for (place, value), (number, way) in product(enumerate(values), enumerate(ways))
    ]


def examples(many: int) -> int:
    """How many examples hypothesis draws where the long form of a test has so many."""
    return max(many * settings.default.max_examples // 100, 3)


def _long(value: Any) -> Any:
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=pytest.mark.long)
