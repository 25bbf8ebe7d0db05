"""Names that classes had before still open."""

from __future__ import annotations

import queryard.live.why
import queryard.metrics
import queryard.sim


def test_the_former_names_of_classes_are_the_classes_of_today():
    assert queryard.live.why.Outlook is queryard.live.why.WaitReport
    assert queryard.sim.Run is queryard.sim.SimResult
    assert queryard.metrics.Run is queryard.metrics.RunRows
