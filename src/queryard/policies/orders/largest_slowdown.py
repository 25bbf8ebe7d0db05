"""The most slowed query first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from queryard.core.entities import Candidate
from queryard.core.lines import Line, Lines, Moving
from queryard.core.parts import QueryOrder
from queryard.core.rankings import Key, Ranking
from queryard.core.state import State

from ..checks import above_zero


class SlowdownRanking(Moving):
    """Queries by their slowdowns, which are lines: keys are (slope, time of slowdown 0)."""

    __slots__ = ("lines",)

    def __init__(self) -> None:
        super().__init__()
        self.lines = Lines()

    def _set(self, uid: int, old: Key | None, new: Key | None) -> None:
        if new is None:
            self.lines.drop(uid)
        else:
            self.lines.put(uid, Line(*new))  # type: ignore[misc]

    def fork(self) -> Self:
        copy = super().fork()
        copy.lines = self.lines.fork()
        return copy

    @property
    def is_sound(self) -> bool:
        return self.lines.is_sound and self.lines.lines == self.keys


class LargestSlowdown(QueryOrder):
    """Serve the query of the largest elapsed / max(work, MinE). O(log² n) per decision, amortised.

    Work is the estimated core-seconds of the whole query (POSUM Eq. 5.2; the text gives the
    finished form, this is the one that can be known while the query runs). Ten seconds after
    submission a query of 5 core-seconds has a slowdown of 2 and passes one of 100 with 0.1.

    Slowdowns grow at different speeds; they are compared at the time of the decision.
    """

    name = "largest-slowdown"
    citation = "POSUM §4.3.1 (LSF)"
    changes_with = frozenset({"size", "time"})

    def __init__(self, min_e_s: float = 1.0) -> None:
        self.min_e_s = above_zero("min_e_s", min_e_s)

    def ranking(self) -> SlowdownRanking:
        return SlowdownRanking()

    def key(self, candidate: Candidate, state: State) -> Line:
        query = candidate.query
        return Line(1.0 / max(query.total_s, self.min_e_s), query.submit_s)

    def key_now(self, key: Key, leaf: Sequence[Ranking], state: State) -> float:
        return -Line(*key).at(state.now)  # type: ignore[misc]

    def turns(
        self, ranking: Ranking, leaf: Sequence[Ranking], state: State
    ) -> Iterable[tuple[Key, int]]:
        assert isinstance(ranking, SlowdownRanking)
        return ranking.lines.turns(state.now)
