"""A predictor that learns from the tasks of a simulated run, as a source of its estimates."""

from __future__ import annotations

from queryard.core.events import EstimateChanged
from queryard.estimate.tasks.estimating import TaskEstimates
from queryard.workload.model import Arrival


class Predicting(TaskEstimates):
    """What a predictor says of the jobs of a simulated run."""

    def __call__(self, now: float, arrival: Arrival) -> list[EstimateChanged]:
        return self.submitted(now, arrival.query)
