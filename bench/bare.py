"""The yardstick: FIFO over the same workload with nothing but a heap and counters.

No policy, no nodes, no states, no visible events or commands: the least a Python program must do to
know when each query ends.
"""

from __future__ import annotations

import random
import time
from collections import deque
from heapq import heappop, heappush

from queryard.workload.model import Workload


def bare_fifo(workload: Workload, slots: int, noise: float, seed: int) -> tuple[float, float]:
    """(tasks per second, mean response) of a bare FIFO loop."""
    draw = random.Random(seed)
    luck = [draw.lognormvariate(0.0, noise) for _ in range(1 << 14)]
    jobs = []
    for arrival in workload.arrivals:
        job = arrival.query.jobs[0]
        truth = arrival.truth[job.name]
        maps = job.map.tasks if job.map else 0
        reduces = job.reduce.tasks if job.reduce else 0
        reduce_s = truth.shuffle_s + truth.merge_s + truth.reduce_s
        jobs.append((arrival.query.submit_s, maps, truth.map_s, reduces, reduce_s))
    began = time.perf_counter()
    heap = [(job[0], number, number, -1) for number, job in enumerate(jobs)]
    sequence = len(heap)
    left = [[job[1], job[3]] for job in jobs]
    queue: deque[list[float]] = deque()
    free = slots
    tasks = 0
    response = 0.0
    while heap:
        now, _, number, kind = heappop(heap)
        if kind < 0:
            queue.append([number, 0, jobs[number][1], jobs[number][2]])
        else:
            free += 1
            tasks += 1
            counts = left[number]
            counts[kind] -= 1
            if not counts[kind]:
                if kind == 0 and counts[1]:
                    queue.append([number, 1, jobs[number][3], jobs[number][4]])
                else:
                    response += now - jobs[number][0]
        while free and queue:
            phase = queue[0]
            phase[2] -= 1
            free -= 1
            sequence += 1
            end = now + phase[3] * luck[sequence & 16383]
            heappush(heap, (end, sequence, int(phase[0]), int(phase[1])))
            if not phase[2]:
                queue.popleft()
    return tasks / (time.perf_counter() - began), response / len(jobs)
