"""What is known of the speed-up curves of templates, from the slots of their queries."""

from __future__ import annotations

from collections import OrderedDict

from queryard.core.speedup import Speedup
from queryard.estimate.widths import (
    NOTHING_SEEN,
    Idling,
    corrected,
    expected_speedup,
    remembered,
)
from queryard.estimate.work import Prediction

TEMPLATES = 10_000


class Widths:
    """The templates of one session; used on one thread."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, Idling] = OrderedDict()

    def curve(
        self, template: str, prediction: Prediction, work_s: float, own: Idling = NOTHING_SEEN
    ) -> Speedup:
        """What is expected of a query, after what was seen of its template and of itself."""
        expected = prediction.speedup
        if expected.is_perfect:
            expected = expected_speedup(work_s)
        seen = self._seen.get(template)
        if seen is None:
            return corrected(expected, own)
        return corrected(expected, seen.plus(own))

    def learn(self, template: str, seen: Idling) -> None:
        """A query of the template has ended."""
        if seen.looks:
            self._seen[template] = remembered(self._seen.get(template, NOTHING_SEEN), seen)
            self._seen.move_to_end(template)
            if len(self._seen) > TEMPLATES:
                self._seen.popitem(last=False)
