"""All of `live` below the host, on a backend in which nothing runs and with a clock of its own."""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from queryard.backends.fake import FakeBackend, Script
from queryard.backends.protocol import Staged
from queryard.core.events import EstimateChanged
from queryard.core.journal import Journal
from queryard.core.model import Job, JobId, Node, Phase, Split, Table
from queryard.core.scheduler import Scheduler
from queryard.core.speedup import Speedup
from queryard.core.state import Settings
from queryard.engine.errors import QueryFailed
from queryard.estimate.work import Prediction
from queryard.live import effects as out
from queryard.live import inputs
from queryard.live.admission.gate import Gate
from queryard.live.admission.limits import Limits
from queryard.live.admission.memory import Reservations
from queryard.live.coordinating import Coordinator
from queryard.live.facts import QueryFacts
from queryard.live.request import QueryRequest
from queryard.live.work.base import Moved
from queryard.policies import compose

MIB = 1 << 20


class FakeClient:
    """Which of its queries need its own connection is written in their text."""

    def __init__(self, name: str) -> None:
        self.id = name

    def needs_own(self, request: QueryRequest) -> bool:
        return "own" in request.sql

    def is_pooled(self, request: QueryRequest) -> bool:
        return "own" not in request.sql and "beside" not in request.sql

    def concerns(self, earlier: QueryRequest, later: QueryRequest) -> bool:
        return "writes" in earlier.sql

    def databases(self, request: QueryRequest) -> dict[str, bool]:
        words = request.sql.split()
        return {word[3:]: word.startswith("db!") for word in words if word[:3] in ("db!", "db?")}

    in_transaction = False

    def not_staged(self, request: QueryRequest) -> str | None:
        return "it is not to be" if "unsplittable" in request.sql else None

    settings = ()

    def statement(
        self, request: QueryRequest, memory_bytes: int, sprints: bool, settings: Any
    ) -> Any:
        return request.sql


class FakeStaged:
    """Two jobs of tasks, one after another; the first may scan a table, of which `version` is the
    state.
    """

    hands_over = True

    def __init__(
        self,
        query: str,
        memory_bytes: int,
        tasks: int,
        retry: str = "count",
        version: str = "",
        alone: bool = False,
    ) -> None:
        self.version = version
        self._alone = alone
        self.memory_bytes = memory_bytes
        self.closed = 0
        self._query = query
        self._tasks = tasks
        self._retry = retry

    def jobs(self) -> tuple[Job, ...]:
        return (
            Job(
                "scan",
                map=Phase(self._tasks),
                reduce=Phase(1),
                scans=self._scans,
                scans_alone=self._alone,
            ),
            Job("sum", upstream=("scan",), map=Phase(1)),
        )

    @property
    def _scans(self) -> tuple[str, ...]:
        return ("t",) if self.version else ()

    def tables(self) -> dict[str, Any]:
        table = Table("t", tuple(Split(1.0) for _ in range(self._tasks)))
        return dict.fromkeys(self._scans, (self.version, table))

    def estimates(self, expected_s: float, speedup: Speedup) -> list[EstimateChanged]:
        return [EstimateChanged(0.0, str(JobId(self._query, "scan")), map_s=1.0, reduce_s=1.0)]

    def planned(self) -> None:
        return None

    def moved_bytes(self, nodes: int) -> float:
        return 0.0

    def for_backend(self, output: object) -> Staged:
        return Staged(self)  # type: ignore[arg-type]

    def entered(self) -> Moved:
        return Moved((), ())

    def granted(self) -> Moved:
        return Moved((self._query,), ())

    def left(self) -> tuple[()]:
        return ()

    def on_failure(self, error: BaseException) -> str:
        return "never" if isinstance(error, QueryFailed) else self._retry

    def needs_more(self, error: BaseException, most_bytes: int) -> bool:
        return False

    def close(self) -> None:
        self.closed += 1

    def explanation(self) -> None:
        return None


class FakeHost:
    """Carries effects out at once, and keeps what became of each query."""

    def __init__(
        self,
        nodes: tuple[Node, ...] = (Node("local", 2, 1024.0 * MIB),),
        script: Script | None = None,
        profile: dict[str, Any] | None = None,
        limits: Limits | None = None,
        lag: Callable[[], float] = lambda: 0.0,
        spreads: bool = False,
    ) -> None:
        """`lag` is how long planning and handing over take; `spreads` stands for a cluster."""
        settings = Settings()
        self.journal = Journal({}, profile or {"order": "fifo"})
        kernel = Scheduler(compose, profile or {"order": "fifo"}, settings, self.journal)
        self.backend = FakeBackend(nodes, script)
        memory = int(sum(node.memory_bytes for node in nodes))
        self.coordinator = Coordinator(
            kernel,
            Gate(limits or Limits(), {}, self.backend.slots),
            Reservations(memory),
            self.backend.width,
            self.journal.profile,
            spreads,
        )
        self._spreads = spreads
        self.table_version, self.table_splits = "first", 3
        self._lag = lag
        self.now_s = 0.0
        self.replies: dict[Any, out.Reply] = {}
        self.ended: dict[str, QueryFacts] = {}
        self.facts: dict[str, QueryFacts] = {}
        self.failed_outputs: dict[str, BaseException] = {}
        self.spilled: Counter[str] = Counter()
        self.learned: list[out.Learn] = []
        self.asked: Counter[str] = Counter()
        self.plans: dict[str, Any] = {}
        self.handovers: dict[str, BaseException | None] = {}
        self._mail: list[inputs.Input] = []
        self._timers: list[tuple[float, int, inputs.Input]] = []
        self._order = itertools.count()
        self._ids = (f"q{number}" for number in itertools.count(1))
        self.backend.start(self._mail.append)
        self.step()

    # --- what a test does ------------------------------------------------------------------------

    def submit(
        self,
        sql: str = "reads",
        client: FakeClient | None = None,
        key: str | None = None,
        work_s: float = 1.0,
        **options: Any,
    ) -> str:
        query = next(self._ids)
        request = QueryRequest(sql, (), (), options.pop("plan", "native"), **options)
        if "writes" in sql:
            request.__dict__["has_side_effects"] = True
        prediction = Prediction(work_s, None, "guess", 1.0)
        given = inputs.Submit(
            query,
            query,
            client or FakeClient("c"),
            request,
            prediction,
            key,  # type: ignore[arg-type]
        )
        self.post(given)
        return query

    def post(self, *given: inputs.Input) -> None:
        self._mail.extend(given)
        self.step()

    def _post_later(self, given: inputs.Input) -> None:
        wait_s = self._lag()
        if wait_s:
            heapq.heappush(self._timers, (self.now_s + wait_s, next(self._order), given))
        else:
            self._mail.append(given)

    def cancel(self, query: str) -> None:
        from queryard.engine.errors import QueryCancelled

        self.post(inputs.Cancel(query, QueryCancelled("cancelled")))

    def step(self) -> None:
        """Handle all that was told by now; the kernel holds to its rules after each step."""
        while self._mail:
            given, self._mail[:] = list(self._mail), []
            for effect in self.coordinator.handle(self.now_s, *given):
                self._carry_out(effect)
            self.coordinator.kernel.validate()

    def run(self, until_s: float = 1e9, steps: int = 100_000) -> None:
        """Let time pass until nothing is left to happen."""
        for _ in range(steps):
            times = [t for t in (self.backend.next_s, self._next_timer) if t is not None]
            if not times or min(times) > until_s:
                return
            self.advance(min(times))
        raise AssertionError("it never ends")

    def advance(self, time_s: float) -> None:
        self.now_s = max(self.now_s, time_s)
        while self._timers and self._timers[0][0] <= self.now_s:
            self._mail.append(heapq.heappop(self._timers)[2])
        self.backend.advance(self.now_s)
        self.step()

    @property
    def _next_timer(self) -> float | None:
        return self._timers[0][0] if self._timers else None

    @property
    def open(self) -> Iterator[str]:
        return (query for query in self.facts if query not in self.ended)

    # --- effects ---------------------------------------------------------------------------------

    def _carry_out(self, effect: out.Effect) -> None:
        match effect:
            case out.Reply():
                assert effect.token not in self.replies, f"{effect.token} is answered twice"
                self.replies[effect.token] = effect
            case out.SetTimer():
                heapq.heappush(self._timers, (effect.time_s, next(self._order), effect.input))
            case out.StartPlanning():
                self._post_later(self._plan(effect))
            case out.AddWork():
                self.backend.add(effect.query, effect.work.for_backend(None))  # type: ignore[arg-type]
            case out.Execute():
                self.backend.execute(effect.command)
            case out.GuaranteeUnmet():
                self.backend.set_guarantee_unmet(effect.unmet)
            case out.StopWork():
                self.backend.stop(effect.query, effect.error)
            case out.Forget():
                self.backend.forget(effect.query)
            case out.CloseWork():
                effect.work.close()
            case out.HandOver():
                error = self.handovers.get(effect.query)
                self._post_later(inputs.HandedOver(effect.query, error))
            case out.Spill():
                self.spilled[effect.query] += 1
                self._mail.append(inputs.ReaderState(effect.query, False))
            case out.FailOutput():
                self.failed_outputs.setdefault(effect.query, effect.error)
            case out.Learn():
                self.learned.append(effect)
            case out.Publish():
                assert effect.facts.id not in self.ended, "nothing is told after the end"
                self.facts[effect.facts.id] = effect.facts
            case out.RecordAsked():
                self.asked[effect.facts.id] += 1
            case out.Ended():
                query = effect.facts.id
                assert query not in self.ended, f"{query} ends twice"
                self.backend.forget(query)
                self.ended[query] = self.facts[query] = effect.facts
                if effect.work is not None:
                    effect.work.close()

    def _plan(self, effect: out.StartPlanning) -> inputs.Input:
        if "impossible" in effect.request.sql:
            return inputs.PlanFailed(effect.query, "it cannot be split")
        if "defect" in effect.request.sql:
            return inputs.PlanFailed(effect.query, "", RuntimeError("a defect"))
        version = self.table_version if "scans" in effect.request.sql else ""
        work = FakeStaged(
            effect.query,
            effect.memory_bytes,
            self.table_splits,
            version=version,
            alone=self._spreads,
        )
        self.plans[effect.query] = work
        return inputs.Planned(effect.query, work)  # type: ignore[arg-type]

    def check_idle(self) -> None:
        """Nothing is left of any query."""
        assert self.coordinator.idle
        assert self.backend.idle
        state = self.coordinator.kernel.state
        assert not state.queries
        assert not state.reservations
