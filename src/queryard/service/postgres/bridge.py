"""From one PostgreSQL session to the scheduler: statements bound, submitted, awaited, cancelled.

Calls that block run in threads. What waits for a query waits on the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, TypeVar

from queryard.core.errors import QueryardError
from queryard.engine.describing import CannotDescribe
from queryard.engine.sealing.access import Access
from queryard.engine.syntax.classify import Classified, classify
from queryard.live.handle import Handle
from queryard.live.request import Instead
from queryard.results.answer import Answer
from queryard.sql.catalog.quoting import literal

from ..config import ServiceLimits
from ..served import ServedClient
from . import oids
from .catalog.answers import CatalogAnswer
from .catalog.answers import Described as CatalogDescribed
from .catalogs import Catalogs, column_types
from .errors import PostgresError, changed_plan, not_supported
from .inference import infer
from .plain_templates import PlainTemplates
from .rows import FEW_BYTES, FEW_ROWS, Rows
from .search_path import MAIN, Schemas
from .setting_values import seconds_of
from .settings import Settings
from .texts import Text
from .types import Column, columns_of, wire_type, with_casts

T = TypeVar("T")
# How often a client that wants to know is told of the progress of its query.
NOTICE_S = 0.5
# The thread that enters a statement waits so long for its rows: one thread less is woken.
MOMENT_S = 0.02
# Statements up to this length are looked at on the event loop.
SHORT = 4_000


class Activity:
    """What runs for a session right now; a request to cancel aims at this and at nothing later."""

    def __init__(self) -> None:
        self.cancelled = False
        self._handle: Handle | None = None
        self._waiting: asyncio.Future[Any] | None = None

    def runs(self, handle: Handle | None) -> None:
        self._handle = handle
        if self.cancelled and handle is not None:
            handle.cancel()

    def waits(self, waiting: asyncio.Future[Any] | None) -> None:
        """It waits for the client, and not for a query."""
        self._waiting = waiting
        if self.cancelled and waiting is not None:
            waiting.cancel()

    def cancel(self) -> None:
        self.cancelled = True
        if self._waiting is not None:
            self._waiting.cancel()
        if self._handle is not None:
            self._handle.cancel()


@dataclass(frozen=True, slots=True)
class Plan:
    """A statement for DuckDB, and the columns that it gives, if any; some are cast on their way."""

    sql: str
    """As the client has sent it."""
    statement: Classified
    columns: tuple[Column, ...]
    # Whether its columns are known only once it runs.
    opaque: bool = False

    @property
    def writes(self) -> bool:
        return not (self.statement.reads or self.statement.only_looks)


@dataclass(frozen=True, slots=True)
class Started:
    """A statement that runs or has run: its rows, or how many rows it has changed."""

    rows: Rows | None
    changed: int
    handle: Handle


class Bridge:
    """One session's way to the scheduler."""

    def __init__(
        self,
        client: ServedClient,
        executor: Executor,
        catalogs: Catalogs,
        settings: Settings,
        identity: Mapping[str, str],
        limits: ServiceLimits,
        zone: str = "UTC",
        plain: PlainTemplates | None = None,
    ) -> None:
        """`identity` is what is known of the session and is no setting: user, database, pid …

        `zone` is the time zone that DuckDB has for the client until one is set.
        """
        self.client = client
        self.settings = settings
        self.limits = limits
        self._executor = executor
        self._catalogs = catalogs
        self._identity = dict(identity)
        self._zone = zone
        self._plain = PlainTemplates() if plain is None else plain
        # The schemas that DuckDB looks into for the client, and those there are.
        self._searched: tuple[str, ...] = (MAIN,)
        self._schemas: tuple[int, Schemas] | None = None

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run something that blocks in a thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, function, *arguments)

    async def look(self, size: int, function: Callable[..., T], *arguments: Any) -> T:
        """Look at a text of some size: a long one in a thread, as others wait for the loop."""
        if size <= SHORT:
            return function(*arguments)
        return await self.call(function, *arguments)

    # --- the catalogs ----------------------------------------------------------------------------

    async def concerns_catalog(self, text: Text) -> bool:
        known = self._catalogs.known(self.client, self._identity["database"], self.searched())
        if known is not None:
            return await self.look(len(text.sql), known.concerns, text.sql)
        return await self.call(lambda: self._catalog().concerns(text.sql))

    async def ask_catalog(self, text: Text, values: list[Any]) -> CatalogAnswer:
        session = {**self.settings.all(), **self._identity}
        return await self.call(lambda: self._catalog_now().answer(text.sql, values, session))

    async def describe_catalog(self, text: Text, given: tuple[int, ...]) -> CatalogDescribed:
        return await self.call(lambda: self._catalog_now().describe(text.sql, given))

    def _catalog(self) -> Any:
        return self._catalogs.of(self.client, self._identity["database"], self.searched())

    def _catalog_now(self) -> Any:
        self.client.catalog_now()
        return self._catalog()

    # --- binding ---------------------------------------------------------------------------------

    async def parameter_types(self, text: Text, given: tuple[int, ...]) -> tuple[int, ...]:
        """The types of the parameters of a statement."""
        if not text.places and not given:
            return ()

        await self.follow_settings()
        return await self.call(self._infer, text, given)

    def _infer(self, text: Text, given: tuple[int, ...]) -> tuple[int, ...]:
        """The client's word, else DuckDB's, else what the text shows."""
        types = [*given, *[0] * (text.parameters - len(given))]
        if not all(types):
            with contextlib.suppress(QueryardError):  # an error in it is met when it is bound
                said = self.client.describe(text.sql).parameters
                types = [own or _oid(kind) for own, kind in zip(types, said, strict=True)]
        return infer(text, types, lambda each: column_types(self.client, each))

    async def plan(self, sql: str, *, runs: bool = False) -> Plan:
        """Bind a statement, and cast the columns that need it. Nothing is run.

        If it `runs` next in any case, and is not known to need casts, its columns may be left to
        what comes with its rows.
        """
        await self.follow_settings()
        if runs and len(sql) <= SHORT:
            with contextlib.suppress(QueryardError):  # met again where it is bound
                found = classify(sql)
                if (
                    len(found) == 1
                    and self._searched == (MAIN,)
                    and self._plain.has(self._access, found[0])
                ):
                    return Plan(found[0].sql, found[0], (), opaque=True)
        return await self.call(self._plan, sql)

    @property
    def _access(self) -> Access:
        return self.client.client.reach.access

    def _plan(self, sql: str) -> Plan:
        statements = classify(sql)
        if len(statements) != 1:
            raise PostgresError("42601", "one statement was expected")
        statement = statements[0]
        if self._searched != (MAIN,):
            self.schemas().check(self._searched, statement.words)
        try:
            found = self.client.describe(statement.sql)
        except CannotDescribe:
            return Plan(statement.sql, statement, (), opaque=True)
        columns = columns_of(found.names, found.types)
        awkward = [column.name for column in columns if column.type.cast]
        if not awkward:
            self._plain.add(self._access, statement)
            return Plan(statement.sql, statement, columns)
        if statement.kind != "SELECT":
            raise not_supported(
                f"column {awkward[0]!r} of {statement.kind} has a type that PostgreSQL lacks",
                hint="cast it in the statement, for example to VARCHAR",
            )
        return Plan(statement.sql, statement, columns)

    # --- running ---------------------------------------------------------------------------------

    async def start(
        self,
        plan: Plan,
        activity: Activity,
        tell: Callable[[str], Any] | None = None,
        *,
        counted: bool = False,
    ) -> Started:
        """Submit a statement and wait for its first rows, or for its end if it gives none."""
        runs = with_casts(plan.sql, plan.columns)
        instead = None if runs == plan.sql else Instead(runs)
        handle = await self._submit(plan.sql, instead, counted=counted)
        activity.runs(handle)
        answer = await (handle if tell is None else self._told(handle, tell))
        if not answer.returns_rows:
            return Started(None, await self.call(_changed, answer), handle)
        if plan.opaque:
            columns = columns_of(tuple(answer.columns), tuple(answer.types))
            if any(column.type.cast for column in columns):
                self._plain.discard(self._access, plan.statement)
                await self.call(answer.close)
                again = Plan(plan.sql, plan.statement, columns)
                return await self.start(again, activity, tell, counted=True)
            plan = Plan(plan.sql, plan.statement, columns)
        columns = plan.columns
        _check_types(columns, answer.types)
        rows = Rows(columns, answer.batches(), answer.close, answer.is_small)
        return Started(rows, 0, handle)

    async def run(self, sql: str) -> None:
        """Run a statement of the session's own to its end: BEGIN, COMMIT, SET …"""
        handle = await self._submit(sql)
        answer = await handle
        await self.call(_changed, answer)

    async def load(self, sql: str, runs: str, activity: Activity) -> None:
        """Insert the rows of a COPY by a statement that names their file."""
        handle = await self._submit(sql, Instead(runs, trusted=True))
        activity.runs(handle)
        await self.call(_changed, await handle)

    async def _submit(
        self, sql: str, instead: Instead | None = None, *, counted: bool = False
    ) -> Handle:
        await self.follow_settings()
        options = self.settings.query_options()

        def enter() -> Handle:
            handle = self.client.submit(sql, instead=instead, counted=counted, **options)
            handle.gather(FEW_ROWS, FEW_BYTES, MOMENT_S)
            return handle

        return await self.call(enter)

    async def _told(self, handle: Handle, tell: Callable[[str], Any]) -> Answer:
        waiting = asyncio.ensure_future(_ready(handle))
        try:
            while not (await asyncio.wait([waiting], timeout=NOTICE_S))[0]:
                await tell(f"query {handle.id}: {handle.status}, {handle.progress():.0%} done")
            return waiting.result()
        finally:
            waiting.cancel()

    async def follow_settings(self) -> None:
        """Tenant, patience, time zone and schemas are the client's: they follow what is set."""
        patience_s = seconds_of("lock_timeout", self.settings["lock_timeout"])
        self.client.client.lock_s = patience_s or None
        tenant = self.settings["queryard.tenant"] or self.client.principal.tenant
        if tenant != self.client.tenant:
            self.client.narrow(tenant)
        zone = self.settings["timezone"]
        if zone != self._zone:
            self._zone = zone
            await self.run(f"SET TimeZone = {literal(zone)}")
        searched, before = self.searched(), self._searched
        if searched != before:
            self._searched = searched
            try:
                await self.run(self.schemas().statement(searched))
            except BaseException:
                self._searched = before
                raise

    def searched(self) -> tuple[str, ...]:
        """The schemas that names without one are looked for in."""
        value = self.settings["search_path"]
        return (MAIN,) if value == MAIN else self.schemas().searched(value, self._identity["user"])

    def schemas(self) -> Schemas:
        catalog = self.client.catalog
        version = catalog.version
        if self._schemas is None or self._schemas[0] != version:
            self._schemas = version, Schemas(catalog)
        return self._schemas[1]

    def table_names(self) -> set[str]:
        return {table.name.lower() for table in self.client.catalog.tables.values()}


async def _ready(handle: Handle) -> Answer:
    return await handle


def _changed(answer: Answer) -> int:
    """How many rows were changed, once the statement has ended."""
    changed = answer.changed or 0
    for _ in answer.batches():
        pass
    return changed


def _oid(kind: str) -> int:
    """The type of a parameter as DuckDB has said it; 0 where it has not, or any text will do."""
    found = wire_type(kind)
    return 0 if found.cast or found.oid == oids.TEXT else found.oid


def _check_types(columns: tuple[Column, ...], types: list[str]) -> None:
    """What is sent must be what was described: files may have changed in between."""
    if len(columns) != len(types):
        raise changed_plan(f"it has {len(types)} columns now")
    for column, kind in zip(columns, types, strict=True):
        if not column.type.cast and wire_type(kind).oid != column.type.oid:
            raise changed_plan(f"{column.name!r} is {kind} now")
