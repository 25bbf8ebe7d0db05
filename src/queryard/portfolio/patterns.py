"""Which policy was best for a queue that looked the same.

POSUM leaves this open: "remember which policy suits which queue pattern" (sizes, ratios, task
times, arrivals, deadlines). A pattern is what is left of a queue when its numbers are rounded
roughly. What was decided for a pattern is used again at once, is checked by the next decision that
is really made for it, and is forgotten when that one finds another policy.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

from queryard.core.entities import QueryState
from queryard.core.state import State

from .trials import takes_s

Pattern = tuple[Hashable, ...]

MOST = 256
"""Patterns that are remembered; the one used longest ago is forgotten."""
# A pattern for which so many decisions were wrong is not decided from memory.
DOUBT = 2
# Sizes are apart by this factor, from this many core-seconds on; and there are so many classes.
SIZE_STEP, SMALLEST_S, SIZES = 8.0, 0.1, 5
# Tenants with less of the work are all alike; so are those beyond the largest few.
LEAST_SHARE, TENANTS = 0.125, 4


def pattern_of(state: State) -> Pattern:
    """What a queue looks like: sizes, tenants, deadlines, kinds and load. O(queries)."""
    sizes: Counter[int] = Counter()
    urgency: Counter[int] = Counter()
    work_s: dict[str, float] = {}
    online = staged = 0
    queue_s = takes_s(state)
    for query in state.queries.values():
        sizes[_size(query.left_s)] += 1
        work_s[query.spec.tenant] = work_s.get(query.spec.tenant, 0.0) + query.left_s
        if query.deadline is not None:
            urgency[_urgency(query, query.deadline - state.now, queue_s)] += 1
        divisible = query.jobs[0].spec.divisible
        staged += divisible is None
        online += divisible is not None and divisible.batches > 1
    return (
        state.total_slots,
        _level(queue_s),
        tuple(_number(sizes[size]) for size in range(SIZES)),
        tuple(_number(urgency[level]) for level in range(3)),
        _number(online),
        _number(staged),
        _tenants(work_s),
    )


def _size(left_s: float) -> int:
    """The class of a query by its work.

    >>> [_size(left_s) for left_s in (0.01, 0.5, 2.0, 20.0, 1e6)]
    [0, 1, 2, 3, 4]
    """
    if left_s <= SMALLEST_S:
        return 0
    return min(SIZES - 1, 1 + int(math.log(left_s / SMALLEST_S, SIZE_STEP)))


def _number(count: int) -> int:
    """Roughly how many: none, up to 2, 8, 32 and so on.

    >>> [_number(count) for count in (0, 1, 2, 3, 8, 9, 33)]
    [0, 1, 1, 2, 2, 3, 4]
    """
    return 0 if count == 0 else 1 + math.ceil(math.log(max(count, 2) / 2, 4) - 1e-9)


def _level(seconds: float) -> int:
    """Roughly how long the queue is, in powers of four."""
    return math.floor(math.log(seconds, 4)) if seconds > 0.01 else -4


def _urgency(query: QueryState, left_s: float, queue_s: float) -> int:
    """0: it is late already, or will be; 1: the queue takes longer than is left; 2: it does not."""
    if left_s <= query.alone_left_s:
        return 0
    return 1 if left_s < queue_s else 2


def _tenants(work_s: dict[str, float]) -> Pattern:
    """The tenants with much of the work, and roughly how much of it."""
    total_s = sum(work_s.values())
    shares = {tenant: left_s / total_s for tenant, left_s in work_s.items()} if total_s else {}
    large = sorted(shares, key=lambda tenant: (-shares[tenant], tenant))[:TENANTS]
    named = sorted((t, round(2 * shares[t])) for t in large if shares[t] >= LEAST_SHARE)
    return (_number(len(work_s)), *named)


@dataclass(slots=True)
class Remembered:
    """What was decided for a pattern; how often it was found again, and how often it was wrong.

    Those of `as_good` would have done as well.
    """

    policy: str
    as_good: frozenset[str] = frozenset()
    confirmed: int = 0
    wrong: int = 0


class PatternMemory:
    """Bounded; the same calls give the same answers.

    >>> memory = PatternMemory(most=2)
    >>> memory.learn(("a",), "tls"), memory.recall(("a",))
    (True, 'tls')
    >>> memory.learn(("a",), "edf"), memory.recall(("a",))
    (False, 'edf')
    >>> memory.learn(("a",), "tls"), memory.recall(("a",))  # twice wrong: it says nothing
    (False, None)
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: OrderedDict[Pattern, Remembered] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def forget(self) -> Callable[[], None]:
        """Forget all patterns; what it returns gives them back, without those since."""
        before, self._known = self._known, OrderedDict()

        def give_back() -> None:
            self._known = before

        return give_back

    def recall(self, pattern: Pattern, current: str | None = None) -> str | None:
        """The policy that was chosen when a queue looked like this; None if it is not known.

        It is the `current` one where that did as well.
        """
        found = self._known.get(pattern)
        if found is None or found.wrong >= DOUBT:
            return None
        self._known.move_to_end(pattern)
        return current if current in found.as_good else found.policy

    def learn(self, pattern: Pattern, policy: str, as_good: Iterable[str] = ()) -> bool:
        """A decision was made for a pattern; False if another one was remembered, and was wrong.

        Policies `as_good` as the chosen one would have done as well.
        """
        if not self._most:
            return True
        alike = frozenset(as_good)
        found = self._known.get(pattern)
        if found is None:
            self._known[pattern] = Remembered(policy, alike)
            if len(self._known) > self._most:
                self._known.popitem(last=False)
            return True
        self._known.move_to_end(pattern)
        if found.policy == policy or found.policy in alike:
            found.confirmed += 1
            found.as_good = alike
            # A pattern that was right for long may be wrong again now and then.
            found.wrong = max(0, found.wrong - 1) if found.confirmed % 4 == 0 else found.wrong
            return True
        self._known[pattern] = Remembered(policy, alike, wrong=found.wrong + 1)
        return False
