"""A constant and a part that grows with the input, per phase, fitted as tasks end.

What POSUM's author asked for (§5.4.1, §6). Four nested circles of tasks are kept: all, those of the
tenant, those of the class, those of the job. The widest has a line of its own; each narrower one
corrects what the wider expects, by a factor while few of its tasks are known or all have one size,
and by a line of its own once there are enough. So a new class begins with what is usual, and a job
of many tasks ends with its own times.

All fits minimise relative deviations in absolute value, so that a straggler counts no more than any
other, and what is predicted too high, which costs more, is avoided.
"""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from queryard.core.model import MAP

from .model import Seen, TaskFeatures
from .tallies import Tallies

# Below, a deviation is no longer relative to the time.
LEAST_S = 0.1
# How many tasks a circle remembers, how many it needs for a line, how far sizes must lie apart.
MEMORY, ENOUGH, APART = 256, 12, 1.5
# A correction by a factor counts as much as what the wider circle says after so many tasks, or
# sooner, if they differ by little more than this (in logarithms; that is seen from a few on).
DOUBT, AGREEMENT, FEW = 4.0, 0.1, 3
STEPS, SLACK = 12, 0.03
# So many tasks must have been seen of a place before it counts.
MANY = 20
# Nothing takes less.
TINY_S = 1e-6
# The parts of tasks: maps and reduces as a whole, and what reduces are made of.
PHASES = ("map", "reduce", "first shuffle", "shuffle", "merge", "rest")
# A circle is fitted anew when it has grown by this share.
GROWTH = 0.1

Point = tuple[float, float]
# With what its deviations are relative to.
Scaled = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Line:
    """seconds = start_s + bytes · rate, neither below 0."""

    start_s: float
    rate: float

    def __call__(self, input_bytes: float) -> float:
        return self.start_s + self.rate * input_bytes


def weighted_median(values: Iterable[tuple[float, float]]) -> float:
    """The value below which half of the weight lies, of (value, weight).

    >>> weighted_median([(1.0, 1.0), (2.0, 1.0), (9.0, 1.5)])
    2.0
    """
    ordered = sorted(values)
    half = sum(weight for _, weight in ordered) / 2
    for value, weight in ordered:
        half -= weight
        if half <= 0:
            return value
    return ordered[-1][0]


def typical(times_s: Sequence[float]) -> float:
    """The time with the least mean relative deviation from these."""
    return weighted_median((time_s, 1.0 / max(time_s, LEAST_S)) for time_s in times_s)


def fit_line(points: Sequence[Point]) -> Line:
    """The line with the least relative deviations, by weighted least squares again and again.

    >>> line = fit_line([(x, 2.0 + 0.5 * x) for x in range(1, 9)] + [(3, 60.0)])
    >>> round(line.start_s, 2), round(line.rate, 2)
    (2.0, 0.5)
    """
    flat = Line(typical([t for _, t in points]), 0.0)
    scaled = [(x, t, max(t, LEAST_S)) for x, t in points]
    candidates = [flat, *_through_zero(points)]
    line = flat
    for _ in range(STEPS):
        found = _step(scaled, line)
        if found is None or found.start_s < 0 or found.rate < 0:
            break
        line = found
        candidates.append(line)
    return min(candidates, key=lambda line: _deviation(scaled, line))


def _through_zero(points: Sequence[Point]) -> list[Line]:
    """The best line without a constant, if any task has an input."""
    sized = [(x, t) for x, t in points if x >= 1]
    if not sized:
        return []
    return [Line(0.0, weighted_median((t / x, x / max(t, LEAST_S)) for x, t in sized))]


def _deviation(points: Sequence[Scaled], line: Line) -> float:
    start_s, rate = line.start_s, line.rate
    return sum([abs(start_s + rate * x - t) / scale for x, t, scale in points])


def _step(points: Sequence[Scaled], line: Line) -> Line | None:
    """Weighted least squares, in which what the last line missed most counts least."""
    total = sx = st = sxx = sxt = 0.0
    start_s, rate = line.start_s, line.rate
    for x, t, scale in points:
        missed_s = abs(start_s + rate * x - t)
        slack_s = SLACK * scale
        weight = 1.0 / (scale * (missed_s if missed_s > slack_s else slack_s))
        weight_x = weight * x
        total += weight
        sx += weight_x
        st += weight * t
        sxx += weight_x * x
        sxt += weight_x * t
    spread = total * sxx - sx * sx
    if spread <= 1e-9 * total * sxx:
        return None
    rate = (total * sxt - sx * st) / spread
    return Line((st - rate * sx) / total, rate)


class Memory:
    """The latest points, of which those of one size do not drive out those of others.

    >>> memory = Memory()
    >>> for point in [(5.0, 1.0), *((1000.0, float(n)) for n in range(2 * MEMORY))]:
    ...     memory.add(point)
    >>> len(memory.points), memory.points[0], memory.points[-1]
    (256, (5.0, 1.0), (1000.0, 511.0))
    """

    __slots__ = ("_by_size", "_count", "_most")

    def __init__(self) -> None:
        # By the logarithm of the size.
        self._by_size: dict[int, deque[Point]] = {}
        self._count = 0
        # How many there are of the size of which there are most.
        self._most = 0

    def fork(self) -> Memory:
        fork = Memory()
        fork._by_size = {size: points.copy() for size, points in self._by_size.items()}
        fork._count, fork._most = self._count, self._most
        return fork

    def add(self, point: Point) -> None:
        size = math.frexp(point[0])[1]
        points = self._by_size.get(size)
        if points is None:
            points = self._by_size[size] = deque()
        points.append(point)
        if self._count < MEMORY:
            self._count += 1
            self._most = max(self._most, len(points))
        elif len(points) > self._most:
            points.popleft()
        else:
            max(self._by_size.values(), key=len).popleft()
            self._most = max(map(len, self._by_size.values()))

    @property
    def points(self) -> list[Point]:
        return [point for points in self._by_size.values() for point in points]


class Circle:
    """Tasks that have something in common, as (bytes, seconds); bytes unknown count as 0."""

    __slots__ = ("_factor", "_factor_at", "_fitted_at", "_line", "_memory", "_seen", "_wider")

    def __init__(self) -> None:
        self._memory = Memory()
        self._seen = 0
        self._fitted_at = 0
        self._line: Line | None = None
        # The last factor to a wider circle, of which line, and how many were seen then.
        self._factor = 1.0
        self._wider: Line | None = None
        self._factor_at = 0

    def fork(self) -> Circle:
        fork = copy.copy(self)
        fork._memory = self._memory.fork()
        return fork

    def add(self, input_bytes: float, seconds: float) -> None:
        self._memory.add((input_bytes, seconds))
        self._seen += 1

    def line(self, wider: Line | None) -> Line:
        """A line of its own if it knows enough for one, else what the wider expects, corrected."""
        own = self._own()
        if own is not None:
            return own
        if wider is None:
            return Line(typical([t for _, t in self._memory.points]), 0.0)
        if wider != self._wider or self._seen > self._factor_at * (1 + GROWTH):
            self._wider, self._factor_at = wider, self._seen
            self._factor = self._factor_to(wider)
        factor = self._factor
        return Line(wider.start_s * factor, wider.rate * factor)

    def _own(self) -> Line | None:
        if self._seen > self._fitted_at * (1 + GROWTH):
            self._fitted_at = self._seen
            points = self._memory.points
            self._line = fit_line(points) if _tells_sizes(points) else None
        return self._line

    def _factor_to(self, wider: Line) -> float:
        """How much longer its tasks take than the wider circle expects, with some doubt."""
        ratios = [max(t, TINY_S) / max(wider(x), TINY_S) for x, t in self._memory.points]
        own = weighted_median((ratio, 1.0 / ratio) for ratio in ratios)
        count = len(ratios)
        doubt = DOUBT
        if count >= FEW:
            # Tasks that agree with one another are believed sooner.
            spread = weighted_median((abs(math.log(ratio / own)), 1.0) for ratio in ratios)
            doubt *= spread / (spread + AGREEMENT)
        factor: float = own ** (count / (count + doubt))
        return factor


def _tells_sizes(points: Sequence[Point]) -> bool:
    """Whether there are enough of them, some much larger than others."""
    if len(points) < ENOUGH:
        return False
    sizes = sorted(x for x, _ in points)
    edge = min(FEW, len(sizes) // 10)
    return sizes[-1 - edge] > APART * max(sizes[edge], 1.0)


class _Phase:
    """One part of a task: its circles, by what they have in common."""

    def __init__(self) -> None:
        self._circles: dict[tuple[str, ...], Circle] = {}

    def forget(self, job: str) -> None:
        self._circles.pop(("job", job), None)

    def fork(self) -> _Phase:
        """Without the circles of jobs, from which no other job learns."""
        fork = _Phase()
        fork._circles = {
            key: circle.fork() for key, circle in self._circles.items() if key[0] != "job"
        }
        return fork

    def add(self, task: TaskFeatures, input_bytes: float, seconds: float) -> None:
        for key in _circles_of(task):
            circle = self._circles.get(key)
            if circle is None:
                circle = self._circles[key] = Circle()
            circle.add(input_bytes, seconds)

    def predict(self, task: TaskFeatures, input_bytes: float) -> float | None:
        line: Line | None = None
        for key in _circles_of(task):
            if (circle := self._circles.get(key)) is not None:
                line = circle.line(line)
        return None if line is None else line(input_bytes)


def _circles_of(task: TaskFeatures) -> list[tuple[str, ...]]:
    """From the widest to the narrowest."""
    return [
        ("all",),
        ("tenant", task.tenant),
        *([("class", task.tenant, task.class_name)] if task.class_name else []),
        ("job", task.job),
    ]


class _Places:
    """By how much maps with near, or far, input differ from what is predicted of all."""

    def __init__(self) -> None:
        self._ratios: dict[tuple[str, str, bool], deque[float]] = {}

    def fork(self) -> _Places:
        fork = _Places()
        fork._ratios = {key: ratios.copy() for key, ratios in self._ratios.items()}
        return fork

    def add(self, task: TaskFeatures, ratio: float) -> None:
        if task.is_local is not None:
            key = (task.tenant, task.class_name, task.is_local)
            self._ratios.setdefault(key, deque(maxlen=MEMORY)).append(max(ratio, TINY_S))

    def factor(self, task: TaskFeatures) -> float:
        """1 where it is not known, or not yet, whether a place makes a difference."""
        if task.is_local is None:
            return 1.0
        ratios = self._ratios.get((task.tenant, task.class_name, task.is_local), ())
        if len(ratios) < MANY:
            return 1.0
        return weighted_median((ratio, 1.0 / ratio) for ratio in ratios)


class Regression:
    """A line per phase in four circles, and a factor for the place of a map's input.

    Cost: O(256) per refit, which is due as circles grow by 10 %. No paper has such a rule.

    >>> regression = Regression()
    >>> for size in range(10, 40):
    ...     task = TaskFeatures("a", "map", "sort", input_bytes=float(size))
    ...     regression.learn(Seen(task, 5.0 + 0.1 * size))
    >>> round(regression.predict(TaskFeatures("b", "map", "sort", input_bytes=100.0)), 1)
    15.0
    """

    def __init__(self) -> None:
        self._tallies = Tallies()
        self._phases = {name: _Phase() for name in PHASES}
        self._places = _Places()

    def learn(self, seen: Seen) -> None:
        task = seen.asked
        if task.is_local is not None and (expected_s := self._anywhere(task)) is not None:
            self._places.add(task, seen.seconds / max(expected_s, TINY_S))
        self._tallies.add(seen)
        input_bytes = self._tallies.input_bytes(task) or 0.0
        self._phases[task.kind].add(task, input_bytes, seen.seconds)
        if seen.shuffle_s is not None and seen.merge_s is not None:
            rest_s = seen.seconds - seen.shuffle_s - seen.merge_s
            for name, seconds in (
                ("first shuffle" if task.is_first_wave else "shuffle", seen.shuffle_s),
                ("merge", seen.merge_s),
                ("rest", rest_s),
            ):
                self._phases[name].add(task, input_bytes, seconds)

    def predict(self, task: TaskFeatures) -> float | None:
        expected_s = self._anywhere(task)
        return None if expected_s is None else expected_s * self._places.factor(task)

    def forget(self, job: str) -> None:
        for phase in self._phases.values():
            phase.forget(job)

    def fork(self) -> Regression:
        fork = Regression()
        fork._tallies = self._tallies.fork()
        fork._phases = {name: phase.fork() for name, phase in self._phases.items()}
        fork._places = self._places.fork()
        return fork

    def _anywhere(self, task: TaskFeatures) -> float | None:
        """What it takes, wherever it runs."""
        input_bytes = self._tallies.input_bytes(task) or 0.0
        if task.kind == MAP:
            return self._phases["map"].predict(task, input_bytes)
        whole_s = self._phases["reduce"].predict(task, input_bytes)
        # Of which there was one at least, if a reduce was seen in parts.
        shuffles = ("shuffle", "first shuffle")
        names = reversed(shuffles) if task.is_first_wave else shuffles
        known = (self._phases[name].predict(task, input_bytes) for name in names)
        shuffle_s = next((part for part in known if part is not None), None)
        parts = [self._phases[name].predict(task, input_bytes) for name in ("merge", "rest")]
        if whole_s is None or shuffle_s is None or any(part is None for part in parts):
            return whole_s
        return shuffle_s + sum(part for part in parts if part is not None)
