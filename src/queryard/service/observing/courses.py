"""How the errors of online answers fell, of queries that ended lately."""

from __future__ import annotations

import threading
from collections import OrderedDict

from queryard.results.online import CoursePoint

from ..submitted import Submitted

KEPT = 500


class Courses:
    """Hears of the queries of a yard; what it keeps is lost with the server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_query: OrderedDict[str, tuple[CoursePoint, ...]] = OrderedDict()

    def began(self, submitted: Submitted) -> None:
        """While it runs, its own log is asked."""

    def ended(self, submitted: Submitted) -> None:
        online = submitted.ticket.request.online
        if online is None:
            return
        with self._lock:
            self._by_query[submitted.id] = online.log.course
            if len(self._by_query) > KEPT:
                self._by_query.popitem(last=False)

    def of(self, query: str) -> tuple[CoursePoint, ...]:
        """Answer by answer; none of a query that ended long ago, or answered once."""
        with self._lock:
            return self._by_query.get(query, ())
