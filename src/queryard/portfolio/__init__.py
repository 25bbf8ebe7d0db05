"""A portfolio of policies: simulate the queue forward under each, follow the best, reflect."""

from .scores import METRICS, OBJECTIVES, Objective, QueryEnd, Schedule, objective_of
from .selection import Decision, Selector
from .settings import PortfolioSettings, candidates_of, parse_portfolio
from .simulated import PortfolioRun, simulate_portfolio
from .what_if import Trial, try_out

__all__ = [
    "METRICS",
    "OBJECTIVES",
    "Decision",
    "Objective",
    "PortfolioRun",
    "PortfolioSettings",
    "QueryEnd",
    "Schedule",
    "Selector",
    "Trial",
    "candidates_of",
    "objective_of",
    "parse_portfolio",
    "simulate_portfolio",
    "try_out",
]
