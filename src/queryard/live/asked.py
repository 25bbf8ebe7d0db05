"""A query as it was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from queryard.core.errors import QueryardError, unknown_name
from queryard.engine.classify import Classified
from queryard.engine.native import Parameters

Plan = Literal["native", "staged"]
PLANS: tuple[Plan, ...] = ("native", "staged")


@dataclass(frozen=True)
class Asked:
    """What somebody wants, and how; `memory_bytes` is None where the session may choose."""

    sql: str
    statements: Sequence[Classified]
    parameters: Parameters
    plan: Plan
    tenant: str = "default"
    priority: float = 0.0
    memory_bytes: int | None = None
    # On the session's clock.
    deadline_s: float | None = None
    # Why it runs natively although it was to be staged.
    reasons: tuple[str, ...] = ()

    @property
    def leaves_something(self) -> bool:
        """Whether it does more than read."""
        return any(not statement.reads for statement in self.statements)

    @cached_property
    def template(self) -> str:
        """Its text without literals: queries that differ in nothing else take as long."""
        return "; ".join(statement.template for statement in self.statements)


def checked_plan(plan: str) -> Plan:
    """A known way of running queries.

    >>> checked_plan("staged")
    'staged'
    """
    for known in PLANS:
        if plan == known:
            return known
    raise QueryardError(unknown_name("plan", plan, PLANS))


def checked_tenant(tenant: object) -> str:
    """A name, or names from the root of the tree of tenants down.

    >>> checked_tenant("sales/emea")
    'sales/emea'
    """
    if not isinstance(tenant, str) or not all(tenant.split("/")):
        raise QueryardError(f"tenant: must be a name, or names as 'sales/emea', got {tenant!r}")
    return tenant
