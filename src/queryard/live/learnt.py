"""What models have learnt outlives a session: it is kept in the history, and read from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from queryard.engine.segments import SegmentStore

from . import inputs
from .estimates.estimator import Estimator
from .loop import Loop
from .recording import Recorder

# The model of what it costs to share the scans of tables.
SCANS = "scans"


class Learnt:
    """The models of one host. `post` tells its coordinator of those of earlier sessions."""

    def __init__(
        self, recorder: Recorder, segments: SegmentStore, post: Callable[[inputs.Input], None]
    ) -> None:
        self._recorder = recorder
        self._segments = segments
        self._post = post

    def keep(self, estimator: Estimator, loop: Loop) -> None:
        """Write down what was learnt so far, unless it is not known what is there."""
        learnt = estimator.learnt()
        if learnt is None or self._recorder.history is None or loop.over:
            return
        states = {**learnt, **loop.ask(lambda coordinator: coordinator.learnt())}
        if scans := self._segments.learnt():
            states[SCANS] = scans
        self._recorder.keep_learnt(states)

    def recall(self, learnt: Mapping[str, Any]) -> None:
        """Go on from what those of earlier sessions have learnt."""
        if SCANS in learnt:
            self._segments.recall(learnt[SCANS])
        self._post(inputs.Recalled(learnt))
