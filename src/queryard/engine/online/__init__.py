"""Online queries: answers from a growing part of a table, refined until they are exact."""
