"""How many groups map tasks send on: S_comb of TLS, for keys that lie together or are scattered."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planner_tables import PaperCatalog, PaperTable, Statistics, columns

from queryard.sql.planner import plan_staged

ROWS, KEYS, TASKS = 50e6, 12e6, 2
# A key and a count.
ROW_BYTES = 16.0


class _Lines(PaperCatalog):
    """A table of lines whose equal keys lie together, or do not."""

    def __init__(self, clustered: bool | None, keys: float) -> None:
        types = columns(key="BIGINT", note="INTEGER")
        super().__init__(PaperTable("line", types, ROWS, 2e9, {"key": keys}))
        self._clustered = clustered

    def statistics(self, name: str) -> Statistics:
        found = super().statistics(name)
        of_key = replace(found.columns["key"], clustered=self._clustered)
        return replace(found, columns={**found.columns, "key": of_key})


@pytest.mark.parametrize(
    ("clustered", "keys", "parts"),
    [
        # A group is in one task; at most each task but one ends within a group.
        (True, KEYS, KEYS + TASKS),
        # Each group may be in every task.
        (False, KEYS, KEYS * TASKS),
        (None, KEYS, KEYS * TASKS),
        # No task has more groups than rows.
        (False, 0.6 * ROWS, ROWS),
    ],
)
def test_map_tasks_send_each_group_once_or_per_task(
    clustered: bool | None, keys: float, parts: float
) -> None:
    plan = plan_staged("SELECT key, count(*) FROM line GROUP BY key", _Lines(clustered, keys))
    (job,) = plan.jobs
    assert job.rows_expected == pytest.approx(keys)
    assert job.side_bytes_expected[0] == pytest.approx(parts * ROW_BYTES, rel=1e-6)
