"""The hidden truth: how long each task really takes. Policies never see this.

Chance is drawn from tables made once from the seed and looked up by job and task, so that the
same task is equally lucky under every policy compared.
"""

from __future__ import annotations

import math
import random
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from zlib import crc32

from queryard.core.commands import Launch
from queryard.core.entities import JobState
from queryard.core.model import MAP, Job, Table
from queryard.core.state import State
from queryard.workload.model import JobTruth

from .conditions import Conditions
from .segments import Segments

TABLE = 1 << 14
# Odd strides walk the whole table; two so that luck and failure are not the same draw.
TASK_STRIDE = 7919
TRY_STRIDE = 104_729
BY_CHANCE = "the task failed by chance"


class JobPhysics:
    """What is true of one job, ready for use."""

    __slots__ = (
        "attempts",
        "folded",
        "map_s",
        "map_sizes",
        "parses",
        "ready_s",
        "reduce_sizes",
        "rest_s",
        "salt",
        "shuffle_s",
        "spec",
        "truth",
    )

    def __init__(self, spec: Job, truth: JobTruth, salt: int) -> None:
        self.spec = spec
        self.truth = truth
        self.salt = salt
        self.map_s = truth.map_s
        # Whether what it parses can be kept for others.
        self.parses = truth.make_s > 0 and len(spec.scans) == 1
        self.shuffle_s = truth.shuffle_s
        self.rest_s = truth.merge_s + truth.reduce_s
        self.ready_s: float | None = None
        # Reduce -> the share of the maps of which it has folded the output.
        self.folded: dict[int, float] = {}
        self.attempts: dict[tuple[str, int], int] = {}
        self.map_sizes = _relative(truth.map_times_s or (spec.map.sizes if spec.map else ()))
        self.reduce_sizes = _relative(
            truth.reduce_times_s or (spec.reduce.sizes if spec.reduce else ())
        )

    def read(self, tables: Iterable[Table]) -> None:
        """Map tasks take as long as their splits are large, unless sizes were given."""
        if not self.map_sizes:
            self.map_sizes = _relative([split.bytes for t in tables for split in t.splits])


class Truth:
    """Durations of launches, from the jobs' physics, the conditions and chance."""

    def __init__(self, conditions: Conditions, seed: int, is_believed: bool = False) -> None:
        self.conditions = conditions
        # Whether this is what the kernel expects, for a forecast, and not what will be.
        self.is_believed = is_believed
        self.jobs: dict[str, JobPhysics] = {}
        # Whether some job can share what it parses, and what is kept of that.
        self.has_parsing = False
        self.segments = self._empty_segments({})
        self.has_outputs = False
        self._rounds: dict[str, float] = {}
        self._recent: dict[str, OrderedDict[tuple[str, int], float]] = {}
        self._recent_bytes: dict[str, float] = {}
        c = conditions
        self._luck = _luck_table(c, seed) if c.noise or c.straggler_share else ()
        chance = random.Random(f"{seed}:failures")
        self._chance = [chance.random() for _ in range(TABLE)] if c.task_failure else []
        self._seed = seed
        self._starts = bool(c.task_start_s or c.job_start_s or c.round_start_s)
        self._reads = bool(c.remote_penalty or c.rack_penalty or c.memory_cache_bytes)
        # Whether nothing but luck makes tasks of a job differ.
        self._by_luck = not (self._starts or self._reads or c.contention)

    def add(self, job_id: str, spec: Job, truth: JobTruth) -> JobPhysics:
        # The same job is equally lucky whatever else arrives, so also when it runs alone.
        physics = JobPhysics(spec, truth, crc32(f"{self._seed}:{job_id}".encode()) % TABLE)
        self.jobs[job_id] = physics
        self.has_outputs = self.has_outputs or truth.map_output_bytes > 0
        self.has_parsing = self.has_parsing or physics.parses
        return physics

    def believe_kept(self, shares: Mapping[str, float]) -> None:
        """In a forecast: these shares of tables are kept parsed."""
        self.segments = self._empty_segments(shares)

    def _empty_segments(self, believed: Mapping[str, float]) -> Segments:
        # How much room there is, a forecast does not know.
        budget = math.inf if self.is_believed else self.conditions.segment_cache_bytes
        return Segments(budget, self.conditions.kept_share, believed)

    def output_bytes(self, launch: Launch) -> float:
        """The output bytes of a launch of maps."""
        if launch.tasks[0].kind != MAP:
            return 0.0
        return sum(self.jobs[task.job].truth.map_output_bytes for task in launch.tasks)

    # --- durations -------------------------------------------------------------------------

    def map_seconds(self, launch: Launch, state: State) -> float:
        """How long a launch of map tasks takes; riders share the slowest one's read."""
        _, node_id, tasks, round, now = launch
        job_id, _, index = tasks[0]
        physics = self.jobs[job_id]
        node = state.nodes[node_id]
        seconds = physics.map_s / node.spec.map_speed
        if self._by_luck and len(tasks) == 1 and not (physics.map_sizes or physics.parses):
            if self._luck:
                seconds *= self._luck[
                    (physics.salt + index * TASK_STRIDE + 1 + _again(launch, state)) % TABLE
                ]
            return seconds
        if any(self.jobs[task.job].parses for task in tasks):
            seconds = self._parsing_s(launch, state) / node.spec.map_speed
        elif len(tasks) > 1:
            slowest = max(self.jobs[task.job].map_s for task in tasks)
            seconds = slowest / node.spec.map_speed
            seconds *= 1.0 + self.conditions.rider_cost * (len(tasks) - 1)
        if physics.map_sizes:
            seconds *= physics.map_sizes[index]
        if self.conditions.contention:
            seconds *= 1.0 + self.conditions.contention * (node.maps - 1)
        if self._reads and physics.spec.scans:
            seconds *= self._read(state.jobs[job_id], index, node_id, state)
        if self._luck:
            seconds *= self._luck[
                (physics.salt + index * TASK_STRIDE + 1 + _again(launch, state)) % TABLE
            ]
        if self._starts:
            seconds += self._start_cost(physics, round, now)
            if round:
                self._set_up(launch, self._rounds[round])
        return seconds

    def _parsing_s(self, launch: Launch, state: State) -> float:
        """What reading a split takes: parsing it alone, or for all, or riding on what was kept."""
        first = launch.tasks[0]
        table, number = split_of(state.jobs[first.job], first.index)
        host = state.nodes[launch.node].host
        kept = self.segments.kept(host, table, number)
        riders = [self.jobs[task.job] for task in launch.tasks]
        rides_s = sum(each.truth.ride_s if each.parses else each.map_s for each in riders)
        if not launch.round:
            alone_s = sum(each.map_s for each in riders)
            return kept * rides_s + (1.0 - kept) * alone_s
        self.segments.keep(host, table, number)
        return rides_s + (1.0 - kept) * max(each.truth.make_s for each in riders)

    def reduce_seconds(self, launch: Launch, state: State) -> tuple[float, float]:
        """(shuffle, merge and reduce) of a reduce task."""
        job_id, _, index = launch.tasks[0]
        physics = self.jobs[job_id]
        node = state.nodes[launch.node]
        factor = 1.0 / node.spec.reduce_speed
        if physics.reduce_sizes:
            factor *= physics.reduce_sizes[index]
        if self.conditions.contention:
            factor *= 1.0 + self.conditions.contention * (node.reduces - 1)
        if self._luck:
            drawn = physics.salt + index * TASK_STRIDE + _again(launch, state)
            factor *= self._luck[drawn % TABLE]
        start = self._start_cost(physics, "", state.now) if self._starts else 0.0
        shuffle, rest = self._unfolded(launch, state)
        return physics.shuffle_s * factor * shuffle + start, physics.rest_s * factor * rest

    def _unfolded(self, launch: Launch, state: State) -> tuple[float, float]:
        """The shares of a reduce's shuffle, and of the rest of it, that a launch has to do."""
        job_id, _, index = launch.tasks[0]
        folded = self.jobs[job_id].folded.get(index, 0.0)
        if launch.round:
            # Less may be done than was folded: outputs that were lost are made again.
            share = max(0.0, self._maps_done(job_id, state) - folded)
            return share, share
        return 1.0 - folded, 1.0 - folded + self.conditions.fold_cost * folded

    def folds(self, launch: Launch, state: State) -> None:
        """A reduce folds what maps have left until now."""
        job_id, _, index = launch.tasks[0]
        self.jobs[job_id].folded[index] = self._maps_done(job_id, state)

    def _maps_done(self, job_id: str, state: State) -> float:
        maps = state.jobs[job_id].map
        return maps.done / maps.spec.tasks if maps is not None else 0.0

    def parts_of_reduces(self, job: str) -> tuple[float, float, float] | None:
        """The shares of shuffle, merge and reduce; None where reduces are of one piece."""
        truth = self.jobs[job].truth
        parts = (truth.shuffle_s, truth.merge_s, truth.reduce_s)
        if sum(part > 0 for part in parts) < 2:
            return None
        shuffle, merge, rest = (part / sum(parts) for part in parts)
        return shuffle, merge, rest

    def fails(self, launch: Launch) -> float | None:
        """The share of its duration after which this attempt fails, or None."""
        if not self._chance:
            return None
        job_id, kind, index = launch.tasks[0]
        physics = self.jobs[job_id]
        attempt = physics.attempts.get((kind, index), 0)
        physics.attempts[kind, index] = attempt + 1
        at = physics.salt + (index + 1) * TRY_STRIDE + attempt * TASK_STRIDE + (kind == MAP)
        if self._chance[at % TABLE] >= self.conditions.task_failure:
            return None
        return self._chance[(at + 1) % TABLE]

    def _start_cost(self, physics: JobPhysics, round: str, now: float) -> float:
        """Tasks wait until their job, or merged sub-job, is set up; then for their own start."""
        c = self.conditions
        if round:
            ready_s = self._rounds.setdefault(round, now + c.round_start_s)
        else:
            if physics.ready_s is None:
                physics.ready_s = now + c.job_start_s
            ready_s = physics.ready_s
        return max(0.0, ready_s - now) + c.task_start_s

    def _set_up(self, launch: Launch, ready_s: float) -> None:
        """A merged sub-job sets up all its riders; their reduces need not wait again."""
        for task in launch.tasks:
            physics = self.jobs[task.job]
            if physics.ready_s is None:
                physics.ready_s = ready_s

    def _read(self, job: JobState, index: int, node_id: str, state: State) -> float:
        """What the place of the data does to the time: remote, in the rack, in memory."""
        c = self.conditions
        table, number = split_of(job, index)
        split = table.splits[number]
        if c.memory_cache_bytes and self._in_memory(node_id, (table.name, number), split.bytes):
            return 1.0 - c.memory_gain
        if not split.nodes or node_id in split.nodes:
            return 1.0
        rack = state.nodes[node_id].spec.rack
        near = rack and any(
            state.nodes[other].spec.rack == rack for other in split.nodes if other in state.nodes
        )
        return 1.0 + (c.rack_penalty if near else c.remote_penalty)

    def _in_memory(self, node_id: str, split: tuple[str, int], size: float) -> bool:
        recent = self._recent.setdefault(node_id, OrderedDict())
        if split in recent:
            recent.move_to_end(split)
            return True
        recent[split] = size
        used = self._recent_bytes.get(node_id, 0.0) + size
        while used > self.conditions.memory_cache_bytes and recent:
            used -= recent.popitem(last=False)[1]
        self._recent_bytes[node_id] = used
        return False

    def lose(self, node_id: str) -> None:
        """A lost node comes back with an empty cache."""
        self._recent.pop(node_id, None)
        self._recent_bytes.pop(node_id, None)


def split_of(job: JobState, index: int) -> tuple[Table, int]:
    """The table that a map reads, and which of its splits."""
    table, number = job.scanned[0][0], index
    for table, _ in job.scanned:
        if number < len(table.splits):
            break
        number -= len(table.splits)
    return table, number


def is_local(launch: Launch, state: State) -> bool | None:
    """Whether a map has its split on its node; None where splits have no preferred node."""
    task = launch.tasks[0]
    job = state.jobs.get(task.job)
    if task.kind != MAP or job is None or not job.scanned:
        return None
    table, number = split_of(job, task.index)
    nodes = table.splits[number].nodes
    return launch.node in nodes if nodes else None


@lru_cache(maxsize=8)
def _luck_table(c: Conditions, seed: int) -> tuple[float, ...]:
    """Factors of mean 1 (log-normal), some of them stragglers; many runs need the same."""
    draw = random.Random(f"{seed}:luck")
    luck = [math.exp(draw.gauss(0.0, c.noise) - c.noise**2 / 2) for _ in range(TABLE)]
    for at in draw.sample(range(TABLE), round(c.straggler_share * TABLE)):
        luck[at] *= c.straggler_factor
    return tuple(luck)


def _again(launch: Launch, state: State) -> int:
    """How far away a launch draws its luck: elsewhere, if it does a task a second time."""
    number = launch.number
    return TRY_STRIDE if state.twins.get(number, number) < number else 0


def _relative(sizes: Sequence[float]) -> tuple[float, ...]:
    """Sizes over their mean; empty where they are all alike."""
    if len(set(sizes)) < 2:
        return ()
    mean = sum(sizes) / len(sizes)
    return tuple(size / mean for size in sizes)


def believed(job: JobState) -> JobTruth:
    """The truth of a world in which all estimates are right; for forecasts.

    The error of an online answer goes on falling from the last one that was reported.
    """
    divisible = job.spec.divisible
    truth = JobTruth(
        map_s=job.map_s,
        reduce_s=job.reduce_s,
        work_s=job.work_s,
        speedup=job.speedup,
        make_s=job.make_s or 0.0,
        ride_s=job.ride_s or 0.0,
    )
    if divisible is None or not job.answers:
        return truth
    last = job.answers[-1]
    unit = truth.error_after(last.batch, divisible.batches)
    if not unit or last.error is None:
        return truth
    return replace(truth, sigma=last.error / unit)
