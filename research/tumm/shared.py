"""Schedulers, numbers and words that TuMM's experiments have in common."""

from __future__ import annotations

from queryard.metrics import Summary
from research.judging import CHANCE, direction
from research.numbers import as_percent
from research.outcome import Finding, Interval
from research.trials import Profiles

STATIC: Profiles = {
    "1:3": {"slots": {"name": "static", "maps": 1, "reduces": 3}},
    "2:2": {"slots": {"name": "static", "maps": 2, "reduces": 2}},
    "3:1": {"slots": {"name": "static", "maps": 3, "reduces": 1}},
}
TUMM: Profiles = {"TuMM": {"slots": "tumm"}}
H_TUMM: Profiles = {"H_TuMM": {"slots": "h-tumm"}}

COMMON_PARAMETERS = {
    "task times": "the geometric mean of the range in Table 4, without contention (a lone task "
    "on a slot of 2 compute units)",
    "contention": "0.25 for each further task of the kind on the node, for reduces as printed "
    "for maps; a reduce that waits counts",
    "slow start": "0.05, the default of Hadoop 0.20",
    "a reduce's time": "25 % shuffle, 12.5 % merge, 62.5 % reduce",
    "spread of task times": "log-normal, 0.07, from what speed and contention leave of the "
    "printed ranges",
    "data": "local everywhere; no heartbeats: a free slot is filled at once",
    "what TuMM knows": "nothing beforehand, only tasks that have ended",
}
HETEROGENEOUS_PARAMETERS = {
    **COMMON_PARAMETERS,
    "speed of a slot": "maps by compute units, reduces by memory (§5 says which kind gains from "
    "which); 2 units and 3.75 GB are speed 1",
}


def makespan_s(summary: Summary) -> float:
    assert summary.makespan_s is not None
    return summary.makespan_s


def fell(what: str, paper: str, gain: Interval) -> Finding:
    """A finding that something took less, where no size was printed."""
    agrees = direction(gain.mean < 0, gain, 0.0)
    note = CHANCE if agrees is None else ""
    return Finding(what, paper, gain.text(as_percent), agrees, note)
