"""Random queries over skewed and correlated tables, from a seed.

Seeds 0 to 9 are for development, 100 and more for reporting. The tables are the same for all.
Each shape is drawn twice, and the first again with other literals: about a hundred queries.
With one thread at size 1 those of seeds 0 and 2 to 5 took 10 ms to 3 s when they were checked.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from . import drawn_joins  # noqa: F401  its shapes register themselves
from .drawn_parts import Draw
from .drawn_shapes import SHAPES
from .drawn_tables import MACROS, ROWS, counts, tables
from .making import claim, make_tables, size_of
from .model import Family, Progress, Purpose, Query

FIRST_REPORTED = 100
# How often each shape is drawn, and how often other literals are tried for a second text.
TEMPLATES, TRIES = 2, 5


def draw_queries(seed: int, size: float) -> tuple[Query, ...]:
    """The queries of a seed over tables of a size. No text comes twice: it would run only once."""
    found: dict[str, Query] = {}
    for name, make in SHAPES.items():
        for template in range(TEMPLATES):
            key = f"{seed}/{name}/{template}"
            # The first template of a shape has a variant, unless it has no literals.
            for literals in range(1 if template else TRIES):
                sql = make(Draw(key, f"{key}/{literals}", counts(size)))
                if sql not in found:
                    variant = "b" if literals else ""
                    query = Query(f"{name}-{template}{variant}", sql, f"{name}-{template}")
                    found[sql] = query
                    if literals:
                        break
    return tuple(found.values())


def make(folder: Path, size: float, progress: Progress) -> None:
    """Make the eight tables."""
    claim(folder, "drawn", size)
    make_tables(folder, tables(size), progress, MACROS)


def _queries(folder: Path, seed: int) -> tuple[Query, ...]:
    return draw_queries(seed, size_of(folder, "drawn"))


def family(seed: int) -> Family:
    """The queries of a seed."""
    purpose: Purpose = "reporting" if seed >= FIRST_REPORTED else "development"
    return Family(f"drawn:{seed}", purpose, tuple(ROWS), make, partial(_queries, seed=seed))
