"""Rough costs of the work of tasks, to size them and to choose between ways of joining.

Seconds of one core of a present machine, from TPC-H runs; only their ratios matter much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

SCAN_ROW_S = 15e-9
SCAN_VALUE_S = 10e-9
# Of text: to find the ends of its values, and to make one of them.
TEXT_ROW_S = 800e-9
TEXT_VALUE_S = 100e-9
FILTER_ROW_S = 5e-9
PROBE_ROW_S = 25e-9
BUILD_ROW_S = 45e-9
GROUP_ROW_S = 40e-9
SORT_ROW_S = 150e-9
WRITE_VALUE_S = 12e-9
SHUFFLE_VALUE_S = 30e-9

SMALL_S = 0.15  # not worth a second task
TASK_S = 0.7  # aimed at
TASK_START_S = 0.03  # footers, planning, registration
PARTITION_BYTES = 96e6
MOST_PARTITIONS = 64


@dataclass(frozen=True, slots=True)
class Sizing:
    """What the caller may fix instead of leaving it to estimates."""

    target_bytes: float | None = None
    broadcast_bytes: float = 128e6
    partitions: int | None = None
    split_bytes: float | None = None
    """Of canonical splits of text; must be the same for all plans that are to share scans."""

    def partitions_for(self, size_bytes: float, work_s: float) -> int:
        """How many reduce tasks for so much data and work."""
        if self.partitions is not None:
            return self.partitions
        wanted = max(size_bytes / PARTITION_BYTES, work_s / TASK_S)
        if wanted <= SMALL_S / TASK_S:
            return 1
        # An even number at least keeps two slots equally busy.
        return min(max(2 * math.ceil(wanted / 2), 2), MOST_PARTITIONS)


def tasks_for(work_s: float, build_s: float) -> int:
    """How many map tasks for so much work, if each also builds its hash tables anew.

    >>> tasks_for(0.1, 0.0), tasks_for(5.0, 0.0), tasks_for(5.0, 0.5)
    (1, 8, 4)
    """
    if work_s <= SMALL_S:
        return 1
    wanted = max(2 * math.ceil(work_s / TASK_S / 2), 2)
    per_task = build_s + TASK_START_S
    affordable = max(2 * round(work_s / (2.5 * per_task) / 2), 2)
    return min(wanted, affordable)
