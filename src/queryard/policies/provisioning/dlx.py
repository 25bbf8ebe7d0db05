"""As many nodes as the deadlines need."""

from __future__ import annotations

from queryard.core.state import State

from .periodic import Periodic, nodes_to_finish


class MeetDeadlines(Periodic):
    """Have as many nodes as meet all deadlines. O(queries · log) per period.

    The text (POSUM Table 4.1, DLX) gives no formula: here queries with a deadline are served
    earliest first and nothing else is counted, so that by each deadline d the slots must do
    what is due by then, Σ WRD / (d - now). With 400 core-seconds due in 50 s and 200 more in
    100 s it takes max(8, 6) slots: two nodes of 4.
    """

    name = "dlx"
    citation = "POSUM Table 4.1 (DLX)"

    def wanted(self, state: State) -> int:
        due = [
            (query.deadline, query.left_s)
            for query in state.queries.values()
            if query.deadline is not None
        ]
        return nodes_to_finish(due, state, self.period_s)
