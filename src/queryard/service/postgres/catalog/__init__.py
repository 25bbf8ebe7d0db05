"""PostgreSQL's catalogs as a client of the service sees them, and the answers to questions on them.

Clients ask for tables, columns, types and keys by queries on `pg_catalog` and
`information_schema`. These are answered here from plain facts about what the client may read
(`CatalogFacts`), on a small DuckDB instance that holds those facts and no data of users.
"""

from .answers import CatalogAnswer, Described, UnknownCatalogQuery
from .facts import CatalogFacts, ColumnFacts, KeyFacts, TableFacts
from .from_catalog import facts_of
from .queries import CatalogQueries

__all__ = [
    "CatalogAnswer",
    "CatalogFacts",
    "CatalogQueries",
    "ColumnFacts",
    "Described",
    "KeyFacts",
    "TableFacts",
    "UnknownCatalogQuery",
    "facts_of",
]
