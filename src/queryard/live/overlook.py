"""A session as seen from above: who is there, why they wait, when they will end, what it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from queryard.backends.local import NATIVE_JOB, LocalBackend
from queryard.core.events import EstimateChanged
from queryard.core.explain import Why
from queryard.core.parts import PoolSpec
from queryard.core.scheduler import Scheduler
from queryard.core.state import State
from queryard.sim.conditions import Conditions
from queryard.sim.forecast import Forecast, forecast

from .driver import Driver
from .record import Record
from .recording import COST_EVERY_S, Recorder

# A forecast lets pools take no more turns than this: it looks ahead for hours, and shall not take
# more than a moment itself.
TURNS = 300


@dataclass(frozen=True, slots=True)
class SessionReport:
    """What the session itself has cost so far, and how often it used a slot beyond its number.

    Processor seconds: `decide_s` of the kernel, which is part of `driver_cpu_s`; `watch_cpu_s` of
    the thread that looks at running statements; `history_cpu_s` of the one that writes.
    `history_error` says why the history is incomplete, None if it is not.
    """

    now_s: float
    waiting: int
    running: int
    decisions: int
    decide_s: float
    driver_cpu_s: float
    watch_cpu_s: float
    history_cpu_s: float
    bursts: int
    burst_s: float
    history_error: str | None = None


class Overlook:
    """Asks the others; changes nothing."""

    def __init__(
        self,
        driver: Driver,
        backend: LocalBackend,
        recorder: Recorder,
        records: Callable[[], list[Record]],
    ) -> None:
        self._driver = driver
        self._backend = backend
        self._recorder = recorder
        self._records = records
        driver.call_at(COST_EVERY_S, self._note_cost)

    def why(self, query: str) -> Why | None:
        """What the kernel says of a query; None if it does not know it (yet, or any more)."""
        return self._driver.ask(
            lambda kernel: kernel.why(query) if query in kernel.state.queries else None
        )

    def forecasts(self) -> dict[str, Forecast]:
        """When queries are expected to start and end, if every estimate is right.

        Those that share a run end with it, and its work is done once.
        """
        twins = self._twins()
        fork = self.fork()
        profile = longer_turns(fork.policy.profile, _left_s(fork.state) / TURNS)
        other = None if profile == fork.policy.profile else profile
        # Slots of this machine are there at once.
        found = forecast(fork, profile=other, conditions=Conditions(node_boot_s=0.0))
        for twin, first in twins.items():
            if twin in found and first in found:
                found[twin] = Forecast(twin, found[first].start_s, found[first].end_s)
        return found

    def fork(self) -> Scheduler:
        """The kernel as it is, to be simulated; what shares a run has no work of its own."""
        twins = self._twins()
        fork = self._driver.ask(lambda kernel: kernel.fork())
        state = fork.state
        for twin, first in twins.items():
            if twin in state.queries and first in state.queries:
                state.apply(EstimateChanged(state.now, f"{twin}/{NATIVE_JOB}", work_s=0.0))
        return fork

    def _twins(self) -> dict[str, str]:
        return {record.id: record.twin_of for record in self._records() if record.twin_of}

    def foreseen(self, record: Record) -> None:
        """A forecast was made that shall be compared with what comes."""
        self._recorder.forecast(record, self._driver.now())

    def report(self) -> SessionReport:
        records = self._records()
        running = sum(record.started_s is not None for record in records)
        return SessionReport(
            now_s=self._driver.now(),
            waiting=len(records) - running,
            running=running,
            decisions=self._driver.decisions,
            decide_s=self._driver.decide_s,
            driver_cpu_s=self._driver.cpu_s,
            watch_cpu_s=self._backend.watch_cpu_s,
            history_cpu_s=self._recorder.cpu_s,
            bursts=self._backend.bursts,
            burst_s=self._backend.burst_s,
            history_error=self._recorder.error,
        )

    def _note_cost(self) -> None:
        self._backend.errand(self.note_cost)
        self._driver.call_at(self._driver.now() + COST_EVERY_S, self._note_cost)

    def note_cost(self) -> None:
        self._recorder.cost(self.report())


def _left_s(state: State) -> float:
    """How long all that is left will take."""
    return sum(query.left_s for query in state.queries.values()) / max(1, state.total_slots)


def longer_turns(profile: Mapping[str, Any], quantum_s: float) -> Mapping[str, Any]:
    """The profile with turns of at least this length, where pools take turns.

    >>> longer_turns({"pools": {"choice": "turns", "default": "fifo"}}, 60.0)
    {'pools': {'choice': 'turns', 'default': 'fifo', 'quantum_s': 60.0}}
    >>> longer_turns({"order": "fifo"}, 60.0)
    {'order': 'fifo'}
    """
    pools = profile.get("pools")
    return {**profile, "pools": _longer(pools, quantum_s)} if pools is not None else profile


def _longer(pool: Any, quantum_s: float) -> Any:
    if not isinstance(pool, Mapping):
        return pool
    found = dict(pool)
    if "default" in pool:
        found["default"] = _longer(pool["default"], quantum_s)
    if "children" in pool:
        found["children"] = {
            name: _longer(child, quantum_s) for name, child in pool["children"].items()
        }
    if pool.get("choice") == "turns":
        shortest_s = pool.get("quantum_s", PoolSpec.quantum_s)
        if quantum_s > shortest_s:
            found["quantum_s"] = quantum_s
    return found
