"""How the errors of online answers fell, and the last answers, of queries that ended lately."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import NamedTuple

from queryard.results.online import AnswerLog, CoursePoint, OnlineAnswer

from ..submitted import Submitted

KEPT = 500
# A larger answer is not kept.
MOST_BYTES = 64_000


class Course(NamedTuple):
    """Answer by answer how good they were, and the last one, unless it was large."""

    points: tuple[CoursePoint, ...] = ()
    last: OnlineAnswer | None = None


NO_COURSE = Course()


class Courses:
    """Hears of the queries of a yard; what it keeps is lost with the server."""

    def __init__(self, redacts: bool) -> None:
        """Where literals are redacted, no answers are kept."""
        self._redacts = redacts
        self._lock = threading.Lock()
        self._by_query: OrderedDict[str, Course] = OrderedDict()

    def began(self, submitted: Submitted) -> None:
        """While it runs, its own log is asked."""

    def ended(self, submitted: Submitted) -> None:
        online = submitted.ticket.request.online
        if online is None:
            return
        found = Course(online.log.course, None if self._redacts else _small(online.log))
        with self._lock:
            self._by_query[submitted.id] = found
            if len(self._by_query) > KEPT:
                self._by_query.popitem(last=False)

    def of(self, query: str) -> Course:
        """None of a query that ended long ago, or answered once."""
        with self._lock:
            return self._by_query.get(query, NO_COURSE)


def _small(log: AnswerLog) -> OnlineAnswer | None:
    """The newest answer, if keeping it takes little memory."""
    answer = log.newest
    is_small = answer is not None and answer.table.get_total_buffer_size() <= MOST_BYTES
    return answer if is_small else None
