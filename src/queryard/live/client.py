"""One user of a host: tenant, settings, temporary objects, transaction, functions.

What a client changes applies to its own queries and to nothing else. Temporary tables, views,
macros, functions, prepared statements and transactions live on an instance of the client's own,
made when it is first needed, where statements run one after another. All other queries of the
client run in parallel on pooled instances, with its settings.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime, timedelta

from queryard.core.errors import QueryardError
from queryard.engine.instances.settings import Settings
from queryard.engine.native import NativeStatement, Parameters
from queryard.engine.program import Program
from queryard.engine.sealing.access import ALL, Access
from queryard.engine.sealing.allowed import check_allowed
from queryard.engine.sealing.statements import checked_sealed
from queryard.engine.session.instance import Purse
from queryard.engine.session.session import SessionInstance
from queryard.engine.syntax.classify import Classified, classify
from queryard.engine.syntax.volatile import may_differ
from queryard.results.accounts import UNLIMITED, Account
from queryard.sql.catalog import Catalog

from .admission.memory import reservation
from .amounts import as_seconds, as_time_left
from .host import Host
from .planning import largest_table
from .request import (
    Instead,
    OnlineRequest,
    Plan,
    QueryRequest,
    checked_plan,
    checked_priority,
    checked_tenant,
)
from .sharing import Choice, small_text, text_scans
from .ticket import Ticket
from .work.native import plain_key


class Client:
    """Queries go to its host by `submit`, from any thread."""

    def __init__(
        self,
        host: Host,
        instance: SessionInstance,
        *,
        name: str = "",
        tenant: str = "default",
        plan: Plan = "native",
        writes: bool = False,
        account: Account = UNLIMITED,
    ) -> None:
        self.host = host
        self.id = name or f"client-{id(self)}"
        self.tenant = checked_tenant(tenant)
        self.plan = checked_plan(plan)
        self.instance = instance
        self.reach = instance.reach
        self._writes = writes
        self._account = account
        # How long it waits for a database that others use, if not as long as the host allows.
        self.lock_s: float | None = None

    @classmethod
    def open(
        cls,
        host: Host,
        *,
        memory_bytes: int | Purse,
        name: str = "",
        tenant: str = "default",
        plan: Plan = "auto",
        writes: bool = False,
        access: Access = ALL,
        account: Account = UNLIMITED,
    ) -> Client:
        """A further client of a host; `memory_bytes` is what its own instance may use.
        Where many share it, the instance takes some when it is opened.

        `access` is what it may reach. The clients of a server are sealed: see `Access`. Rows that
        it has not read are charged to `account`.
        """
        reach = host.reach(access)
        if access.sealed and writes:
            raise QueryardError("writes: a sealed client writes what its access names, no more")
        own = SessionInstance(host.backend.slots, memory_bytes, host.temp, reach, writes)
        return cls(host, own, name=name, tenant=tenant, plan=plan, writes=writes, account=account)

    @property
    def pool_bytes(self) -> int:
        """What one query can reserve at most."""
        return self.host.pool_bytes

    @property
    def catalog(self) -> Catalog:
        """The tables that it may read."""
        return self.reach.catalog

    def submit(
        self,
        sql: str,
        parameters: Parameters = (),
        *,
        plan: Plan | None = None,
        tenant: str | None = None,
        priority: float = 0.0,
        memory: int | str | None = None,
        time_limit: float | str | None = None,
        deadline: float | str | timedelta | datetime | None = None,
        idempotency_key: str = "",
        keep: float | str | None = None,
        online: OnlineRequest | None = None,
        instead: Instead | None = None,
    ) -> Ticket:
        """Enter a query; the options are those of `Session.submit`.

        With `online` it answers early and often, if that can be done soundly. What is run may be
        something else (`instead`) than the text that is shown.
        """
        check_types(sql, parameters)
        if instead is None:
            statements = self.checked(sql)
        else:
            statements = (classify if instead.trusted else self.checked)(instead.sql)
        left_s = None if deadline is None else as_time_left(deadline, "deadline")
        limit_s = None if time_limit is None else as_seconds(time_limit, "time_limit")
        if not isinstance(idempotency_key, str):
            raise QueryardError(f"idempotency_key: must be a text, got {idempotency_key!r}")
        wanted = checked_plan("native" if online else plan or self.plan)
        most_bytes = self.pool_bytes if memory is None else self.host.most_bytes(wanted)
        request = QueryRequest(
            sql,
            statements,
            parameters,
            wanted,
            tenant=self.tenant if tenant is None else checked_tenant(tenant),
            priority=checked_priority(priority),
            memory_bytes=None if memory is None else reservation(memory, most_bytes),
            deadline_s=None if left_s is None else self.host.now() + left_s,
            time_limit_s=limit_s,
            time_limit=time_limit if isinstance(time_limit, str) else f"{limit_s or 0:g} s",
            idempotency_key=idempotency_key,
            lasting=self._writes or self.reach.access.lets_write,
            online=online,
            reach=self.reach,
        )
        keep_s = None if keep is None else as_seconds(keep, "keep")
        self.host.look_at_files(statements)
        request = self.with_scans(request)
        if self.host.spreads:
            request = replace(request, largest=largest_table(self.catalog, request.names))
        return self.host.submit(self, request, self._key(request), keep_s, self._account)

    def checked(self, sql: str) -> list[Classified]:
        """The statements of a text, all of which the client may run."""
        statements = classify(sql)
        if self.reach.sealed:
            return [checked_sealed(each, self.reach.access) for each in statements]
        for statement in statements:
            check_allowed(statement, self._writes)
        return statements

    def turn(self, statements: Sequence[Classified]) -> AbstractContextManager[None]:
        """Hold the databases that statements name while these are bound."""
        wants = self.instance.routing.databases(statements)
        return self.host.turn(self, wants) if wants else nullcontext()

    def run_program(
        self, program: Program, name: str, *, tenant: str | None = None, priority: float = 0.0
    ) -> Ticket:
        """Enter an iterative program under a name."""
        if not name:
            raise QueryardError("name: must not be empty; it is shown in lists of queries")
        request = QueryRequest(
            f"-- {name}",
            (),
            (),
            "native",
            tenant=self.tenant if tenant is None else checked_tenant(tenant),
            priority=checked_priority(priority),
            program=program,
        )
        return self.host.submit(self, request, None)

    def with_scans(self, request: QueryRequest) -> QueryRequest:
        """A request that leaves the plan open, with the scans that it could share; a native one
        where there are none, or it cannot be staged.
        """
        if request.plan != "auto":
            return request
        host = self.host
        if host.spreads:
            # Whether it is worth splitting depends on the cluster; text is not parsed together.
            reason = self.not_staged(request)
            told = f"it cannot be split: {reason}"
            return request if reason is None else request.chosen(Choice("native", told))
        scans = text_scans(self.catalog, request.statements, host.engine.segments)
        if not scans:
            told = small_text(self.catalog, request.statements)
            return request.chosen(Choice("native", told))
        if (reason := self.not_staged(request)) is not None:
            return request.chosen(Choice("native", f"it cannot be split: {reason}"))
        return replace(request, scans=scans)

    # --- for the coordinator ---------------------------------------------------------------------

    def needs_own(self, request: QueryRequest) -> bool:
        return self.instance.routing.must_run(request.statements)

    def is_pooled(self, request: QueryRequest) -> bool:
        return not self.instance.routing.needs_instance(request.statements)

    def concerns(self, earlier: QueryRequest, later: QueryRequest) -> bool:
        return earlier.has_side_effects and any(
            self.instance.routing.concerns(left, statement)
            for left in earlier.statements
            for statement in later.statements
        )

    def databases(self, request: QueryRequest) -> Mapping[str, bool]:
        return self.instance.routing.databases(request.statements)

    @property
    def in_transaction(self) -> bool:
        return self.instance.in_transaction

    def not_staged(self, request: QueryRequest) -> str | None:
        statements = request.statements
        if len(statements) > 1:
            return "a script of several statements runs as it is"
        if not statements[0].reads:
            return f"{statements[0].kind} does more than read"
        if request.parameters:
            if request.online is not None:
                return "parameters are bound by DuckDB"
            try:
                _ = request.written
            except QueryardError as error:
                return f"its parameters cannot be written as literals: {error}"
        return self.instance.routing.reason(statements[0])

    @property
    def settings(self) -> Settings:
        return self.instance.settings

    def statement(
        self, request: QueryRequest, memory_bytes: int, sprints: bool, settings: Settings
    ) -> NativeStatement:
        statements = tuple(request.statements)
        own = self.instance
        return NativeStatement(
            statements, request.parameters, memory_bytes, sprints, own, settings, request.kept
        )

    def _key(self, request: QueryRequest) -> Hashable | None:
        """Equal for queries with the same answer; None if the answer may differ each time.

        Tables are part of the key: the catalog makes a new object when a file has changed.
        """
        if request.has_side_effects or any(map(may_differ, request.statements)):
            return None
        if request.online is not None:
            return None
        parameters = plain_key(request.parameters)
        if parameters is None or not self.is_pooled(request):
            return None
        tables = tuple(
            table for table in self.catalog.tables.values() if table.name.lower() in request.names
        )
        # Clients that may reach other things may get other answers, or errors.
        access = self.reach.access
        texts = tuple(statement.sql for statement in request.statements)
        return texts, parameters, request.memory_bytes, tables, access.tables, access.sealed

    # --- tables and functions --------------------------------------------------------------------

    def with_instance(self, change: Callable[[SessionInstance], None]) -> None:
        """Change the client's own instance while no statement uses it."""
        with self.host.own_connection(self):
            change(self.instance)

    def roll_back(self) -> None:
        """Undo the open transaction, if there is one; unlike a statement it is never refused."""
        try:
            self.with_instance(SessionInstance.roll_back)
        finally:
            self.host.left(self)

    def close(self) -> None:
        """Free its own instance; the host must have ended what runs there."""
        self.instance.close()
        self.host.left(self)


def check_types(sql: object, parameters: object) -> None:
    """Check the types here, where the error names the argument."""
    if not isinstance(sql, str):
        raise QueryardError(f"sql: must be a text, got {sql!r}")
    if not isinstance(parameters, Sequence | Mapping) or isinstance(parameters, str | bytes):
        problem = f"must be a list, or a dictionary of names, got {parameters!r}"
        raise QueryardError(f"parameters: {problem}")
