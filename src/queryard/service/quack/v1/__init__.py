"""Version 1 of the protocol, as DuckDB 1.5 speaks it: messages, types and rows as bytes, no I/O."""
