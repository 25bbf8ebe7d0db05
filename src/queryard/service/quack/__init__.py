"""Quack, DuckDB's own protocol between client and server, for clients of DuckDB 1.5."""
