"""Equal sharing, as it would have gone: what the order `srpt-fair` measures itself by."""

from __future__ import annotations

from heapq import heappop, heappush


class Alike:
    """A leaf in which all queries have equal parts of its slots, imagined beside the real one.

    `level_s` is the work that a query present from the beginning would have had. A query ends
    here when the level has risen by its work since it came. O(log n) per change.

    >>> alike = Alike()
    >>> alike.expect(1, 10.0); alike.expect(2, 4.0); alike.serve(6.0); alike.level_s
    3.0
    >>> alike.serve(4.0); alike.level_s  # the second ended at 4: the first is alone
    6.0
    """

    __slots__ = ("_came", "_ends", "_line", "_works", "level_s")

    def __init__(self) -> None:
        self.level_s = 0.0
        # By query: the level at which it came, its work, and the level at which it will end.
        self._came: dict[int, float] = {}
        self._works: dict[int, float] = {}
        self._ends: dict[int, float] = {}
        self._line: list[tuple[float, int]] = []

    def expect(self, uid: int, work_s: float) -> None:
        """A query comes with this work, or is expected to have another from now on."""
        if self._works.get(uid) == work_s:
            return
        came_s = self._came.setdefault(uid, self.level_s)
        self._works[uid] = work_s
        self._ends.pop(uid, None)
        if came_s + work_s > self.level_s:
            self._ends[uid] = came_s + work_s
            heappush(self._line, (came_s + work_s, uid))

    def came_s(self, uid: int) -> float:
        """The level at which a query came."""
        return self._came[uid]

    def serve(self, work_s: float) -> None:
        """So much work was done in all."""
        line, ends = self._line, self._ends
        while line and work_s > 0:
            end_s, uid = line[0]
            if ends.get(uid) != end_s:
                heappop(line)  # its work was expected anew
                continue
            needed_s = (end_s - self.level_s) * len(ends)
            if needed_s > work_s:
                self.level_s += work_s / len(ends)
                return
            work_s -= needed_s
            self.level_s = end_s
            del ends[uid]
            heappop(line)

    def forget(self, active: set[int]) -> None:
        """Keep only these queries, and those that would still be here."""
        for uid in self._came.keys() - active - self._ends.keys():
            del self._came[uid], self._works[uid]

    def __len__(self) -> int:
        return len(self._came)

    def fork(self) -> Alike:
        copy = Alike()
        copy.level_s = self.level_s
        copy._came = self._came.copy()
        copy._works = self._works.copy()
        copy._ends = self._ends.copy()
        copy._line = self._line.copy()
        return copy
