"""What queries of each template took, and take so far."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from queryard.engine.syntax.remembered import LONGEST
from queryard.estimate.work import (
    LEAST_S,
    Figure,
    Prediction,
    from_past,
    literals_matter,
    noted,
)

# How much is kept: templates, and what their past tells.
TEMPLATES = 10_000
REMEMBERED = 1_000
# A running query raises the predictions of its template each time its work grows by this factor.
WORTH_TELLING = 2.0


class Past(NamedTuple):
    """What the past of a template tells, and what it was made of.

    `usual` is the prediction for any literals, `varies` whether literals matter.
    """

    figures: list[Figure]
    table_bytes: float
    usual: Prediction
    varies: bool


class Templates:
    """The figures of templates, the least recently used of which are forgotten; any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended: OrderedDict[bytes, list[Figure]] = OrderedDict()
        self._past: dict[bytes, Past] = {}
        # What queries that run now have taken so far, the furthest of each template.
        self._running: dict[bytes, Figure] = {}
        # What has ended of its template, what runs, and both together.
        self._both: dict[bytes, tuple[list[Figure], Figure, list[Figure]]] = {}

    def figures(self, template: str) -> list[Figure]:
        """What queries of a template took, those that run now included."""
        key = template_key(template)
        with self._lock:
            ended, running = self._ended.get(key, []), self._running.get(key)
            if running is None:
                return ended
            held = self._both.get(key)
            if held is None or held[0] is not ended or held[1] is not running:
                held = self._both[key] = ended, running, noted(ended, running)
        return held[2]

    def past(
        self, template: str, figures: list[Figure], table_bytes: float, possible_s: float
    ) -> Past:
        """What these figures tell, remembered until something is added to them."""
        key = template_key(template)
        held = self._past.get(key)
        if held is None or held.figures is not figures or held.table_bytes != table_bytes:
            varies = literals_matter(figures, possible_s)
            held = Past(figures, table_bytes, from_past(figures, table_bytes), varies)
            if len(self._past) >= REMEMBERED:
                self._past.clear()
            self._past[key] = held
        return held

    def count(self, template: str) -> int:
        """How many figures there are of queries that have ended."""
        return len(self._ended.get(template_key(template), ()))

    def varies(self, template: str) -> bool:
        """Whether literals were found to matter when the past was last looked at."""
        held = self._past.get(template_key(template))
        return held is not None and held.varies

    def is_news(self, template: str, done_s: float) -> bool:
        """Whether a running query has taken far more than any that runs had when it was noted."""
        running = self._running.get(template_key(template))
        return done_s >= (LEAST_S if running is None else running.work_s) * WORTH_TELLING

    def runs(self, template: str, figure: Figure) -> None:
        """A query that runs has taken so much."""
        with self._lock:
            self._running[template_key(template)] = figure

    def runs_no_more(self, template: str) -> None:
        """It has ended, in whatever way."""
        with self._lock:
            self._clear_running(template_key(template))

    def ended(self, template: str, figure: Figure) -> None:
        """A query has ended, or was stopped."""
        key = template_key(template)
        with self._lock:
            self._clear_running(key)
            self._note(key, figure)

    def recall(self, figures: Iterable[tuple[str, Figure]]) -> None:
        """Learn from queries of earlier sessions by template, the oldest first."""
        found: dict[bytes, list[Figure]] = {}
        for template, figure in figures:
            found.setdefault(template_key(template), []).append(figure)
        with self._lock:
            for key, before in found.items():
                since = self._ended.pop(key, ())
                for figure in (*before, *since):
                    self._note(key, figure)

    def forget(self) -> Callable[[], None]:
        """Forget all that has ended; what it returns gives that back."""
        with self._lock:
            ended = self._ended
            self._ended, self._past = OrderedDict(), {}

        def give_back() -> None:
            with self._lock:
                self._ended, self._past = ended, {}

        return give_back

    def _clear_running(self, key: bytes) -> None:
        self._running.pop(key, None)
        self._both.pop(key, None)

    def _note(self, key: bytes, figure: Figure) -> None:
        # A new list: others may be reading the old one.
        self._ended[key] = noted(self._ended.get(key, []), figure)
        self._ended.move_to_end(key)
        if len(self._ended) > TEMPLATES:
            self._ended.popitem(last=False)


def template_key(template: str) -> bytes:
    """What stands for a template, which may be long."""
    return _hash(template) if len(template) <= LONGEST else _hash.__wrapped__(template)


@lru_cache(maxsize=256)
def _hash(template: str) -> bytes:
    return hashlib.blake2b(template.encode("utf-8", "surrogateescape"), digest_size=16).digest()
