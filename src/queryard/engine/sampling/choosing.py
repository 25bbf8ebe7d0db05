"""Which sample of a table an online query reads."""

from __future__ import annotations

from queryard.sql.catalog.catalog import Catalog
from queryard.sql.catalog.model import Table

from .blocks import random_blocks
from .copies import copy_places, find_copy
from .model import Sample


def best_sample(catalog: Catalog, table: Table, seed: int = 0) -> Sample | None:
    """The shuffled copy of a table if there is one that holds, else random blocks of it.

    None where there is neither: for text, databases and frames without a copy, and for a table
    of a single row group, or without rows.
    """
    if not table.files:
        return None
    copy = find_copy(table, copy_places(catalog, table))
    if copy is not None:
        return copy if copy.parts else None
    return random_blocks(table, seed)
