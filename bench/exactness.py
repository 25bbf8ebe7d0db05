"""How often an order that drifts with time decides otherwise than its rule, and what it costs.

A closed queue: so many queries stand at any time, and one that ends is replaced at once. At every
decision the rule is applied to all candidates, as its paper prints it, and compared with the query
that got the slot. The cost is that of `Scheduler.handle` per launched task, without the comparison.

    python -m bench.exactness
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from queryard.core.commands import Launch
from queryard.core.entities import Candidate, QueryState
from queryard.core.events import EstimateChanged, NodeJoined, QuerySubmitted, TaskFinished
from queryard.core.filling import Filling
from queryard.core.model import Job, JobId, Node, Phase, Query
from queryard.core.nodes import NodeState
from queryard.core.scheduler import Scheduler
from queryard.core.serving import Attempt
from queryard.core.state import State
from queryard.policies import compose, resolve_profile
from queryard.policies.orders.qef import MAX_LOAD, EfficientFair
from queryard.policies.orders.srtf import LEAST_WORK_S

SLOTS = 16
Rule = Callable[[Collection[Candidate], Any, State], int]


def exact_qef(candidates: Collection[Candidate], order: EfficientFair, state: State) -> int:
    """TLS Algorithm 1, line by line; the load is that of the window that ends now."""
    arrived_s = math.fsum(
        work_s for at_s, _, work_s in order._arrived if at_s > state.now - order.window_s
    )
    load = min(MAX_LOAD, arrived_s / (order.window_s * state.total_slots))
    threshold = 1.0 / (1.0 - load)
    active = sorted(
        (each.query for each in candidates), key=lambda query: (query.left_s, query.uid)
    )
    slow: list[tuple[float, int]] = []
    for query in active:
        sojourn_s = state.now - query.submit_s
        slowdown = sojourn_s / (query.alone_s or math.inf)
        slowdown += query.left_s / (query.total_s or math.inf)
        if slowdown > 2 * threshold:
            return query.uid
        if slowdown > threshold:
            slow.append((-slowdown, query.uid))
    return min(slow)[1] if len(slow) > order.limit_slow else active[0].uid


def exact_srtf(candidates: Collection[Candidate], order: Any, state: State) -> int:
    """POSUM §5.3.2: the smallest deficit."""
    queries = [each.query for each in candidates]
    inverse = math.fsum(1.0 / max(query.left_s, LEAST_WORK_S) for query in queries)

    def deficit(query: QueryState) -> tuple[float, int]:
        left_s, total_s = max(query.left_s, LEAST_WORK_S), max(query.total_s, LEAST_WORK_S)
        wanted = state.total_slots / (left_s * inverse)
        elapsed_s = state.now - query.submit_s
        guard = (elapsed_s + left_s / (query.slots or 1)) / (total_s / state.total_slots)
        return (query.slots - wanted * guard, query.uid)

    return min(map(deficit, queries))[1]


def exact_slowdown(candidates: Collection[Candidate], order: Any, state: State) -> int:
    """POSUM §4.3.1: the largest slowdown."""

    def slowdown(query: QueryState) -> tuple[float, int]:
        return ((query.submit_s - state.now) / max(query.total_s, order.min_e_s), query.uid)

    return min(slowdown(each.query) for each in candidates)[1]


RULES: dict[str, Rule] = {
    "tls": exact_qef,
    "srtf": exact_srtf,
    "largest-slowdown": exact_slowdown,
}


class Checked(Filling):
    """Filling that compares every decision with the rule."""

    rule: Rule
    decisions = 0
    different = 0

    def offer(self, node: NodeState, attempt: Attempt) -> bool:
        root = self._tree.root
        if not root.members:
            return super().offer(node, attempt)
        wanted = self.rule(root.members.values(), root.order, self._state)
        served: list[int] = []

        def noted(candidate: Candidate, lane: int, node: NodeState) -> bool:
            # The number first: a query that was given its last slot leaves the ranking.
            uid = candidate.uid
            taken = attempt(candidate, lane, node)
            if taken:
                served.append(uid)
            return taken

        taken = super().offer(node, noted)
        self.decisions += 1
        self.different += served[:1] != [wanted]
        return taken


@dataclass(slots=True)
class Outcome:
    """Decisions of one run, those that differ from the rule, and seconds per launched task."""

    decisions: int
    different: int
    cost_s: float

    @property
    def share(self) -> float:
        return self.different / self.decisions if self.decisions else 0.0


def closed_queue(
    profile: str, candidates: int, launches: int, seed: int = 0, check: bool = True
) -> Outcome:
    """Run a closed queue of so many queries until so many tasks were launched."""
    scheduler = Scheduler(compose, resolve_profile(profile))
    if check:
        scheduler.filling.__class__ = Checked
        scheduler.filling.rule = RULES[profile]  # type: ignore[attr-defined]
    draw = random.Random(seed)
    ends: list[tuple[float, int, str]] = []
    launched, spent_s, made = 0, 0.0, 0

    def handle(now: float, *events: Any) -> None:
        nonlocal launched, spent_s
        began_s = time.perf_counter()
        commands = scheduler.handle(*events)
        spent_s += time.perf_counter() - began_s
        for command in commands:
            if type(command) is Launch:
                launched += 1
                job = scheduler.state.jobs[command.tasks[0].job]
                heappush(
                    ends, (now + job.map_s * draw.uniform(0.7, 1.3), command.number, command.node)
                )

    def arrive(now: float) -> tuple[Any, ...]:
        nonlocal made
        made += 1
        # Sizes over three orders of magnitude, as in the papers' workloads.
        tasks = min(400, int(draw.paretovariate(0.9)))
        query = Query(f"q{made}", (Job("j", map=Phase(tasks)),), submit_s=now)
        seconds = draw.uniform(1.0, 10.0)
        estimate = EstimateChanged(now, str(JobId(query.id, "j")), map_s=seconds)
        return (QuerySubmitted(now, query), estimate)

    handle(0.0, *(NodeJoined(0.0, Node(f"n{i}", 4)) for i in range(SLOTS // 4)))
    while launched < launches:
        now = scheduler.state.now
        waiting = len(scheduler.tree.root.members)
        if waiting < candidates:
            handle(now, *(event for _ in range(candidates - waiting) for event in arrive(now)))
            continue
        now, number, node = heappop(ends)
        handle(now, TaskFinished(now, number, node))
    filling = scheduler.filling
    decisions = getattr(filling, "decisions", 0)
    return Outcome(decisions, getattr(filling, "different", 0), spent_s / launched)


def main() -> None:
    print("order               candidates  decisions  differ   µs per task")
    for profile in RULES:
        for candidates in (39, 71, 100, 1000):
            checked = closed_queue(profile, candidates, 4_000)
            cost_s = min(
                closed_queue(profile, candidates, 4_000, seed, False).cost_s for seed in (0, 1, 2)
            )
            print(
                f"{profile:19} {candidates:10}  {checked.decisions:9}  {checked.share:6.1%}  "
                f"{cost_s * 1e6:10.1f}"
            )


if __name__ == "__main__":
    main()
