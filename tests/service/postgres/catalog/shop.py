"""A small catalog whose answers are known; `fixtures/shop.sql` is the same for PostgreSQL."""

from __future__ import annotations

from queryard.service.postgres.catalog import CatalogFacts, ColumnFacts, KeyFacts, TableFacts

CUSTOMERS = TableFacts(
    "main",
    "customers",
    (
        ColumnFacts("id", "INTEGER", not_null=True),
        ColumnFacts("name", "VARCHAR", not_null=True, default="'x'::text"),
        ColumnFacts("score", "DOUBLE"),
    ),
    (
        KeyFacts("primary", "customers_pkey", ("id",)),
        KeyFacts("unique", "customers_name_key", ("name",)),
    ),
    rows=3,
    bytes=16384,
    writable=True,
)
ORDERS = TableFacts(
    "main",
    "orders",
    (
        ColumnFacts("id", "BIGINT", not_null=True),
        ColumnFacts("customer_id", "INTEGER"),
        ColumnFacts("amount", "DOUBLE", comment="in euro"),
        ColumnFacts("day", "DATE"),
        ColumnFacts("note", "VARCHAR"),
        ColumnFacts("ts", "TIMESTAMP"),
        ColumnFacts("tz", "TIMESTAMP WITH TIME ZONE"),
        ColumnFacts("price", "DECIMAL(10,2)"),
        ColumnFacts("ok", "BOOLEAN"),
        ColumnFacts("tags", "VARCHAR[]"),
        ColumnFacts("nums", "INTEGER[]"),
        ColumnFacts("r", "FLOAT"),
        ColumnFacts("s", "SMALLINT"),
        ColumnFacts("tm", "TIME"),
        ColumnFacts("u", "UUID"),
        ColumnFacts("j", "JSON"),
        ColumnFacts("b", "BLOB"),
    ),
    (
        KeyFacts("primary", "orders_pkey", ("id",)),
        KeyFacts(
            "foreign",
            "orders_customer_id_fkey",
            ("customer_id",),
            ("main", "customers"),
            ("id",),
        ),
        KeyFacts(
            "check",
            "orders_id_check",
            ("id",),
            condition="(id > 0)",
        ),
    ),
    rows=1000,
    bytes=65536,
    comment="All orders",
    writable=True,
)
V_ORDERS = TableFacts(
    "main",
    "v_orders",
    (ColumnFacts("id", "BIGINT"), ColumnFacts("amount", "DOUBLE")),
    view=True,
    definition="CREATE VIEW v_orders AS SELECT id, amount FROM orders;",
    writable=True,
)
BIG_TABLE = TableFacts(
    "sales",
    "Big Table",
    (ColumnFacts("a", "INTEGER", not_null=True), ColumnFacts("B", "VARCHAR", not_null=True)),
    (KeyFacts("primary", "Big Table_pkey", ("a", "B")),),
    writable=True,
)
SHOP = CatalogFacts((CUSTOMERS, ORDERS, V_ORDERS, BIG_TABLE), database="postgres", user="postgres")
