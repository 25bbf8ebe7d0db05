"""Scans that queries share, beside plain DuckDB."""
