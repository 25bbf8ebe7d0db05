"""The schedulers S³ is compared with, and what they make of a setting."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from queryard.core.state import Settings
from queryard.sim.run import SimResult, build, run_to_end
from research.trials import Setting

from .cluster import GROUPS, HEARTBEAT_S, JOB_START_S, REDUCE_SLOTS
from .map_lanes import MAP_SLOTS, LaneKernel

# 2,560 blocks in 13 sub-jobs of 40 slots.
WAVES = 5
# Rounds that wait this long for their last map leave it to itself: all nodes are alike.
CHECK_S = 60.0
LANES = {"name": "static", "maps": MAP_SLOTS, "reduces": REDUCE_SLOTS}
WHOLE, LIGHT = "S³", "S³ light"
OTHERS = ("FIFO", "MRS1", "MRS2", "MRS3")


@dataclass(frozen=True, slots=True)
class Rival:
    """A scheduler, and what a job or a merged (sub-)job costs it to start."""

    profile: Mapping[str, Any]
    start_s: float = JOB_START_S


class Times(NamedTuple):
    """TET and ART."""

    tet_s: float
    art_s: float


def s3(sub_job_start_s: float = JOB_START_S, waves: int = WAVES, reduces: str = "early") -> Rival:
    """Sub-jobs with reduces of their own, as in §IV.D, or with reduces at the end only."""
    sharing = {"name": "circular", "waves": waves, "check_s": CHECK_S, "reduces": reduces}
    return Rival({"order": "fifo", "slots": LANES, "sharing": sharing}, sub_job_start_s)


def mrshare(counts: Sequence[int]) -> Rival:
    """Batches of so many jobs; a batch waits until it is full."""
    sharing = {"name": "mrshare", "counts": list(counts), "window_s": math.inf}
    return Rival({"order": "fifo", "slots": LANES, "sharing": sharing})


def fifo() -> Rival:
    return Rival({"order": "fifo", "slots": LANES})


def rivals() -> dict[str, Rival]:
    """All that are compared: S³ with dear and with cheap sub-jobs, and the others."""
    first, second, third = GROUPS
    return {
        WHOLE: s3(),
        LIGHT: s3(HEARTBEAT_S),
        "FIFO": fifo(),
        "MRS1": mrshare([sum(GROUPS)]),
        "MRS2": mrshare([first + second, third]),
        "MRS3": mrshare(GROUPS),
    }


def run(setting: Setting, rival: Rival, seed: int, keep_journal: bool = False) -> SimResult:
    """One scheduler on one setting."""
    start = "round_start_s" if "sharing" in rival.profile else "job_start_s"
    driver = build(
        setting.workload,
        setting.nodes,
        rival.profile,
        conditions=replace(setting.conditions, **{start: rival.start_s}),
        estimates=setting.estimates,
        seed=seed,
        settings=Settings(slow_start=setting.slow_start, seed=seed),
        keep_journal=keep_journal,
        kernel=LaneKernel,
    )
    found = run_to_end(driver)
    setting.check_ended(found, str(dict(rival.profile)))
    return found


def times(setting: Setting, found: SimResult) -> Times:
    submitted = {each.query.id: each.query.submit_s for each in setting.workload.arrivals}
    responses = [found.ends[job] - at_s for job, at_s in submitted.items()]
    tet_s = max(found.ends.values()) - min(submitted.values())
    return Times(tet_s, sum(responses) / len(responses))


def measure(setting: Setting, rival: Rival, seed: int) -> Times:
    return times(setting, run(setting, rival, seed))
