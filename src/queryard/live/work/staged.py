"""Staged work: jobs of map and reduce tasks that the kernel schedules one by one."""

from __future__ import annotations

from collections.abc import Sequence

from queryard.backends.protocol import Staged
from queryard.core.events import EstimateChanged, MemoryChanged
from queryard.core.model import Job, JobId
from queryard.engine.staged.tasks import StagedTasks
from queryard.results.explanation import Explanation
from queryard.results.streams import ResultStream

from ..estimates.prediction import task_seconds
from ..staged_explanation import staged_explanation
from .base import Moved, Retry
