"""How far off the prices of kinds of work are here, learnt from every query that ends.

A query's work is a sum over kinds of work (reading, joining, …), each priced beforehand. Prices are
those of other queries on another machine, so each kind has a factor of its own, 1 until queries
tell otherwise: a linear model, Eq. 3 of TLS with the kinds as its terms, fitted online by recursive
least squares of the relative error. It is drawn towards 1 (ridge), no single query moves it far
(Huber), and older queries fade. Its covariance gives the interval of a prediction.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

Kind = TypeVar("Kind", bound=Hashable)

# Errors beyond so many standard deviations count as so many.
HUBER = 2.0
# No work takes less than so much of its price.
LEAST_FACTOR = 0.1


class Doubt(NamedTuple):
    """How far prices may be off: variances, and bounds of a factor.

    Of a factor before anything is learnt, of what a query takes beside its factors, and what a
    factor changes by between two queries.
    """

    prior: float = 0.35
    noise: float = 0.12
    drift: float = 0.0005
    least: float = 0.1
    most: float = 10.0


USUAL = Doubt()


class Factors(Generic[Kind]):
    """A factor per kind of work.

    >>> factors = Factors(("read", "join"))
    >>> for _ in range(30):
    ...     factors.learn({"read": 1.0}, 2.0)
    >>> round(factors.work({"read": 30.0})), factors.work({"join": 1.0})
    (59, 1.0)
    """

    def __init__(self, kinds: Sequence[Kind], doubt: Doubt = USUAL) -> None:
        self._kinds = tuple(kinds)
        self._doubt = doubt
        size = len(self._kinds)
        self._means = [1.0] * size
        self._covariance = [
            [doubt.prior if row == column else 0.0 for column in range(size)] for row in range(size)
        ]

    def work(self, priced: Mapping[Kind, float]) -> float:
        """The seconds to expect where prices say so many by kind."""
        total = sum(priced.values())
        return total if total <= 0 else total * self._factor(self._shares(priced, total))

    def variance(self, priced: Mapping[Kind, float]) -> float:
        """The expected squared relative error of `work` that comes of the factors alone."""
        total = sum(priced.values())
        if total <= 0:
            return self._doubt.prior
        shares = self._shares(priced, total)
        factor = self._factor(shares)
        return self._uncertainty(shares) / (factor * factor)

    def learn(self, priced: Mapping[Kind, float], work_s: float, weight: float = 1.0) -> None:
        """A query has taken so much; one of little `weight` tells less."""
        total = sum(priced.values())
        if total <= 0 or work_s <= 0 or weight <= 0:
            return
        shares = self._shares(priced, total)
        expected = self._factor(shares)
        _, noise, drift, least, most = self._doubt
        ratio = min(most, max(least, work_s / total))
        along = [sum(map(_times, row, shares)) for row in self._covariance]
        # Noise is relative: a query of twice the factor varies twice as much.
        spread = sum(map(_times, along, shares)) + noise * expected * expected / weight
        error = ratio - expected
        # An error that is too large to be believed counts in part, and makes nothing surer.
        counts = min(1.0, HUBER * math.sqrt(spread) / max(abs(error), 1e-12))
        error *= counts
        for place, gain in enumerate(along):
            moved = self._means[place] + gain / spread * error
            self._means[place] = min(most, max(least, moved))
        for row, one in enumerate(along):
            for column, other in enumerate(along):
                self._covariance[row][column] -= counts * one * other / spread
            self._covariance[row][row] = min(self._doubt.prior, self._covariance[row][row] + drift)

    def __getitem__(self, kind: Kind) -> float:
        return self._means[self._kinds.index(kind)]

    def to_state(self) -> dict[str, Any]:
        """What was learnt, as plain data."""
        return {
            "kinds": [str(kind) for kind in self._kinds],
            "means": list(self._means),
            "covariance": [list(row) for row in self._covariance],
        }

    def take_state(self, state: Any) -> None:
        """Go on from what such factors have learnt; a state of other factors is ignored.

        >>> taught, new = Factors(("read", "join")), Factors(("read", "join"))
        >>> taught.learn({"read": 1.0}, 2.0)
        >>> new.take_state(taught.to_state())
        >>> new["read"] == taught["read"] > 1.0
        True
        """
        size = len(self._kinds)
        if not isinstance(state, Mapping) or state.get("kinds") != [*map(str, self._kinds)]:
            return
        rows = [state.get("means"), *(state.get("covariance") or ())]
        if len(rows) != 1 + size or not all(_is_row(row, size) for row in rows):
            return
        least, most = self._doubt.least, self._doubt.most
        self._means = [min(most, max(least, mean)) for mean in rows[0]]
        self._covariance = [list(row) for row in rows[1:]]

    def _shares(self, priced: Mapping[Kind, float], total: float) -> list[float]:
        return [priced.get(kind, 0.0) / total for kind in self._kinds]

    def _factor(self, shares: Sequence[float]) -> float:
        return max(LEAST_FACTOR, sum(map(_times, self._means, shares)))

    def _uncertainty(self, shares: Sequence[float]) -> float:
        rows = (sum(map(_times, row, shares)) for row in self._covariance)
        return max(0.0, sum(map(_times, rows, shares)))


def _times(one: float, other: float) -> float:
    return one * other


def _is_row(row: Any, size: int) -> bool:
    """Whether it is a list of so many numbers."""
    is_list = isinstance(row, list) and len(row) == size
    return is_list and all(isinstance(one, float | int) and math.isfinite(one) for one in row)
