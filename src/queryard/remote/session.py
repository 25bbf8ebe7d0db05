"""A session on a server, with the methods of an embedded one."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Unpack

import httpx

from queryard.engine.native import Parameters
from queryard.engine.syntax.classify import classify
from queryard.history.rows import QueryRecord
from queryard.live.amounts import as_age, as_seconds
from queryard.live.facts import QueryView
from queryard.live.online import OnlineAnswers, checked_groups
from queryard.live.options import ONLINE_OPTIONS, QueryOptions, check_options
from queryard.live.request import Plan, checked_plan
from queryard.live.why import WaitReport
from queryard.results.answer import Answer
from queryard.results.estimate import Estimate
from queryard.results.explanation import Explanation
from queryard.results.online import AnswerLog
from queryard.results.ownership import Owner
from queryard.sim.forecast import Forecast
from queryard.sql.catalog.quoting import written_name

from .catalog import RemoteCatalog
from .controls import RemoteControls
from .embedded_only import EmbeddedOnly
from .errors import NotKnown, NotOnServer
from .handle import RemoteHandle
from .looking import Looking
from .online import follow
from .server_session import ServerSession
from .states import estimate_of, explanation_of
from .submission import asked, only_reads, submission
from .transport import ARROW, Transport

# How long a submission waits for the first rows, so that most answers take one request.
FIRST_S = 20.0


class RemoteSession(EmbeddedOnly):
    """Queries go in by `sql` and `submit`, from any thread; close it, or use it with `with`.

    Settings, temporary tables and transactions belong to it, as to an embedded session. The server
    keeps a session for it from the first statement on that does more than read.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        tenant: str | None = None,
        label: str = "",
        plan: Plan | None = None,
    ) -> None:
        self._transport = transport
        self._owner = Owner()
        self._plan = None if plan is None else checked_plan(plan)
        self._catalog: RemoteCatalog | None = None
        self._looking = Looking(transport, self._owner)
        self._session = ServerSession(transport, self._owner, tenant=tenant, label=label)

    @property
    def url(self) -> str:
        """The address of the server."""
        return self._transport.url

    @property
    def plan(self) -> Plan:
        """How queries run unless they say otherwise; "auto" leaves it to the server."""
        return self._plan or "auto"

    @property
    def is_here(self) -> bool:
        """Whether this is the process that has opened it, and no fork."""
        return self._owner.is_here

    def check_owner(self) -> None:
        """Raise in a forked process: the connections are the other process's."""
        self._owner.check()

    # --- asking ----------------------------------------------------------------------------------

    def sql(self, sql: str, parameters: Parameters = (), **options: Unpack[QueryOptions]) -> Answer:
        """Run a statement and give its answer as soon as its first rows are there.

        Options are those of `submit`. Statements without rows have run when this returns.
        """
        check_options(options, QueryOptions.__annotations__)
        handle = self._enter(sql, parameters, FIRST_S, **options)
        try:
            answer = handle.take()
        except BaseException:
            handle.cancel_quietly()
            raise
        if handle.has_side_effects:
            handle.wait()
        return answer

    def submit(
        self, sql: str, parameters: Parameters = (), **options: Unpack[QueryOptions]
    ) -> RemoteHandle:
        """Ask for something and go on; the handle tells how far it is.

        The options are those of an embedded session. The rows of a query with `keep` are kept for
        as long as the server keeps rows.
        """
        check_options(options, QueryOptions.__annotations__)
        return self._enter(sql, parameters, 0.0, **options)

    def online(
        self,
        sql: str,
        *,
        stop_at: float | None = None,
        confidence: float = 0.95,
        every: float | str = 0.5,
        within: float | str | None = None,
        columns: Sequence[str] = (),
        groups: Sequence[Any] = (),
        measure: Callable[[Any], float] | None = None,
        **options: Unpack[QueryOptions],
    ) -> OnlineAnswers:
        """Answers that come early and refine: `for answer in qy.online(sql, stop_at=0.01): …`.

        The options are those of an embedded session, but there is no `measure`.
        """
        check_options(options, (*QueryOptions.__annotations__, *ONLINE_OPTIONS))
        if measure is not None:
            raise NotOnServer(
                "measure: a session on a server cannot do this; a function runs in its own process "
                "only: name the columns or the groups that count"
            )
        every_s = as_age(every, "every")
        wish = {
            "stop_at": stop_at,
            "confidence": confidence,
            "every": every_s,
            "within": None if within is None else as_seconds(within, "within"),
            "columns": [columns] if isinstance(columns, str) else list(columns),
            "groups": [_as_group(each) for each in checked_groups(groups)],
        }
        handle = self._enter(sql, (), 0.0, wish, **options)
        log = AnswerLog()
        follow(self._transport, handle.id, log)
        return OnlineAnswers(handle, log, every_s)

    def _enter(
        self,
        sql: str,
        parameters: Parameters,
        wait_s: float,
        online: Mapping[str, Any] | None = None,
        **options: Unpack[QueryOptions],
    ) -> RemoteHandle:
        self._owner.check()
        given = submission(sql, parameters, self._plan, online, **options)

        def send(session: str | None) -> httpx.Response:
            # It may be sent twice: a statement with side effects has a key, and a read whose
            # connection drops is dropped by the server.
            return self._transport.begin(
                "POST",
                "/v1/queries",
                body={**given.body, "session": session},
                params={"wait": wait_s} if wait_s else None,
                accept=ARROW if wait_s else "application/json",
                again=True,
                wait_s=wait_s,
            )

        response = self._session.run(send, given.statements)
        has_rows = response.headers["content-type"].startswith(ARROW)
        if has_rows:
            state = _begun(response.headers["queryard-query"], sql)
        else:
            with self._transport.reading(response):
                state = json.loads(response.read())
            self._looking.note_clock(state)
        if given.reads:
            self._session.began(state["id"])
        return RemoteHandle(
            self._transport,
            state,
            has_side_effects=not given.reads,
            keeps=given.keeps,
            response=response if has_rows else None,
            owner=self,
            over=self._session.over,
        )

    def query(self, query: str) -> RemoteHandle:
        """A handle of a query by its id: an active query, or one with rows that are kept."""
        state = self._looking.get(f"/v1/queries/{query}")
        acts = not only_reads(state["sql"])
        return RemoteHandle(self._transport, state, has_side_effects=acts, owner=self)

    def explain(
        self,
        sql: str,
        parameters: Parameters = (),
        *,
        analyze: bool = False,
        plan: Plan | None = None,
    ) -> Explanation:
        """How a statement would be run; with `analyze` it is run, for the real figures."""
        return explanation_of(self._look("explain", sql, parameters, plan, analyze=analyze))

    def estimate(
        self, sql: str, parameters: Parameters = (), *, plan: Plan | None = None
    ) -> Estimate:
        """What a statement would read, take and give, with intervals; it is planned, not run."""
        return estimate_of(self._look("estimate", sql, parameters, plan))

    def _look(
        self, what: str, sql: str, parameters: Parameters, plan: Plan | None, **more: Any
    ) -> Any:
        self._owner.check()
        body = asked(sql, parameters, plan, self._plan) | more
        runs = bool(more.get("analyze"))

        def send(session: str | None) -> Any:
            named = {**body, "session": session}
            return self._transport.json("POST", f"/v1/{what}", body=named, again=not runs)

        return self._session.run(send, classify(sql) if runs else ())

    def cancel(self, query: str) -> None:
        """Stop a query by its id; an unknown or ended one is ignored."""
        self._owner.check()
        with contextlib.suppress(NotKnown):
            self._transport.json("DELETE", f"/v1/queries/{query}")

    # --- looking on ------------------------------------------------------------------------------

    def now(self) -> float:
        """The server's clock, in seconds. All times it tells are on it."""
        return self._looking.now()

    def queries(self) -> tuple[QueryView, ...]:
        """All active queries that the token may see, the earliest first."""
        return self._looking.queries()

    def forecasts(self) -> dict[str, Forecast]:
        """When each query is expected to start and end, if estimates are right and none arrives."""
        return self._looking.forecasts()

    def why(self, query: str) -> WaitReport:
        """What is ahead of an active query, which rule holds it, when it will start and end."""
        return self._looking.why(query)

    def history(
        self, limit: int = 100, tenant: str | None = None, outcomes: Sequence[str] | None = None
    ) -> list[QueryRecord]:
        """The last queries of the token's tenant (an admin's: of all), in the order they came."""
        return self._looking.history(limit, tenant, outcomes)

    def past_query(self, query: str) -> QueryRecord:
        """A query of the history by its id."""
        return self._looking.past_query(query)

    @property
    def catalog(self) -> RemoteCatalog:
        """The tables that the token may read, with their columns."""
        if self._catalog is None:
            self._catalog = RemoteCatalog(self.table_states)
        return self._catalog

    def tables(self) -> tuple[str, ...]:
        """The names of all tables that the token may read, as SQL writes them."""
        return tuple(written_name(table["name"]) for table in self.table_states())

    def table_states(self) -> list[dict[str, Any]]:
        """All tables that the token may read, with their columns and sizes."""
        return self._looking.tables()

    def refresh(self) -> tuple[str, ...]:
        """Ask for the tables again; the names of those that have changed since `catalog` was read.

        The server looks at its files by itself, and at its catalog file when it gets SIGHUP.
        """
        self._owner.check()
        return self.catalog.refresh()

    def whoami(self) -> dict[str, str]:
        """The name, the tenant and the role of the token, and the version of the server."""
        return dict(self._looking.get("/v1/whoami"))

    @property
    def controls(self) -> RemoteControls:
        """What an admin can change of the server: policy, tenants, pause, drain; and what-ifs."""
        return RemoteControls(self._transport)

    def use_profile(self, profile: str | Mapping[str, Any], *, reason: str = "") -> None:
        """Let the server decide by another policy from now on; for an admin's token.

        The server records the token that has chosen it, and the `reason`.
        """
        self._owner.check()
        if reason:
            self.controls.profile(profile, reason=reason)
            return
        self._transport.json("PUT", "/v1/profiles/current", body={"profile": profile}, again=True)

    def scheduler(self, limit: int = 100) -> dict[str, Any]:
        """The policy of the server, its changes and the decisions of a portfolio, as plain data.

        Reasons and decisions are for an admin's token.
        """
        return dict(self._looking.get("/v1/scheduler", {"limit": limit}))

    # --- the end ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Cancel what runs in the session, and free everything."""
        self._session.close()

    @property
    def closed(self) -> bool:
        return self._session.closed

    def __repr__(self) -> str:
        return f"<RemoteSession on {self.url}{', closed' if self.closed else ''}>"

    def __enter__(self) -> RemoteSession:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _begun(query: str, sql: str) -> dict[str, Any]:
    """What is known of a query before its state was asked for."""
    return {"id": query, "sql": sql, "state": "running"}


def _as_group(group: object) -> object:
    """A group as JSON: values that JSON lacks are texts, as they are shown."""
    if isinstance(group, tuple):
        return [_as_group(value) for value in group]
    if isinstance(group, Decimal):
        return float(group)
    return group if group is None or isinstance(group, int | float | str) else str(group)
