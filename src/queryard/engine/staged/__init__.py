"""Staged queries at work: one DuckDB statement a task, and the rows that pass between tasks."""

from .exchange import Exchange
from .run import JobActuals, StagedRun, TaskOutcome
from .store import MissingRows, Store

__all__ = ["Exchange", "JobActuals", "MissingRows", "StagedRun", "Store", "TaskOutcome"]
