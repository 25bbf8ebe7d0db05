"""A simulated run put into a history, as if it had been a session."""

from __future__ import annotations

import time
from pathlib import Path

from queryard.core.journal import Journal
from queryard.history import AskedRow, EndedRow, History, SessionRow
from queryard.metrics import read_run


def keep(journal: Journal, file: Path, session: str = "abc123", late_s: float = 0.0) -> None:
    """Record a journal, with a row for every query; its ends are told `late_s` later."""
    history = History.open(file)
    row = SessionRow(
        session, time.time() - 600.0, "0.1", 1, 4, 10**9, journal.settings, journal.profile
    )
    history.begin(row)
    for step in journal.steps:
        history.step(step)
    for found in read_run(journal).queries.values():
        query = found.query
        history.asked(
            AskedRow(
                query=query.id,
                time_s=found.submit_s,
                sql=f"SELECT *\n  FROM t WHERE id = '{query.id}'",
                template="select * from t where id = ?",
                tenant=query.tenant,
                priority=query.priority,
                deadline_s=query.deadline_s,
                plan="native",
                memory_bytes=int(query.memory_bytes),
                predicted_work_s=2.0,
                predicted_memory_bytes=None,
                predicted_by="plan",
            )
        )
        if found.end_s is not None and found.outcome != "unfinished":
            history.ended(
                EndedRow(
                    query=query.id,
                    time_s=found.end_s + late_s,
                    started_s=found.start_s,
                    outcome=found.outcome,
                    error=found.cause,
                    work_s=found.slot_s,
                    held_s=found.slot_s,
                    peak_memory_bytes=None,
                    rows=1,
                    burst_s=0.0,
                )
            )
    history.close()
    assert history.error is None, history.error
