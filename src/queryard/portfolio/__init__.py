"""A portfolio of policies: simulate the queue forward under each, follow the best."""

from .scores import METRICS, OBJECTIVES, Objective, QueryEnd, Schedule, objective_of
from .selection import Decision, Selector, in_force
from .settings import PortfolioSettings, by_themselves, candidates_of, parse_portfolio
from .simulated import PortfolioRun, schedule_of, simulate_portfolio
from .trials import Trial, try_out
from .workers import Workers

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
    "Workers",
    "by_themselves",
    "candidates_of",
    "in_force",
    "objective_of",
    "parse_portfolio",
    "schedule_of",
    "simulate_portfolio",
    "try_out",
]
