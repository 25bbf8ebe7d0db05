"""A query as it was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from queryard.core.errors import QueryardError, unknown_name
from queryard.engine.classify import Classified
from queryard.engine.native import Parameters

Plan = Literal["native", "staged"]
PLANS: tuple[Plan, ...] = ("native", "staged")


@dataclass(frozen=True, slots=True)
class Asked:
    """What somebody wants, and how."""

    sql: str
    statements: Sequence[Classified]
    parameters: Parameters
    plan: Plan
    tenant: str
    priority: float
    memory_bytes: int
    # Why it runs natively although it was to be staged.
    reasons: tuple[str, ...] = ()

    @property
    def leaves_something(self) -> bool:
        """Whether it does more than read."""
        return any(not statement.reads for statement in self.statements)


def checked_plan(plan: str) -> Plan:
    """A known way of running queries.

    >>> checked_plan("staged")
    'staged'
    """
    for known in PLANS:
        if plan == known:
            return known
    raise QueryardError(unknown_name("plan", plan, PLANS))
