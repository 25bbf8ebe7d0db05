"""What S³ §V leaves open, and what all its experiments have chosen."""

from __future__ import annotations

from .cluster import (
    FOLD_COST,
    GAP_S,
    HEARTBEAT_S,
    JOB_START_S,
    NOISE,
    REDUCE_S,
    REDUCE_SLOTS,
    REMOTE_PENALTY,
    RIDER_COST,
    TASK_START_S,
)
from .rivals import CHECK_S, WAVES

CHOSEN = {
    "arrivals": f"the jobs of a group together, groups {GAP_S:.0f} s apart",
    "start of a job, a batch, or an S³ sub-job": (
        f"{JOB_START_S:.0f} s: of the 27.5 s of a job that do not grow with riders, from +25.5 % "
        "in all and +28.8 % in the maps for ten merged jobs"
    ),
    "start of a sub-job, the other reading": f"{HEARTBEAT_S:.0f} s, a heartbeat of Hadoop 0.20",
    "start of a task": f"{TASK_START_S:.0f} s of the 3.32 s of a wave: half a heartbeat, a JVM",
    "rider cost": f"{RIDER_COST:.4f} of a map without its start, which is +28.8 % for ten riders",
    "last reduces": f"{REDUCE_S:g} s: 8 million records each, about a million a second",
    "reduce slots": (
        f"{REDUCE_SLOTS} per node beside the map slot, enough for the reduces of ten riders, which "
        "in the paper are 30 merged ones; reduces start at 5 % of the maps (Hadoop 0.20)"
    ),
    "reduces of S³": (
        "after each sub-job, while the next segment is read, and at the end over the last segment "
        f"and {100 * FOLD_COST:.0f} % of what was folded before; those of riders are not merged"
    ),
    "segment": f"{WAVES} blocks per slot: 2,560 blocks in the 13 sub-jobs the paper reports",
    "slot check": f"after {CHECK_S:.0f} s: all nodes are alike",
    "blocks": "64 on every node, in an order drawn by lot",
    "reading from another node": f"+{100 * REMOTE_PENALTY:.0f} % of the time of a map",
    "noise of task times": f"log-normal, {NOISE:g}",
}
