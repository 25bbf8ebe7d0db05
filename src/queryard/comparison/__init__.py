"""Policies side by side on one workload, simulated: `queryard.compare` and its result.

The command `queryard compare` prints this result. Other commands use parts of it: one policy by
itself (`simulate`), and scores, table and verdict of runs that were measured (`load`, `replay`).
"""

from .compare import DEFAULT_POLICIES, Progress, compare
from .profiles import ALL, PORTFOLIO, choose_profiles, own_profiles, settle_tenants
from .result import Comparison, SeedRun
from .runs import PolicyResult, Reference, ideals, run_policy, save_figures, times_alone
from .scores import RECORDED, Scores, medians, scores_of_reference, scores_of_run
from .settings import Settings, describe, differences, make_conditions, setting
from .sources import TRACE_ESTIMATES, USUAL_ESTIMATES, Source, find_source, open_trace
from .table import comparison_table
from .verdict import verdict

__all__ = [
    "ALL",
    "DEFAULT_POLICIES",
    "PORTFOLIO",
    "RECORDED",
    "TRACE_ESTIMATES",
    "USUAL_ESTIMATES",
    "Comparison",
    "PolicyResult",
    "Progress",
    "Reference",
    "Scores",
    "SeedRun",
    "Settings",
    "Source",
    "choose_profiles",
    "compare",
    "comparison_table",
    "describe",
    "differences",
    "find_source",
    "ideals",
    "make_conditions",
    "medians",
    "open_trace",
    "own_profiles",
    "run_policy",
    "save_figures",
    "scores_of_reference",
    "scores_of_run",
    "setting",
    "settle_tenants",
    "times_alone",
    "verdict",
]
