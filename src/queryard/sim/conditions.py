"""What the world does to the work: the settings of the hidden truth."""

from __future__ import annotations

from dataclasses import dataclass, fields

from queryard.core.errors import InvalidModel
from queryard.workload.scan_costs import SCAN_COSTS


@dataclass(frozen=True, slots=True)
class Conditions:
    """How real durations come about. The defaults are an ideal world without any noise.

    `contention` is what one more task of the same kind on the node adds: 0.25 makes map tasks
    25 % slower with two per node than with one (TuMM: 18.5 s and 23.1 s). It is computed when a
    task starts. `rider_cost` is what one more rider adds to a merged scan: 0.0283 gives the
    25.5 % of ten riders (S³). `memory_gain` is the share of a map's time that is saved when
    its split is among the last `memory_cache_bytes` read on the node.
    Parsed segments are kept for others in `segment_cache_bytes` on each host (with 0 nothing is
    kept), `kept_share` bytes of each byte; 0.158 is what Parquet takes of CSV.
    `fold_cost` is what reduces take at the end for what they have folded early, as a share of it.
    `remote_penalty` is the share added when the split is on no node of the same rack,
    `rack_penalty` when it is on another node of the rack. Nodes without a rack are far apart.
    """

    noise: float = 0.0
    straggler_share: float = 0.0
    straggler_factor: float = 5.0
    remote_penalty: float = 0.0
    rack_penalty: float = 0.0
    memory_gain: float = 0.0
    memory_cache_bytes: float = 0.0
    segment_cache_bytes: float = 0.0
    kept_share: float = SCAN_COSTS["text"].kept
    fold_cost: float = 0.0
    contention: float = 0.0
    task_start_s: float = 0.0
    job_start_s: float = 0.0
    round_start_s: float = 0.0
    rider_cost: float = 0.0
    task_failure: float = 0.0
    node_mtbf_s: float = 0.0
    node_repair_s: float = 60.0
    node_boot_s: float = 30.0
    revoke_delay_s: float = 0.0
    progress_every_s: float = 1.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise InvalidModel(f"{field.name} must be a number of at least 0, got {value!r}")
        for name in ("straggler_share", "task_failure", "memory_gain"):
            if getattr(self, name) >= 1:
                raise InvalidModel(f"{name} is a share below 1, got {getattr(self, name)!r}")
