"""DuckDB instances without threads of their own, and what they have attached."""
