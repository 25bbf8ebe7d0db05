"""Past days: what each held, and its queries, page by page."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from queryard.history import Overviews

from .ended import SQL_CHARACTERS
from .visibility import Visibility

Row = Mapping[str, Any]
DAY_S = 86_400.0
# How long the sums of a day that is over are shown before they are made anew.
KEPT_S = 600.0


def bounds_of(day: str) -> tuple[float, float]:
    """The beginning and the end of a day of UTC; raises ValueError if there is no such day.

    >>> bounds_of("1970-01-02")
    (86400.0, 172800.0)
    """
    begin = datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC)
    if begin.strftime("%Y-%m-%d") != day:
        raise ValueError(f"{day!r} is no day")
    return begin.timestamp(), begin.timestamp() + DAY_S


class Archive:
    """Sums by day and tenant; those of days that are over are kept for a while."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._past: list[Row] = []
        self._until = 0.0
        self._made_at = float("-inf")

    def rows(self, reader: Overviews, now: float) -> list[Row]:
        """One row per day and tenant, up to now."""
        today = now // DAY_S * DAY_S
        with self._lock:
            if self._until != today or not 0 <= now - self._made_at < KEPT_S:
                self._past = reader.days(0.0, today)
                self._until, self._made_at = today, now
            kept = self._past
        return [*kept, *reader.days(today, now + DAY_S)]


def archive_document(rows: Iterable[Row], visibility: Visibility) -> dict[str, Any]:
    """The days on which queries ended that are seen, the latest first."""
    days: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row["day"] is not None and visibility.may_see(row["tenant"]):
            days[row["day"]].append(row)
    return {"days": [_day(day, days[day]) for day in sorted(days, reverse=True)]}


def _day(day: str, rows: list[Row]) -> dict[str, Any]:
    finished = sum(row["finished"] for row in rows)
    response_s = sum(row["response_s"] or 0.0 for row in rows)
    return {
        "day": day,
        "queries": sum(row["queries"] for row in rows),
        "failed": sum(row["failed"] for row in rows),
        "tenants": len(rows),
        "mean_response_s": round(response_s / finished, 4) if finished else None,
        "work_s": round(sum(row["work_s"] for row in rows), 3),
    }


def page_of(
    reader: Overviews, day: tuple[float, float], visibility: Visibility, limit: int, start: int
) -> dict[str, Any]:
    """Queries that ended on a day, the latest first, from the one after `start` others."""
    rows = reader.page(
        *day, visibility.tenant, limit=limit + 1, skip=start, characters=SQL_CHARACTERS
    )
    sums = reader.days(*day)
    return {
        "queries": [_query(row) for row in rows[:limit]],
        "start": start,
        "next": start + limit if len(rows) > limit else None,
        "total": sum(row["queries"] for row in sums if visibility.may_see(row["tenant"])),
    }


def _query(row: Row) -> dict[str, Any]:
    """A query in the form of a list, as `now` has it."""
    until_at = row["ended_at"] if row["started_at"] is None else row["started_at"]
    return {
        "id": row["query"],
        "sql": row["sql"],
        "tenant": row["tenant"],
        "status": row["outcome"],
        "slots": 0,
        "progress": 1.0 if row["outcome"] == "finished" else None,
        "submitted_at": _at(row["asked_at"]),
        "started_at": _at(row["started_at"]),
        "ended_at": _at(row["ended_at"]),
        "deadline_at": _at(row["deadline_at"]),
        "waited_s": round(until_at - row["asked_at"], 3),
        "predicted_work_s": row["foreseen_s"],
        "work_s": row["work_s"] or 0.0,
        "starts_in_s": None,
        "eta_s": None,
        "why": (row["error"] or "").partition("\n")[0],
    }


def _at(time: float | None) -> float | None:
    return None if time is None else round(time, 3)
