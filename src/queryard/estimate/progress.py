"""How far an online query will get: the curve of its progress, and the time of its batches.

The progress P(i) of batch i is the magnitude by which the answer moved, over the largest such
move; it stands for the error, lower being further along. ReLAQS §4.4 fits 1 / (A·i² + B).
Its derivation drops the noise of the batches, with which P falls as 1 / i, so both curves are
fitted and the one with the smaller residual is used. Where the engine knows what is left of the
error, that is better than P, and a random sample's own curve goes through it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Point = tuple[int, float]
# The published curve first: where both fit equally well it is used.
POWERS = (2, 1)
TINY = 1e-12
# The fit stops after so many steps, or when one brings less than this share.
STEPS = 20
ENOUGH = 1e-6
# Batches tell overhead and pace apart if their times without overhead differ by this share.
TELLING = 0.5


@dataclass(frozen=True, slots=True)
class Curve:
    """P(i) = 1 / (a·i^power + b), with the root mean square of what it misses."""

    power: int
    a: float
    b: float
    residual: float = 0.0

    def __call__(self, batch: float) -> float:
        return 1.0 / (self.a * batch**self.power + self.b)


def fit_curves(points: Sequence[Point]) -> tuple[Curve, Curve]:
    """Both curves fitted to (batch, progress) by least squares, the better one first.

    a > 0 and b >= 0, so that a curve always falls. One point leaves b = 0.

    >>> best, other = fit_curves([(i, 1 / (0.2 * i + 0.6)) for i in range(2, 8)])
    >>> best.power, round(best.a, 4), round(best.b, 4), best.residual < other.residual
    (1, 0.2, 0.6, True)
    """
    if not points:
        raise ValueError("a curve needs at least one point")
    one, two = sorted((_fit(points, power) for power in POWERS), key=lambda c: c.residual)
    return one, two


def _fit(points: Sequence[Point], power: int) -> Curve:
    xs = [float(batch) ** power for batch, _ in points]
    ps = [progress for _, progress in points]
    # With b = 0 the curve is linear in 1 / a.
    scale = sum(p / x for p, x in zip(ps, xs, strict=True)) / sum(1.0 / (x * x) for x in xs)
    falling = Curve(power, 1.0 / max(scale, TINY), 0.0)
    fits = [falling]
    start = _by_inverse(xs, ps)
    if start is not None:
        a, b = _descend(xs, ps, *start)
        if a > 0 and b >= 0:
            fits.append(Curve(power, a, b))
    best = min(fits, key=lambda curve: _squares(xs, ps, curve.a, curve.b))
    residual = math.sqrt(_squares(xs, ps, best.a, best.b) / len(points))
    return Curve(power, best.a, best.b, residual)


def _squares(xs: Sequence[float], ps: Sequence[float], a: float, b: float) -> float:
    total = 0.0
    for x, p in zip(xs, ps, strict=True):
        below = a * x + b
        if below <= TINY:
            return math.inf
        total += (p - 1.0 / below) ** 2
    return total


def _by_inverse(xs: Sequence[float], ps: Sequence[float]) -> tuple[float, float] | None:
    """A first guess: the line through 1 / p, each weighted by what it means for p."""
    weights = [p**4 for p in ps]
    inverse = [1.0 / p if p > 0 else 0.0 for p in ps]
    line = _weighted_line(xs, inverse, weights)
    if line is None or _squares(xs, ps, *line) == math.inf:
        return None
    return line


def _weighted_line(
    xs: Sequence[float], ys: Sequence[float], weights: Sequence[float]
) -> tuple[float, float] | None:
    """(slope, intercept) of the weighted least squares line; None if there is no single one."""
    total = sum(weights)
    if total <= 0:
        return None
    x_mean = sum(w * x for w, x in zip(weights, xs, strict=True)) / total
    y_mean = sum(w * y for w, y in zip(weights, ys, strict=True)) / total
    spread = sum(w * (x - x_mean) ** 2 for w, x in zip(weights, xs, strict=True))
    if spread <= TINY * total:
        return None
    joint = sum(w * (x - x_mean) * (y - y_mean) for w, x, y in zip(weights, xs, ys, strict=True))
    slope = joint / spread
    return slope, y_mean - slope * x_mean


def _descend(xs: Sequence[float], ps: Sequence[float], a: float, b: float) -> tuple[float, float]:
    """Gauss-Newton steps on the squares of what the curve misses, halved until they help."""
    squares = _squares(xs, ps, a, b)
    for _ in range(STEPS):
        aa = ab = bb = ga = gb = 0.0
        for x, p in zip(xs, ps, strict=True):
            value = 1.0 / (a * x + b)
            db = -value * value
            da = db * x
            missed = p - value
            aa += da * da
            ab += da * db
            bb += db * db
            ga += da * missed
            gb += db * missed
        determinant = aa * bb - ab * ab
        if abs(determinant) <= TINY * aa * bb:
            break
        step_a = (ga * bb - gb * ab) / determinant
        step_b = (gb * aa - ga * ab) / determinant
        size = 1.0
        while size > 1e-3:
            tried = _squares(xs, ps, a + size * step_a, b + size * step_b)
            if tried < squares:
                break
            size /= 2
        else:
            break
        a, b = a + size * step_a, b + size * step_b
        if squares - tried <= ENOUGH * squares:
            break
        squares = tried
    return a, b


@dataclass(frozen=True, slots=True)
class SampleCurve:
    """P(i) = c·√((1 - i/n) / i): how the error of a random sample falls, to 0 with all n batches.

    >>> curve = SampleCurve.through(20, 0.2, 100)
    >>> [round(curve(batch), 3) for batch in (1, 20, 50, 100)]
    [0.995, 0.2, 0.1, 0.0]
    """

    scale: float
    batches: int

    @classmethod
    def through(cls, batch: int, value: float, batches: int) -> SampleCurve:
        """The curve that has a value after a batch."""
        one = cls(1.0, batches)(batch)
        return cls(value / one if one > 0 else 0.0, batches)

    def __call__(self, batch: float) -> float:
        unread = max(0.0, 1.0 - batch / self.batches)
        return self.scale * math.sqrt(unread / max(1.0, batch))


@dataclass(frozen=True, slots=True)
class BatchTime:
    """wall(i) = (a·i + b) / n + c on n slots: a and b core-seconds, c the fixed overhead.

    The printed form A·(i·S / N) + B would make a plain query, with A = 0, ignore its slots.
    Less than one slot is one slot for a part of the time.
    """

    a: float
    b: float
    c: float = 0.0

    def wall_s(self, batch: float, slots: float) -> float:
        core_s = self.a * batch + self.b
        if slots < 1:
            return max(core_s + self.c, TINY) / max(slots, TINY)
        return max(core_s / slots + self.c, TINY)

    def reached(self, done: float, slots: float, seconds: float) -> float:
        """The fractional batch reached from `done` batches on, after so many seconds. O(1).

        >>> BatchTime(0.0, 8.0).reached(3.5, 4, 5.0)
        6.0
        >>> BatchTime(1.0, 0.0).reached(0.0, 1, 6.0), BatchTime(1.0, 0.0).reached(0.0, 1, 8.0)
        (3.0, 3.5)
        """
        if slots <= 0:
            return done
        batches = math.floor(done)
        first_s = (batches + 1 - done) * self.wall_s(batches + 1, slots)
        if seconds <= first_s:
            return done + seconds / self.wall_s(batches + 1, slots)
        batches += 1
        seconds -= first_s
        # The next m batches take slope·m²/2 + (wall(batches + 1) - slope/2)·m seconds.
        slope = self.wall_s(batches + 2, slots) - self.wall_s(batches + 1, slots)
        each_s = self.wall_s(batches + 1, slots) - slope / 2
        whole = math.floor(2 * seconds / (each_s + math.sqrt(each_s**2 + 2 * slope * seconds)))
        seconds -= slope * whole**2 / 2 + each_s * whole
        batches += whole
        return batches + max(0.0, seconds) / self.wall_s(batches + 1, slots)


def fit_pace(batches: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """(pace, overhead): wall = pace · core-seconds / slots + overhead, fitted to batches.

    Each is (core-seconds, slots, wall seconds). The line is fitted where core-seconds per slot
    differ enough to tell the two apart; else a core-second takes a slot one second, and what is
    left of the wall time is the overhead. Neither is below 0.

    >>> fit_pace([(8.0, 4.0, 3.0), (8.0, 4.0, 3.0)])
    (1.0, 1.0)
    >>> fit_pace([(8.0, 4.0, 5.0), (8.0, 2.0, 9.0), (8.0, 1.0, 17.0)])
    (2.0, 1.0)
    """
    known = [(core_s / slots, wall_s) for core_s, slots, wall_s in batches if slots > 0]
    if not known:
        return 1.0, 0.0
    xs, ys = [x for x, _ in known], [y for _, y in known]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    if max(xs) - min(xs) >= TELLING * mean_x > 0:
        line = _weighted_line(xs, ys, [1.0] * len(xs))
        if line is not None and line[0] > 0 and line[1] >= 0:
            return line
        return (mean_y / mean_x, 0.0) if line is not None and line[0] > 0 else (1.0, 0.0)
    return 1.0, max(0.0, mean_y - mean_x)


def fit_batch_time(work: Sequence[Point], nested: bool, overhead_s: float = 0.0) -> BatchTime:
    """The line through (batch, core-seconds) of a nested query, the mean of a plain one.

    >>> fit_batch_time([(1, 3.0), (2, 5.0), (3, 7.0)], nested=True)
    BatchTime(a=2.0, b=1.0, c=0.0)
    >>> fit_batch_time([(1, 3.0), (2, 5.0)], nested=False, overhead_s=1.0)
    BatchTime(a=0.0, b=4.0, c=1.0)
    """
    if not work:
        raise ValueError("the time of a batch needs at least one that has ended")
    xs = [float(batch) for batch, _ in work]
    ys = [core_s for _, core_s in work]
    line = _weighted_line(xs, ys, [1.0] * len(work)) if nested else None
    if line is None or line[0] < 0:
        return BatchTime(0.0, sum(ys) / len(ys), overhead_s)
    if line[1] < 0:
        slope = sum(x * y for x, y in zip(xs, ys, strict=True)) / sum(x * x for x in xs)
        return BatchTime(slope, 0.0, overhead_s)
    return BatchTime(line[0], line[1], overhead_s)


@dataclass(frozen=True, slots=True)
class OnlineForecast:
    """What is known of a query after its first batch: how its error and its time go on."""

    curve: Curve | SampleCurve
    time: BatchTime
    done: float
    batches: int

    def error_at(self, slots: float, seconds: float) -> float:
        """The predicted error after so many seconds on so many slots (PREDICTERROR)."""
        return self.curve(min(self.time.reached(self.done, slots, seconds), self.batches))
