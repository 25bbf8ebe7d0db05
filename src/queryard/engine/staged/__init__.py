"""Staged queries at work: one DuckDB statement per task, and the rows that pass between tasks.

The driver of a query has a `StagedQuery`, each node that runs tasks of it a `StagedNode`; what
passes between them is plain data. Import from the modules: a node needs no planner.
"""
