"""Shared scans beside plain DuckDB."""
