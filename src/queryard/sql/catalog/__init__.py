"""Tables over files, databases and frames: what they are called, what they hold, how they split."""

from .catalog import Catalog
from .model import (
    AttachedDatabase,
    CatalogError,
    Column,
    DataFile,
    NotSplittable,
    SourceSplit,
    Table,
)
from .opening import open_catalog

__all__ = [
    "AttachedDatabase",
    "Catalog",
    "CatalogError",
    "Column",
    "DataFile",
    "NotSplittable",
    "SourceSplit",
    "Table",
    "open_catalog",
]
