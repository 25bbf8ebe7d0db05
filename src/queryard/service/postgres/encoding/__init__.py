"""Arrow columns as the bytes of PostgreSQL's rows, column by column, never value by value."""
