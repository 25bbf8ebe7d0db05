"""What is known of the speed-up curves of templates, from the slots of their queries."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

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
# So many outlive a session.
KEPT = 1_000


class Widths:
    """The templates of one session; used on one thread."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, Idling] = OrderedDict()
        # Of templates that this session has not seen yet, by a hash of their text.
        self._recalled: dict[str, Idling] = {}

    def curve(
        self, template: str, prediction: Prediction, work_s: float, own: Idling = NOTHING_SEEN
    ) -> Speedup:
        """What is expected of a query, after what was seen of its template and of itself."""
        expected = prediction.speedup
        if expected.is_perfect:
            expected = expected_speedup(work_s)
        return corrected(expected, self._of(template).plus(own))

    def learn(self, template: str, seen: Idling) -> None:
        """A query of the template has ended."""
        if seen.looks:
            self._seen[template] = remembered(self._of(template), seen)
            self._seen.move_to_end(template)
            if len(self._seen) > TEMPLATES:
                self._seen.popitem(last=False)

    def _of(self, template: str) -> Idling:
        seen = self._seen.get(template)
        if seen is None and self._recalled:
            seen = self._recalled.pop(_key(template), None)
            if seen is not None:
                self._seen[template] = seen
        return NOTHING_SEEN if seen is None else seen

    def learnt(self) -> dict[str, Any]:
        """What was seen of the last templates, as plain data."""
        seen = {_key(name): list(one) for name, one in list(self._seen.items())[-KEPT:]}
        others = list(self._recalled.items())[len(seen) - KEPT :] if len(seen) < KEPT else ()
        return {key: list(one) for key, one in others} | seen

    def recall(self, learnt: Mapping[str, Any]) -> None:
        """Go on from what was seen in earlier sessions; what this one has seen is added to it."""
        self._recalled = {key: Idling(*seen) for key, seen in learnt.items()}
        for template, seen in list(self._seen.items()):
            before = self._recalled.pop(_key(template), NOTHING_SEEN)
            self._seen[template] = before.plus(seen)


def _key(template: str) -> str:
    return hashlib.blake2b(template.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
