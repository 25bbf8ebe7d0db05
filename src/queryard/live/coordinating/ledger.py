"""What the coordinator knows of active queries, and what it collects while it handles inputs.

Effects are collected for the loop, and events for the kernel, which decides when all inputs of an
instant are handled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from queryard.core import events as ev
from queryard.core.commands import Grant, Launch
from queryard.core.errors import QueryardError
from queryard.core.model import MAP
from queryard.core.scheduler import Scheduler
from queryard.core.speedup import Speedup
from queryard.estimate.tasks import make_predictor
from queryard.estimate.tasks.estimating import TaskEstimates
from queryard.estimate.widths import NOTHING_SEEN

from .. import effects as out
from ..admission.gate import Gate
from ..admission.memory import QUERY_SHARE, Reservations
from ..admission.readers import SlowReaders
from ..effects import Effect
from ..estimates.widths import Widths
from ..sharing import ScanChoices, TextScan
from ..work.base import Moved, Work
from ..work.native import SharedExecutions
from .entry import Entry
from .health import NodeHealth
from .keys import Keys
from .places import SplitPlaces, split_of

# It predicts the tasks of a phase once a few of them have ended: of all predictors it errs least
# (docs/experiments).
TASK_PREDICTOR = "regression"


class Ledger:
    """Shared by the parts of the coordinator; changed on one thread."""

    def __init__(
        self,
        kernel: Scheduler,
        gate: Gate,
        reservations: Reservations,
        width: int,
        spreads: bool = False,
    ) -> None:
        """`spreads` says whether work runs at the nodes of a cluster."""
        self.kernel = kernel
        self.spreads = spreads
        self.places = SplitPlaces()
        self.health = NodeHealth(kernel.state)
        self.gate = gate
        self.reservations = reservations
        self.readers = SlowReaders(reservations.pool_bytes)
        self.runs = SharedExecutions(width)
        self.tasks = TaskEstimates(make_predictor(TASK_PREDICTOR))
        self.widths = Widths()
        self.entries: dict[str, Entry] = {}
        self.keys = Keys()
        self.choices = ScanChoices()
        # Tables that the kernel knows: fingerprint and number of splits.
        self.scanned: dict[str, tuple[str, int]] = {}
        self.closed: BaseException | None = None
        self.now = 0.0
        self.effects: list[Effect] = []
        self._changed: dict[str, Entry] = {}
        self.events: list[ev.Event] = []
        # To resume in this instant: queries that begin again with more memory, and clients with an
        # own connection that a query has just left.
        self.again: list[Entry] = []
        self.left: list[Entry] = []

    def check_open(self) -> None:
        """Raise if the host is about to end."""
        if self.closed is not None:
            raise QueryardError("the session is closed; open another with queryard.connect")

    def do(self, effect: Effect) -> None:
        self.effects.append(effect)

    def taken(self) -> list[Effect]:
        """The collected effects, those that publish first; the list starts anew."""
        effects, self.effects = self.effects, []
        if self._changed:
            changed, self._changed = self._changed, {}
            active = (entry for entry in changed.values() if entry.id in self.entries)
            effects = [*(out.Publish(entry.facts()) for entry in active), *effects]
        return effects

    def tell(self, *events: ev.Event) -> None:
        """Collect events for the kernel."""
        self.events.extend(events)

    def learn_anew(self) -> Callable[[], None]:
        """Forget what ended queries have taught of widths and of staged tasks.

        What it returns gives back what was forgotten, in the place of what was learnt since.
        """
        tasks = self.tasks.learn_anew(make_predictor(TASK_PREDICTOR))
        widths, self.widths = self.widths, Widths()

        def give_back() -> None:
            tasks()
            self.widths = widths

        return give_back

    def learnt(self) -> dict[str, dict[str, Any]]:
        """What ended queries have taught of widths and of staged tasks, by the model's name."""
        return {"tasks": self.tasks.learnt(), "widths": self.widths.learnt()}

    def recall(self, learnt: Mapping[str, Any]) -> None:
        """Go on from what queries of earlier sessions have taught."""
        if "tasks" in learnt:
            self.tasks.recall(learnt["tasks"])
        if "widths" in learnt:
            self.widths.recall(learnt["widths"])

    def riding(self) -> dict[str, list[TextScan]]:
        """The scans of active queries that share them, by table."""
        found: dict[str, list[TextScan]] = {}
        for entry in self.entries.values():
            if entry.request.plan == "staged":
                for scan in entry.request.scans:
                    found.setdefault(scan.table, []).append(scan)
        return found

    def tell_tables(self, work: Work) -> None:
        """Tell the kernel of tables that are scanned for the first time, or have changed.

        Queries that scan the table as it was go on alone.
        """
        if self.spreads:
            self._tell_places(work)
            return
        for name, (fingerprint, table) in work.tables().items():
            if self.scanned.get(name) != (fingerprint, len(table.splits)):
                self.scanned[name] = (fingerprint, len(table.splits))
                self.tell(ev.TableChanged(self.now, table))

    def _tell_places(self, work: Work) -> None:
        """Tell the kernel of tables of which splits are elsewhere than it knows."""
        for name, (fingerprint, table) in work.tables().items():
            placed = self.places.scanned(fingerprint, table) if fingerprint else table
            if self.kernel.state.tables.get(name) != placed:
                self.tell(ev.TableChanged(self.now, placed))

    def note_reads(self, command: Launch | Grant) -> None:
        """A node is about to read something, and has it in its caches then."""
        if not self.spreads:
            return
        state = self.kernel.state
        if isinstance(command, Grant):
            job = state.jobs.get(command.job)
            for name in () if job is None else job.spec.scans:
                self.places.note_read(name, None, command.node)
            return
        for task in command.tasks:
            job = state.jobs.get(task.job)
            if job is not None and job.spec.scans and task.kind == MAP:
                tables = {table.name: table for table, _ in job.scanned}
                name, split = split_of(task.index, job.spec.scans, tables)
                self.places.note_read(name, split, command.node)

    def publish(self, entry: Entry) -> None:
        """Publish what is known of a query, once per half of a step."""
        self._changed[entry.id] = entry

    def most_bytes(self, entry: Entry) -> int:
        """What a query may reserve that names no amount of memory."""
        return self.gate.most_bytes(entry.request, self.reservations.usual_bytes)

    def staged_bytes(self, entry: Entry) -> int:
        """What a query reserves that runs in tasks: at the nodes of a cluster the usual share of
        the memory of each, and more if it is known to need more.
        """
        request, reservations = entry.request, self.reservations
        if not self.spreads:
            return reservations.staged(request, self.most_bytes(entry))
        hosts = max(1, len(self.kernel.state.hosts))
        usual = max(reservations.usual_bytes, int(reservations.pool_bytes * QUERY_SHARE) * hosts)
        needed = max(usual, entry.prediction.memory_bytes or 0)
        needed = int(min(needed, self.kernel.state.memory_bytes or needed))
        return reservations.staged(request, self.gate.most_bytes(request, needed))

    def tell_estimates(self, entry: Entry) -> None:
        """Tell the kernel what is expected of a query by now: its work, and its speed-up curve."""
        assert entry.work is not None
        entry.speedup = self.curve(entry)
        self.tell(*entry.work.estimates(entry.expected_s, entry.speedup))

    def curve(self, entry: Entry) -> Speedup:
        """How much faster a query gets with more slots, by what is known now."""
        seen = NOTHING_SEEN if entry.run is None else entry.run.idling
        return self.widths.curve(entry.request.template, entry.prediction, entry.expected_s, seen)

    def note_moved(self, moved: Moved) -> None:
        """The first slot of a query changes what others reserve, and which have begun."""
        for query in moved.started:
            entry = self.entries.get(query)
            if entry is not None and entry.started_s is None:
                entry.started_s = self.now
                self.gate.started(entry)
                self.publish(entry)
        self.move_memory(moved.events)

    def move_memory(self, changes: Sequence[ev.MemoryChanged]) -> None:
        """Another query holds the memory of a run from now on."""
        for change in changes:
            entry = self.entries.get(change.query)
            if entry is not None:
                memory_bytes = int(change.memory_bytes)
                self.readers.reserved_bytes += memory_bytes - entry.memory_bytes
                entry.memory_bytes = memory_bytes
        self.events.extend(changes)

    def free(self, entry: Entry) -> None:
        """Free its memory; drop its execution if no other query needs it."""
        self.readers.free(entry.id, entry.memory_bytes)
        entry.memory_bytes = 0
        if entry.work is not None:
            entry.work.left()
