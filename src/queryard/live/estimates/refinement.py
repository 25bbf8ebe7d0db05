"""The expected work of a query while it runs."""

from __future__ import annotations

from queryard.estimate.revision import revised
from queryard.estimate.work import Prediction

# The kernel gets a new estimate if it differs from the last by this share.
WORTH_TELLING = 0.05
# A running query is not planned if planning would cost as much as the rest of the query.
WORTH_PLANNING_S = 0.2


def revised_work(
    prediction: Prediction, expected_s: float, done_s: float, progress: float
) -> float:
    """The work of a query of which `done_s` is done; the old value if it hardly differs.

    >>> revised_work(Prediction(1.0, None, "plan", 0.5), 1.0, 0.5, 0.5)
    1.0
    """
    found_s = revised(prediction.work_s, done_s, progress, prediction.spread)
    total_s = max(done_s, found_s)
    return total_s if abs(total_s - expected_s) > WORTH_TELLING * expected_s else expected_s
