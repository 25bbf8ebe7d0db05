"""How a native query begins: in a run of its own, or in that of one that asks the same."""

from __future__ import annotations

from queryard.backends.local import NATIVE_JOB, LocalBackend
from queryard.engine.capi import library
from queryard.engine.fan import Fan
from queryard.engine.native import NativeEngine
from queryard.sql.catalog import Catalog

from .asked import Asked
from .gatekeeper import Gatekeeper
from .prediction import Prediction
from .record import Record
from .resources import chosen_bytes
from .runs import Key, Run, Runs
from .slow_readers import SlowReaders
from .work import NativeWork

# Core-seconds; who needs no more is over before anybody would call its slot back.
MOMENT_S = 0.1
# Rows out of nothing, which no table gives an idea of.
_MAKERS = frozenset({"generate_series", "range", "recursive", "repeat", "unnest"})


class NativeStart:
    """Makes the work of native queries; under the lock of its owner."""

    def __init__(
        self,
        catalog: Catalog,
        engine: NativeEngine,
        backend: LocalBackend,
        gate: Gatekeeper,
        readers: SlowReaders,
        most_bytes: int,
        pool_bytes: int,
    ) -> None:
        self._engine = engine
        self._backend = backend
        self._gate = gate
        self._readers = readers
        self._most_bytes = most_bytes
        self._pool_bytes = pool_bytes
        self._runs = Runs(catalog)
        # Where threads cannot be lent, one slot runs a whole statement.
        self._width = backend.slots if library().leases else 1

    def needs_connection(self, asked: Asked) -> bool:
        """Whether it must run on the session's own connection."""
        return self._engine.session.must_run(asked.statements)

    def look(self, asked: Asked) -> int:
        """From which number on runs may answer a query as well; without the lock of the owner."""
        return self._runs.look(self._runs.key(asked))

    @property
    def runs_made(self) -> int:
        """How many runs there were so far."""
        return self._runs.made

    def work(self, record: Record, asked: Asked) -> NativeWork:
        """What a query consists of, with a run that will answer it."""
        key = self._runs.key(asked) if self._engine.is_pooled(asked.statements) else None
        run = self._runs.find(key, record.runs_since)
        if run is not None and run.join(record):
            for other in list(run.records):
                # None of them may hold up the rest.
                self._readers.go_on(other.output)
        else:
            run = self._new_run(key, record, asked)
        work = NativeWork(record, run, self._width, asked.reasons)
        record.work = work
        job = f"{record.id}/{NATIVE_JOB}"
        record.member = self._backend.add_native(job, run.native, self._width)
        record.meter = record.member.meter
        record.run = run
        run.meters.append(record.meter)
        return work

    def _new_run(self, key: Key | None, record: Record, asked: Asked) -> Run:
        most_bytes = self._gate.most_bytes(asked, self._most_bytes)
        # However little there is, one query must not take all of it on a guess.
        guessed_bytes = min(most_bytes, self._pool_bytes // 2)
        memory_bytes = chosen_bytes(asked, record.prediction, guessed_bytes)
        fan = Fan(record.output)
        self._readers.watch(record.output)
        sprints = _takes_a_moment(asked, record.prediction)
        native = self._engine.query(asked.statements, fan, asked.parameters, memory_bytes, sprints)
        if not native.pooled:
            memory_bytes = most_bytes = 0  # the session's instance has memory of its own
        elif asked.memory_bytes is not None:
            most_bytes = memory_bytes
        run = Run(key, native, fan, memory_bytes, most_bytes)
        run.begin(record)
        self._runs.add(run)
        return run

    def over(self, run: Run) -> None:
        """A run has ended; whoever asks the same from now on has another."""
        self._runs.drop(run)


def _takes_a_moment(asked: Asked, prediction: Prediction | None) -> bool:
    """Whether a query will be over at once, as far as that can be known."""
    if prediction is None or prediction.work_s > MOMENT_S:
        return False
    makers = any(not statement.names.isdisjoint(_MAKERS) for statement in asked.statements)
    return prediction.by == "template" or not makers
