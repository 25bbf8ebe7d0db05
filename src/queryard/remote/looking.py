"""What a server tells of its queries, past and present, of its tables and of its clock."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from queryard.history.rows import QueryRecord
from queryard.live.facts import QueryView
from queryard.live.why import WaitReport
from queryard.results.ownership import Owner
from queryard.sim.forecast import Forecast

from .states import record_of, report_of, view_of
from .transport import Transport


class Looking:
    """Looks at a server with one token, and changes nothing there."""

    def __init__(self, transport: Transport, owner: Owner) -> None:
        self._transport = transport
        self._owner = owner
        # How far the clocks of the server and of this machine are apart.
        self._ahead_s = 0.0

    def get(self, path: str, params: Mapping[str, Any] | None = None) -> Any:
        """A document of the server."""
        self._owner.check()
        return self._transport.json("GET", path, params=params)

    def now(self) -> float:
        """The server's clock, in seconds."""
        if not self._ahead_s:
            self.note_clock(self._transport.json("GET", "/v1/queries", params={"limit": 1}))
        return time.monotonic() + self._ahead_s

    def note_clock(self, told: Mapping[str, Any]) -> None:
        """The server has told its time with something else."""
        self._ahead_s = told["now_s"] - time.monotonic()

    def queries(self) -> tuple[QueryView, ...]:
        """All active queries that the token may see, the earliest first."""
        told = self.get("/v1/queries", {"limit": 10_000})
        self.note_clock(told)
        return tuple(
            view_of(state)
            for state in told["queries"]
            if state["timing"]["ended_s"] is None and state["state"] in ("waiting", "running")
        )

    def why(self, query: str) -> WaitReport:
        """What is ahead of an active query."""
        return report_of(self.get(f"/v1/queries/{query}"))

    def forecasts(self) -> dict[str, Forecast]:
        """When each active query is expected to start and end."""
        told = self.get("/v1/forecasts")
        self.note_clock(told)
        return {each["query"]: Forecast(**each) for each in told["forecasts"]}

    def history(
        self, limit: int, tenant: str | None, outcomes: Sequence[str] | None
    ) -> list[QueryRecord]:
        """The last queries, in the order they came."""
        wanted = {"limit": limit, "tenant": tenant, "outcome": outcomes}
        return [record_of(row) for row in self.get("/v1/history", wanted)["queries"]]

    def past_query(self, query: str) -> QueryRecord:
        """A query of the history by its id."""
        return record_of(self.get(f"/v1/history/{query}"))

    def tables(self) -> list[dict[str, Any]]:
        """All tables that the token may read, with their columns and sizes."""
        return list(self.get("/v1/tables")["tables"])
