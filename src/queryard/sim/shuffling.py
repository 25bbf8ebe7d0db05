"""Reduces that start before the maps of their job are done: they hold their slots and wait."""

from __future__ import annotations

import math
from typing import NamedTuple

from queryard.core.commands import Launch
from queryard.core.events import TaskFailed, TaskFinished
from queryard.core.state import State

from .ordering import WORK, Post
from .truth import BY_CHANCE


class _Shuffle(NamedTuple):
    """A reduce: when it was launched, its two parts, the share at which it fails, if ever."""

    job: str
    launched_s: float
    shuffle_s: float
    rest_s: float
    fails_at: float | None


class Shuffling:
    """`moved` has, for launches that end at another time than was posted, that time."""

    def __init__(self, state: State, post: Post, moved: dict[int, float]) -> None:
        self._state = state
        self._post = post
        self._moved = moved
        self._shuffles: dict[int, _Shuffle] = {}
        # Job -> launches of reduces that wait for its maps.
        self._waiting: dict[str, list[int]] = {}

    def waits(
        self,
        launch: Launch,
        shuffle_s: float,
        rest_s: float,
        fails_at: float | None = None,
    ) -> bool:
        """Whether a reduce holds its slot until the maps of its job are done."""
        number, job_id = launch.number, launch.tasks[0].job
        self._shuffles[number] = _Shuffle(job_id, launch.time_s, shuffle_s, rest_s, fails_at)
        if self._state.jobs[job_id].maps_done:
            return False
        self._hold(number, job_id)
        return True

    def rest_s(self, number: int) -> float:
        """What a reduce takes after its shuffle."""
        return self._shuffles[number].rest_s

    def _hold(self, number: int, job_id: str) -> None:
        self._waiting.setdefault(job_id, []).append(number)
        self._moved[number] = math.inf

    def release(self, now: float) -> None:
        """Resume reduces that held their slots until the maps were done."""
        if not self._waiting:
            return
        state = self._state
        for job_id in list(self._waiting):
            job = state.jobs.get(job_id)
            if job is not None and not job.maps_done:
                continue
            for number in self._waiting.pop(job_id):
                if number in state.killed:
                    continue
                if job is None or number not in state.running:
                    self._moved.pop(number, None)
                    continue
                self._resume(number, now)

    def _resume(self, number: int, now: float) -> None:
        _, launched_s, shuffle_s, rest_s, fails_at = self._shuffles[number]
        ready_s = max(now, launched_s + shuffle_s)
        end = ready_s + rest_s * (1.0 if fails_at is None else fails_at)
        self._moved[number] = end
        if fails_at is None:
            node = self._state.running[number].node
            self._post(end, WORK, TaskFinished(end, number, node))
        else:
            self._post(end, WORK, TaskFailed(end, number, BY_CHANCE))

    def lose(self, now: float, node: str) -> None:
        """Reduces that have not fetched the outputs of a lost node wait for its maps again."""
        state = self._state
        for number, shuffle in list(self._shuffles.items()):
            if number not in state.running:
                del self._shuffles[number]
                continue
            job = state.jobs.get(shuffle.job)
            if job is None or job.map is None or not job.map.outputs:
                continue
            unfetched = node in job.map.outputs and shuffle.launched_s + shuffle.shuffle_s > now
            if unfetched and self._moved.get(number) != math.inf:
                self._hold(number, shuffle.job)
