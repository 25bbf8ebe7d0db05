"""Records queries, decisions and costs in the history."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from queryard.core.errors import QueryardError, unknown_name
from queryard.core.journal import Journal
from queryard.core.scheduler import Scheduler
from queryard.core.state import Settings
from queryard.engine.syntax.redaction import without_literals, without_values
from queryard.history import (
    AskedRow,
    CostRow,
    EndedRow,
    ForecastRow,
    History,
    HistoryReader,
    LearntRow,
    PastRow,
    Retention,
    SessionRow,
    Steps,
    file_to_write,
)
from queryard.policies import compose
from queryard.sql.catalog import Catalog
from queryard.version import __version__

from .amounts import as_bytes
from .facts import QueryFacts, Status
from .keys import KeyRecord
from .monitor import SessionReport
from .redacted_steps import without_causes
from .request import QueryRequest
from .ticket import TimedForecast

COST_EVERY_S = 10.0
# What was learnt is kept so often, and when a session ends.
LEARNT_EVERY_S = 60.0
# So often a node may be lost under a query before the query is taken for the cause.
MOST_LOSSES = 4


def history_file(given: bool | str | Path | None, catalog: Catalog) -> Path | None:
    """The history file: as given, else beside the data; None for no history."""
    if given is False:
        return None
    if given is None or given is True:
        return None if (folder := kept_in(catalog)) is None else file_to_write(folder)
    return Path(given)


def kept_in(catalog: Catalog) -> Path | None:
    """The folder beside the data in which Queryard keeps what it knows; None for data without."""
    statistics = catalog.statistics_folder
    return None if statistics is None else statistics.parent


def read_retention(given: Mapping[str, Any] | None) -> Retention | None:
    """How much of a history is kept, from `{"days": 7, "size": "200 MB"}`."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise QueryardError(
            f'retention: give days and size, as {{"days": 7, "size": "200 MB"}}, got {given!r}'
        )
    for key in given:
        if key not in ("days", "size"):
            raise QueryardError(f"retention: {unknown_name('key', str(key), ('days', 'size'))}")
    kept: dict[str, Any] = {}
    if "days" in given:
        days = kept["days"] = given["days"]
        if isinstance(days, bool) or not isinstance(days, int | float):
            raise QueryardError(f"retention: days must be a number above 0, got {days!r}")
    if "size" in given:
        kept["max_bytes"] = as_bytes(given["size"], "retention: size")
    return Retention(**kept)


class Recorder:
    """Writes rows for one session; without a file it writes none."""

    def __init__(self, file: Path | None, keep: Retention | None = None) -> None:
        self.session = uuid.uuid4().hex[:12]
        self.history = None if file is None else History.open(file, keep=keep)
        self.keys = KeyRecord(self.history)
        # Whether values that users wrote into statements are left out.
        self.redacts = False
        # Active queries that are in the history.
        self._known: set[str] = set()
        # What models had learnt when it was kept last.
        self._learnt: dict[str, Mapping[str, Any]] = {}

    def kernel(
        self, profile: Mapping[str, Any], slots: int, memory_bytes: int, slow_start: float = 1.0
    ) -> Scheduler:
        """A kernel every step of which is recorded."""
        settings = Settings(slow_start=slow_start, max_losses=MOST_LOSSES)
        if self.history is None:
            return Scheduler(compose, profile, settings)
        self.history.begin(
            SessionRow(
                session=self.session,
                began_at=time.time(),
                version=__version__,
                pid=os.getpid(),
                slots=slots,
                memory_bytes=memory_bytes,
                settings=asdict(settings),
                profile=profile,
            )
        )
        # Steps go to the history; a session that lasts for weeks must not keep them in memory.
        steps = Steps(self.history, lambda step: without_causes(step) if self.redacts else step)
        journal = Journal(asdict(settings), dict(profile), steps)
        return Scheduler(compose, profile, settings, journal)

    def asked(self, facts: QueryFacts) -> None:
        """A query enters the kernel."""
        if self.history is not None:
            self._known.add(facts.id)
            self.history.asked(self._shown(_asked(facts)))

    def ended(self, facts: QueryFacts, outcome: Status, rows: int) -> None:
        if self.history is None:
            return
        if facts.id not in self._known:
            self.asked(facts)  # it ended before it entered the kernel
        self._known.discard(facts.id)
        assert outcome in ("finished", "failed", "cancelled")
        self.history.ended(
            EndedRow(
                query=facts.id,
                time_s=facts.submitted_s if facts.ended_s is None else facts.ended_s,
                started_s=facts.started_s,
                outcome=outcome,
                error="" if facts.error is None else self._told(facts.error),
                work_s=facts.work_s,
                held_s=facts.usage.held_s,
                peak_memory_bytes=facts.peak_memory_bytes,
                rows=rows,
                burst_s=facts.usage.burst_s,
                foreseen_s=facts.prediction.work_s,
                foreseen_spread=facts.prediction.spread,
                foreseen_by=facts.prediction.by,
                foreseen_part=facts.prediction.part,
                table_bytes=facts.prediction.table_bytes,
            )
        )

    def refused(
        self, query: str, request: QueryRequest, error: BaseException, now_s: float
    ) -> None:
        """A query was refused by a limit."""
        if self.history is not None:
            self.history.asked(self._shown(_refused(query, request, now_s)))
            self.history.ended(
                EndedRow(query, now_s, None, "refused", self._told(error), 0.0, 0.0, None, 0, 0.0)
            )

    def _shown(self, row: AskedRow) -> AskedRow:
        return replace(row, sql=without_literals(row.sql)) if self.redacts else row

    def _told(self, error: BaseException) -> str:
        return without_values(str(error)) if self.redacts else str(error)

    def forecast(self, query: str, timed: TimedForecast) -> None:
        if self.history is not None:
            found = timed.forecast
            row = ForecastRow(query, timed.made_s, found.start_s, found.end_s)
            self.history.forecast(row)

    def cost(self, report: SessionReport) -> None:
        if self.history is None:
            return
        self.history.cost(
            CostRow(
                time_s=report.now_s,
                decisions=report.decisions,
                decide_s=report.decide_s,
                driver_cpu_s=report.driver_cpu_s,
                watch_cpu_s=report.watch_cpu_s,
                history_cpu_s=report.history_cpu_s,
                process_cpu_s=time.process_time(),
                rss_bytes=_resident_bytes(),
                waiting=report.waiting,
                running=report.running,
                bursts=report.bursts,
                burst_s=report.burst_s,
            )
        )

    def past(self) -> list[PastRow]:
        """What queries of earlier sessions took; reads the file."""
        if self.history is None or not self.history.file.is_file():
            return []
        with HistoryReader(self.history.file) as reader:
            return reader.past()

    def learnt(self) -> list[LearntRow]:
        """What models of earlier sessions have learnt; reads the file."""
        if self.history is None or not self.history.file.is_file():
            return []
        with HistoryReader(self.history.file) as reader:
            return reader.learnt()

    def keep_learnt(self, states: Mapping[str, Mapping[str, Any]]) -> None:
        """Keep what models have learnt, where it is more than was kept before."""
        for model, state in states.items():
            if self.history is not None and self._learnt.get(model) != state:
                self._learnt[model] = state
                self.history.learnt(LearntRow(model, time.time(), state))

    @property
    def cpu_s(self) -> float:
        return 0.0 if self.history is None else self.history.history_cpu_s

    @property
    def error(self) -> str | None:
        """Why the history is incomplete; None if it is not, and if there is none."""
        return None if self.history is None else self.history.error

    def close(self) -> None:
        if self.history is not None:
            self.history.close()


def _asked(facts: QueryFacts) -> AskedRow:
    prediction = facts.prediction
    return replace(
        _refused(facts.id, facts.request, facts.submitted_s),
        memory_bytes=facts.memory_bytes,
        predicted_work_s=prediction.work_s,
        predicted_memory_bytes=prediction.memory_bytes,
        predicted_by=prediction.by,
        twin_of=facts.shares_with,
    )


def _refused(query: str, request: QueryRequest, now_s: float) -> AskedRow:
    """A query of which nothing was predicted."""
    return AskedRow(
        query=query,
        time_s=now_s,
        sql=request.sql,
        template=request.template,
        tenant=request.tenant,
        priority=request.priority,
        deadline_s=request.deadline_s,
        plan=request.plan,
        memory_bytes=0,
        predicted_work_s=None,
        predicted_memory_bytes=None,
        predicted_by="",
        twin_of="",
    )


def _resident_bytes() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0
