"""What pages show of a history: many queries summed up, days, and one query with its slots.

All of it is found by SQL through indices, and bounded: see `stretches`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from . import stretches
from .reading import HistoryReader

Row = Mapping[str, Any]


class Overviews(HistoryReader):
    """A reader for stretches of time. `tenant` stands for those below it, too; None for all."""

    def ended(
        self, since: float, until: float, tenant: str | None, *, limit: int, characters: int
    ) -> Any:
        """Queries that ended in a stretch of time: the last `limit` of them.

        The latest session comes first, and templates are cut. It is an Arrow table: `late_s` is how
        long after its deadline a query ended, below 0 if before, and null without a deadline;
        `is_twin` if it was answered by the execution of another query.
        """
        import pyarrow as pa

        schema = ended_schema()
        batches: list[Any] = []
        for row in self._rows(stretches.SESSIONS, since=since, until=until):
            values = {
                "session": row["session"],
                "since": since,
                "until": until,
                "tenant": tenant,
                "limit": limit - sum(len(batch) for batch in batches),
                "characters": characters,
            }
            for part in self._tuples(stretches.ENDED, values):
                columns = zip(zip(*part, strict=True), schema, strict=True)
                arrays = [pa.array(column, field.type) for column, field in columns]
                batches.append(pa.record_batch(arrays, schema=schema))
        return pa.Table.from_batches(batches, schema)

    def days(self, since: float, until: float) -> list[Row]:
        """Sums by day and tenant."""
        return list(self._rows(stretches.DAYS, since=since, until=until))

    def page(
        self,
        since: float,
        until: float,
        tenant: str | None,
        *,
        limit: int,
        skip: int,
        characters: int,
    ) -> list[Row]:
        """Queries that ended in a stretch of time, the latest first; texts are cut."""
        return list(
            self._rows(
                stretches.PAGE,
                since=since,
                until=until,
                tenant=tenant,
                limit=limit,
                skip=skip,
                characters=characters,
            )
        )

    def costs_by_step(self, since: float, until: float, step_s: float) -> list[Row]:
        """What sessions cost and had to do, summed up by steps of time.

        Gauges are sums of their values times seconds, and all else is a plain sum.
        """
        return list(self._rows(stretches.COSTS, since=since, until=until, step_s=step_s))

    def policy_changes(self, until: float, limit: int) -> list[Row]:
        """The last policies that came into force before a time, the latest first."""
        rows = self._rows(stretches.POLICIES, until=until, limit=limit)
        return [{**row, "profile": json.loads(row["profile"])} for row in rows]

    # --- one query ---------------------------------------------------------------------------

    def jobs_of(self, session: str, query: str) -> list[Row]:
        return list(self._rows(stretches.JOBS, session=session, query=query))

    def held_of(self, session: str, query: str) -> dict[str, float]:
        """What held it before its first slot: seconds by reason."""
        rows = self._rows(stretches.HELD, session=session, query=query)
        return {row["reason"]: row["seconds"] for row in rows}

    def leases_of(self, session: str, query: str, limit: int) -> list[Row]:
        """The slots that it held under leases, the first `limit` of them."""
        return list(self._rows(stretches.LEASES, session=session, query=query, limit=limit))

    def tasks_of(self, session: str, query: str, limit: int) -> list[Row]:
        return list(self._rows(stretches.TASKS, session=session, query=query, limit=limit))

    def rides_of(self, session: str, query: str, limit: int) -> list[Row]:
        """Queries that shared launches of its tasks: one row per launch and query."""
        return list(self._rows(stretches.RIDES, session=session, query=query, limit=limit))

    def twins_of(
        self, session: str, query: str, twin_of: str, since_s: float, until_s: float, limit: int
    ) -> list[Row]:
        """Queries that were answered by the same execution, asked between two times."""
        return list(
            self._rows(
                stretches.TWINS,
                session=session,
                query=query,
                twin_of=twin_of,
                since_s=since_s,
                until_s=until_s,
                limit=limit,
            )
        )


def ended_schema() -> Any:
    """The columns of `Overviews.ended`, as Arrow knows them."""
    import pyarrow as pa

    types = {"FLOAT": pa.float64(), "INTEGER": pa.int64(), "TEXT": pa.string()}
    return pa.schema([(name, types[kind]) for name, kind in stretches.ENDED_COLUMNS.items()])
