"""A live session beside plain DuckDB and beside ideals. `python -m bench.live` runs everything."""
