"""Online answers: what a query can be told from some files of its largest table, and how."""

from .analysis import online_plan
from .answers import OnlineRow, OnlineRows, online_rows
from .errors import NotOnline
from .plan import (
    Additive,
    Condition,
    Dimension,
    OnlinePlan,
    Ordering,
    OutputColumn,
    Partial,
    SortKey,
)

__all__ = [
    "Additive",
    "Condition",
    "Dimension",
    "NotOnline",
    "OnlinePlan",
    "OnlineRow",
    "OnlineRows",
    "Ordering",
    "OutputColumn",
    "Partial",
    "SortKey",
    "online_plan",
    "online_rows",
]
