"""As many nodes as keep slowdowns bounded."""

from __future__ import annotations

from queryard.core.state import State

from ..checks import above_zero
from .periodic import Periodic, nodes_to_finish


class BoundSlowdown(Periodic):
    """Have as many nodes as keep every bounded slowdown under a maximum. O(queries · log).

    The text (POSUM Table 4.1, MaxBSD) gives no formula: a slowdown r / max(e, MinE) of at most
    `max_slowdown` is a latest end, submission + max_slowdown · max(e, MinE), and the nodes are
    as many as meet these as deadlines. e is the *sum* of task times, so the slowdown of a
    query that ran on two slots without waiting is 0.5.
    """

    name = "maxbsd"
    citation = "POSUM Table 4.1 (MaxBSD)"

    def __init__(
        self,
        max_slowdown: float = 0.5,
        min_e_s: float = 1.0,
        period_s: float = 30.0,
        minimum: int = 1,
        maximum: int = 64,
    ) -> None:
        super().__init__(period_s, minimum, maximum)
        self.max_slowdown = above_zero("max_slowdown", max_slowdown)
        self.min_e_s = above_zero("min_e_s", min_e_s)

    def wanted(self, state: State) -> int:
        due = [
            (
                query.submit_s + self.max_slowdown * max(query.total_s, self.min_e_s),
                query.left_s,
            )
            for query in state.queries.values()
        ]
        return nodes_to_finish(due, state, self.period_s)
