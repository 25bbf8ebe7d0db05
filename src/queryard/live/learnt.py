"""What ended queries have taught: it outlives a session in the history, and can be forgotten."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from queryard.engine.segments import SegmentStore

from . import inputs
from .background import Background
from .door import Door
from .estimates.estimator import Estimator
from .loop import Loop
from .policy_in_force import PolicyInForce
from .recording import LEARNT_EVERY_S, Recorder
from .tickets import Tickets

# The model of what it costs to share the scans of tables.
SCANS = "scans"


class Learnt:
    """The models of one host: of its estimator, its coordinator, its segments and its policy."""

    def __init__(
        self,
        door: Door,
        loop: Loop,
        recorder: Recorder,
        estimator: Estimator,
        segments: SegmentStore,
        policy: PolicyInForce,
        tickets: Tickets,
    ) -> None:
        self._door = door
        self._loop = loop
        self._recorder = recorder
        self._estimator = estimator
        self._segments = segments
        self._policy = policy
        self._tickets = tickets

    def keep(self) -> None:
        """Write down what was learnt so far, unless it is not known what is there."""
        learnt = self._estimator.learnt()
        if learnt is None or self._recorder.history is None or self._loop.over:
            return
        states = {**learnt, **self._loop.ask(lambda coordinator: coordinator.learnt())}
        if scans := self._segments.learnt():
            states[SCANS] = scans
        self._recorder.keep_learnt(states)

    def keep_again(self, background: Background) -> None:
        """Keep what was learnt now and then, while the host is open."""
        if not self._door.closed:
            self.keep()
            background.later(LEARNT_EVERY_S, lambda: self.keep_again(background))

    def recall(self, learnt: Mapping[str, Any]) -> None:
        """Go on from what those of earlier sessions have learnt."""
        if SCANS in learnt:
            self._segments.recall(learnt[SCANS])
        self._door.post(inputs.Recalled(learnt))

    def reset(self, models: Collection[str], since_at: float) -> Callable[[], None]:
        """Forget what was learnt from queries that ended before a time (seconds since 1970).

        What it returns gives back what was forgotten, in the place of what was learnt since.
        """
        self._door.check_open()
        forgotten = []
        predicts = not {"templates", "prices"}.isdisjoint(models)
        if "portfolio" in models:
            forgotten.append(self._policy.forget())
        if predicts:
            tasks = self._loop.ask(lambda coordinator: coordinator.learn_anew())
            forgotten.append(lambda: self._loop.ask(lambda _: tasks()))
            forgotten.append(self._segments.learn_anew())
            forgotten.append(self._estimator.reset(models, since_at))
            self._estimator.predict_anew(self._tickets.active())

        def give_back() -> None:
            self._door.check_open()
            for part in forgotten:
                part()
            if predicts:
                self._estimator.predict_anew(self._tickets.active())

        return give_back
