"""Which queries are admitted, and how much memory they reserve."""
