"""A query as it was asked for."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from queryard.core.errors import QueryardError, unknown_name
from queryard.engine.kept_tables import KeptColumns
from queryard.engine.native import Parameters
from queryard.engine.online.wish import OnlineWish
from queryard.engine.plain_parameters import plain
from queryard.engine.program import Program
from queryard.engine.sealing.access import Reach
from queryard.engine.syntax.classify import Classified, all_names
from queryard.engine.written_values import with_values
from queryard.results.online import AnswerLog

from .sharing import Choice, TextScan

ONE_SENDING = "once-"
"""Idempotency keys that begin so are made for one request, which may be sent twice."""
Plan = Literal["auto", "native", "staged"]
PLANS: tuple[Plan, ...] = ("auto", "native", "staged")


@dataclass(frozen=True)
class OnlineRequest:
    """A query that is to answer early: how, and where its answers go."""

    wish: OnlineWish
    log: AnswerLog


@dataclass(frozen=True)
class QueryRequest:
    """What a client wants, and how; `memory_bytes` is None where the host may choose."""

    sql: str
    statements: Sequence[Classified]
    parameters: Parameters
    plan: Plan
    tenant: str = "default"
    priority: float = 0.0
    memory_bytes: int | None = None
    # On the host's clock.
    deadline_s: float | None = None
    # Seconds after the submission, and how the client wrote it.
    time_limit_s: float | None = None
    time_limit: str = ""
    # A second submission with the same key is the same query.
    idempotency_key: str = ""
    # Whether its side effects may outlive its client, which may write files or databases.
    lasting: bool = False
    # None for a query that answers once.
    online: OnlineRequest | None = None
    # What runs instead of statements.
    program: Program | None = None
    # The tables of text that it may share the scan of, while its plan is "auto"; then the choice.
    scans: tuple[TextScan, ...] = ()
    choice: Choice | None = None
    # The columns that it reads of tables of text which are kept as a whole, by table.
    kept: KeptColumns = ()
    # On a cluster: the largest table that it reads, and its bytes; where that is, it had best run.
    largest: tuple[str, float] | None = None
    # What its client may reach; None for all of the host's catalog.
    reach: Reach | None = None

    def with_memory(self, memory_bytes: int) -> QueryRequest:
        """The same, with memory that was chosen for it."""
        return replace(self, memory_bytes=memory_bytes)

    def over_kept(self, kept: KeptColumns) -> QueryRequest:
        """The same, to be run by DuckDB over parsed segments."""
        names = ", ".join(name for name, _ in kept)
        choice = Choice("native", f"all it reads of {names} is kept in parsed segments")
        return replace(self.chosen(choice), kept=kept)

    def chosen(self, choice: Choice) -> QueryRequest:
        """The same, with the plan that was chosen for it."""
        return replace(self, plan=choice.plan, choice=choice)

    @cached_property
    def has_side_effects(self) -> bool:
        """Whether it does more than read."""
        return any(not statement.reads for statement in self.statements)

    @property
    def runs_once(self) -> bool:
        """Whether it must not run again under its idempotency key, also after a restart."""
        return bool(self.idempotency_key) and self.lasting and self.has_side_effects

    @property
    def guards_sending(self) -> bool:
        """Whether its key is for one request: no other will come with it."""
        return self.idempotency_key.startswith(ONE_SENDING)

    @property
    def is_script(self) -> bool:
        """Whether it has several statements, of which some may have run if it fails."""
        return len(self.statements) > 1

    def leaves_open(self, in_transaction: bool) -> bool:
        """Whether a transaction is open once it has run, if one was or was not before."""
        for statement in self.statements:
            if statement.kind == "TRANSACTION":
                in_transaction = statement.words[0] in ("begin", "start")
        return in_transaction

    @cached_property
    def asked_hash(self) -> str:
        """What must be the same if an idempotency key is: the text and the parameters."""
        asked = repr((self.sql, self.parameters))
        return hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()

    @cached_property
    def written(self) -> str:
        """Its one statement with the values of its parameters; raises where they cannot be
        written.
        """
        (statement,) = self.statements
        return with_values(statement, self.parameters)

    @property
    def bound(self) -> list[Any] | dict[str, Any]:
        """Its parameters, of types that every client of DuckDB binds."""
        return plain(self.parameters)

    @cached_property
    def template(self) -> str:
        """Its text without literals: queries of one template take about as long."""
        return "; ".join(statement.template for statement in self.statements)

    @cached_property
    def names(self) -> frozenset[str]:
        """Every word of it that may be a name."""
        return all_names(self.statements)


@dataclass(frozen=True, slots=True)
class Instead:
    """What is run in place of the text that a client has sent, which is what is shown.

    A `trusted` one was made by a listener, and may name files that clients may not.
    """

    sql: str
    trusted: bool = False


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


def checked_priority(priority: object) -> float:
    """A finite number."""
    if isinstance(priority, bool) or not isinstance(priority, int | float):
        raise QueryardError(f"priority: must be a number, got {priority!r}")
    if not math.isfinite(priority):
        raise QueryardError(f"priority: must be finite, got {priority!r}")
    return priority
