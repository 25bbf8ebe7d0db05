"""DuckDB at work: native queries under leases, and the tasks of staged ones."""
