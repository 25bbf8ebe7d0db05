"""A session on a server, with the methods of an embedded one."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import uuid
import weakref
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NoReturn, Unpack

import httpx

from queryard.core.errors import QueryardError
from queryard.engine.classify import classify
from queryard.engine.native import Parameters
from queryard.history.rows import QueryRecord
from queryard.live.amounts import as_age, as_seconds, as_time_left
from queryard.live.client import check_types
from queryard.live.facts import QueryView
from queryard.live.online import OnlineAnswers
from queryard.live.options import QueryOptions, check_options
from queryard.live.request import Plan, checked_plan, checked_priority, checked_tenant
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
from .credentials import credentials
from .errors import NotKnown, NotOnServer
from .handle import RemoteHandle
from .online import follow
from .parameters import as_json
from .states import estimate_of, explanation_of, record_of, report_of, view_of
from .transport import ARROW, PATIENCE_S, Transport

# How long a submission waits for the first rows, so that most answers take one request.
FIRST_S = 20.0


def connect(
    server: str | None = None,
    token: str | None = None,
    *,
    tenant: str | None = None,
    label: str = "",
    ca: str | None = None,
    patience: float | str = PATIENCE_S,
    plan: Plan | None = None,
) -> RemoteSession:
    """Open a session on a server.

    `server` is its address, as "http://host:8080". The address and the token may also stand in the
    environment (QUERYARD_SERVER, QUERYARD_TOKEN), or in a file of mode 0600
    (~/.config/queryard/server.toml). `tenant` is one below the token's own, `label` is shown in
    lists of sessions, `ca` a file of certificates to trust. A server that does not answer is asked
    again for `patience`. `plan` is how queries run unless they say otherwise.
    """
    found = credentials(server, token, ca)
    transport = Transport(
        found.server, found.token, ca=found.ca, patience_s=as_age(patience, "patience")
    )
    try:
        return RemoteSession(transport, tenant=tenant, label=label, plan=plan)
    except BaseException:
        transport.close()
        raise


class RemoteSession:
    """Queries go in by `sql` and `submit`, from any thread; close it, or use it with `with`.

    Settings, temporary tables and transactions belong to it, as to an embedded session.
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
        self._lock = threading.Lock()
        self._tenant = tenant
        self._label = label
        self._plan = None if plan is None else checked_plan(plan)
        # Whether later statements may rely on earlier ones, so that the session must stay.
        self._has_state = False
        self._catalog: RemoteCatalog | None = None
        # How far the clocks of the server and of this machine are apart.
        self._ahead_s = 0.0
        self._session = self._opened()
        self._finalizer = weakref.finalize(self, _close, transport, self._owner, [self._session])

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

    def _opened(self) -> str:
        body = {"label": self._label, "tenant": self._tenant}
        told = self._transport.json("POST", "/v1/sessions", body=body, again=True)
        return str(told["id"])

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
        **options: Unpack[QueryOptions],
    ) -> OnlineAnswers:
        """Answers that come early and refine: `for answer in qy.online(sql, stop_at=0.01): …`.

        The options are those of an embedded session.
        """
        check_options(options, QueryOptions.__annotations__)
        every_s = as_age(every, "every")
        wish = {
            "stop_at": stop_at,
            "confidence": confidence,
            "every": every_s,
            "within": None if within is None else as_seconds(within, "within"),
            "columns": [columns] if isinstance(columns, str) else list(columns),
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
        *,
        plan: Plan | None = None,
        tenant: str | None = None,
        priority: float = 0.0,
        memory: int | str | None = None,
        time_limit: float | str | None = None,
        deadline: float | str | timedelta | datetime | None = None,
        idempotency_key: str = "",
        keep: float | str | None = None,
    ) -> RemoteHandle:
        check_types(sql, parameters)
        self._owner.check()
        reads = all(statement.reads for statement in classify(sql))
        if keep is not None:
            as_seconds(keep, "keep")
        if not isinstance(idempotency_key, str):
            raise QueryardError(f"idempotency_key: must be a text, got {idempotency_key!r}")
        # With a key a statement runs once, though its request may be sent twice.
        key = idempotency_key or ("" if reads else f"once-{uuid.uuid4().hex}")
        body = {
            "sql": sql,
            "parameters": as_json(parameters) or None,
            "plan": self._plan if plan is None else checked_plan(plan),
            "tenant": None if tenant is None else checked_tenant(tenant),
            "priority": checked_priority(priority),
            "memory": memory,
            "time_limit": None if time_limit is None else _time(time_limit, "time_limit"),
            "deadline": None if deadline is None else as_time_left(deadline, "deadline"),
            "idempotency_key": key,
            "online": online or False,
        }
        self._has_state = self._has_state or not reads
        response = self._post(body, wait_s, again=bool(key) or not wait_s)
        keeps = keep is not None
        if response.headers["content-type"].startswith(ARROW):
            state = _begun(response.headers["queryard-query"], sql)
            return RemoteHandle(
                self._transport,
                state,
                has_side_effects=not reads,
                keeps=keeps,
                response=response,
                owner=self,
            )
        with self._transport.reading(response):
            state = json.loads(response.read())
        self._note_clock(state)
        return RemoteHandle(
            self._transport, state, has_side_effects=not reads, keeps=keeps, owner=self
        )

    def _post(self, body: Mapping[str, Any], wait_s: float, again: bool) -> httpx.Response:
        """Send a query; the session is opened again where the server has closed an idle one."""
        with self._lock:
            session = self._session
        try:
            return self._send(body, session, wait_s, again)
        except NotKnown as error:
            self._renew(session, error)
        return self._send(body, self._session, wait_s, again)

    def _send(
        self, body: Mapping[str, Any], session: str, wait_s: float, again: bool
    ) -> httpx.Response:
        return self._transport.begin(
            "POST",
            "/v1/queries",
            body={**body, "session": session},
            params={"wait": wait_s} if wait_s else None,
            accept=ARROW if wait_s else "application/json",
            again=again,
            wait_s=wait_s,
        )

    def _renew(self, session: str, error: NotKnown) -> None:
        with self._lock:
            if self._session != session:
                return  # another thread has
            if self._has_state:
                raise QueryardError(
                    f"{self.url}: the session has ended on the server, as it was idle for long or "
                    "the server has restarted. Its settings, temporary tables and transactions are "
                    "gone; open another with queryard.connect"
                ) from error
            self._session = self._opened()
            self._finalizer.detach()
            self._finalizer = weakref.finalize(
                self, _close, self._transport, self._owner, [self._session]
            )

    def query(self, query: str) -> RemoteHandle:
        """A handle of a query by its id: an active query, or one with rows that are kept."""
        self._owner.check()
        state = self._transport.json("GET", f"/v1/queries/{query}")
        reads = all(statement.reads for statement in classify(state["sql"]))
        return RemoteHandle(self._transport, state, has_side_effects=not reads, owner=self)

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
        check_types(sql, parameters)
        self._owner.check()
        body = {
            "sql": sql,
            "parameters": as_json(parameters) or None,
            "plan": self._plan if plan is None else checked_plan(plan),
            "session": self._session,
            **more,
        }
        return self._transport.json("POST", f"/v1/{what}", body=body, again=not more.get("analyze"))

    def cancel(self, query: str) -> None:
        """Stop a query by its id; an unknown or ended one is ignored."""
        self._owner.check()
        with contextlib.suppress(NotKnown):
            self._transport.json("DELETE", f"/v1/queries/{query}")

    # --- looking on ------------------------------------------------------------------------------

    def now(self) -> float:
        """The server's clock, in seconds. All times it tells are on it."""
        if not self._ahead_s:
            self._note_clock(self._transport.json("GET", "/v1/queries", params={"limit": 1}))
        return time.monotonic() + self._ahead_s

    def _note_clock(self, told: Mapping[str, Any]) -> None:
        self._ahead_s = told["now_s"] - time.monotonic()

    def queries(self) -> tuple[QueryView, ...]:
        """All active queries that the token may see, the earliest first."""
        self._owner.check()
        told = self._transport.json("GET", "/v1/queries", params={"limit": 10_000})
        self._note_clock(told)
        return tuple(
            view_of(state)
            for state in told["queries"]
            if state["timing"]["ended_s"] is None and state["state"] in ("waiting", "running")
        )

    def forecasts(self) -> dict[str, Forecast]:
        """When each query is expected to start and end, if estimates are right and none arrives."""
        found: dict[str, Forecast] = {}
        for view in self.queries():
            try:
                forecast = self.why(view.id).forecast
            except NotKnown:
                continue  # it has ended meanwhile
            if forecast is not None:
                found[view.id] = forecast
        return found

    def why(self, query: str) -> WaitReport:
        """What is ahead of an active query, which rule holds it, when it will start and end."""
        self._owner.check()
        return report_of(self._transport.json("GET", f"/v1/queries/{query}"))

    def history(
        self, limit: int = 100, tenant: str | None = None, outcomes: Sequence[str] | None = None
    ) -> list[QueryRecord]:
        """The last queries of the token's tenant (an admin's: of all), in the order they came."""
        self._owner.check()
        wanted = {"limit": limit, "tenant": tenant, "outcome": outcomes}
        told = self._transport.json("GET", "/v1/history", params=wanted)
        return [record_of(row) for row in told["queries"]]

    def past_query(self, query: str) -> QueryRecord:
        """A query of the history by its id."""
        self._owner.check()
        return record_of(self._transport.json("GET", f"/v1/history/{query}"))

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
        self._owner.check()
        found: list[dict[str, Any]] = self._transport.json("GET", "/v1/tables")["tables"]
        return found

    def refresh(self) -> tuple[str, ...]:
        """Ask for the tables again; the names of those that have changed since `catalog` was read.

        The server looks at its files by itself, and at its catalog file when it gets SIGHUP.
        """
        self._owner.check()
        return self.catalog.refresh()

    def whoami(self) -> dict[str, str]:
        """The name, the tenant and the role of the token, and the version of the server."""
        self._owner.check()
        found: dict[str, str] = self._transport.json("GET", "/v1/whoami")
        return found

    @property
    def controls(self) -> RemoteControls:
        """What an admin can change of the server: policy, tenants, pause, drain; and what-ifs."""
        return RemoteControls(self._transport)

    def use_profile(self, profile: str | Mapping[str, Any]) -> None:
        """Let the server decide by another policy from now on; for an admin's token."""
        self._owner.check()
        self._transport.json("PUT", "/v1/profiles/current", body={"profile": profile}, again=True)

    def scheduler(self, limit: int = 100) -> dict[str, Any]:
        """The policy of the server, its changes and the decisions of a portfolio, as plain data.

        Reasons and decisions are for an admin's token.
        """
        self._owner.check()
        found: dict[str, Any] = self._transport.json(
            "GET", "/v1/scheduler", params={"limit": limit}
        )
        return found

    # --- what a server does not do ---------------------------------------------------------------

    def create_function(self, *given: Any, **options: Any) -> NoReturn:
        """Refused: a Python function cannot run on a server."""
        raise _not_here("create_function", "write it as a macro: CREATE TEMP MACRO …")

    def register(self, *given: Any, **options: Any) -> NoReturn:
        """Refused: the tables of a server are named in its catalog file."""
        raise _not_here(
            "register", "name the table in the server's catalog file, or CREATE TEMP TABLE …"
        )

    def unregister(self, name: str) -> NoReturn:
        """Refused, as `register` is."""
        raise _not_here("unregister", "the tables of a server are named in its catalog file")

    def iterate(self, *given: Any, **options: Any) -> NoReturn:
        """Refused: a Python program cannot run on a server."""
        raise _not_here("iterate", "run the program in an embedded session")

    def shuffle(self, *given: Any, **options: Any) -> NoReturn:
        """Refused: shuffled copies are made where the data is."""
        raise _not_here("shuffle", "run `queryard shuffle TABLE` on the server's machine")

    def report(self) -> NoReturn:
        """Refused: what a server costs is in its metrics."""
        raise _not_here("report", "GET /metrics has the figures of the server")

    # --- the end ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Cancel what runs in the session, and free everything."""
        self._finalizer()

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive

    def __repr__(self) -> str:
        return f"<RemoteSession on {self.url}{', closed' if self.closed else ''}>"

    def __enter__(self) -> RemoteSession:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _close(transport: Transport, owner: Owner, session: list[str]) -> None:
    """A finalizer: it must not keep a reference to the session."""
    if owner.is_here:
        transport.later("DELETE", f"/v1/sessions/{session[0]}")
        transport.close()


def _begun(query: str, sql: str) -> dict[str, Any]:
    """What is known of a query before its state was asked for."""
    return {"id": query, "sql": sql, "state": "running"}


def _time(amount: float | str, what: str) -> float | str:
    """A time as it was written, which errors repeat."""
    as_seconds(amount, what)
    return amount


def _not_here(what: str, remedy: str) -> NotOnServer:
    return NotOnServer(f"{what}: a session on a server cannot do this; {remedy}")
