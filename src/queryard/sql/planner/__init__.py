"""From SQL to a DAG of jobs: what can be split soundly, and how."""

from .errors import NotStageable
from .plan import StagedJob, StagedPlan
from .staging import Asked, plan_staged

__all__ = ["Asked", "NotStageable", "StagedJob", "StagedPlan", "plan_staged"]
