"""Sums and counts of a trace that people ask for first: bytes, failures, where input was."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from queryard.workload.traces import Trace

# What formats call the same: the first that a trace has is taken.
_BYTES: Mapping[str, tuple[str, ...]] = {
    "read": ("input bytes",),
    "shuffled": ("shuffle read bytes", "shuffle bytes"),
    "written": ("output bytes",),
}
# How Spark's tasks ended; and what Hadoop says of the rest, and Spark of its failures.
_TASKS = re.compile(r"task ends (?!Success$)(\w+)")
_OTHERS = re.compile(r"(jobs|(?:stage|map|reduce) attempts) (?!SUCCESS$)(failed|[A-Z]*)")


def bytes_of(trace: Trace) -> dict[str, float]:
    """Bytes read, shuffled and written, as far as they were counted."""
    found = {}
    for what, names in _BYTES.items():
        known = [trace.counts[name] for name in names if name in trace.counts]
        if known:
            found[what] = known[0]
    return found if any(found.values()) else {}


def failures_of(trace: Trace) -> dict[str, int]:
    """How often tasks, jobs and the like ended in another way than well.

    >>> from queryard.workload import Workload
    >>> counts = {"task ends Success": 7, "task ends TaskKilled": 2, "jobs failed": 1}
    >>> failures_of(Trace("", "", Workload("", ()), counts=counts))
    {'tasks TaskKilled': 2, 'jobs failed': 1}
    """
    found: dict[str, int] = {}
    for name, count in trace.counts.items():
        if count and (ended := _TASKS.fullmatch(name)):
            found[f"tasks {ended[1]}"] = int(count)
        elif count and (ended := _OTHERS.fullmatch(name)):
            found[f"{ended[1]} {ended[2].lower() or 'without an end'}"] = int(count)
    return found


def localities_of(trace: Trace) -> dict[str, int]:
    """How many of the tasks had their input near; empty where the trace does not say."""
    seen = Counter(task.locality for task in trace.tasks)
    return {where: seen[where] for where in ("local", "rack", "remote") if seen[where]}
