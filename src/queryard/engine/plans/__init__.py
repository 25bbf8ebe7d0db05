"""DuckDB's plans as trees, and what their operators do: rows, values, sizes of joins."""
