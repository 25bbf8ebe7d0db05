"""From a recorded session back to a workload: what would another policy have done with it?

The workload is made of what the kernel's own books say. A divisible job takes the slot-seconds it
held, as wide as it could be used at that point of its work; the tasks of a staged job take their
mean. Policies are told what was told at the time: estimates and widths come back when as much of
the job is done as then. A query that was answered by the run of another query is left out, and
the slots it brought are counted as those of the other query.

A query with a slow reader is simulated as if the reader had been quick. A query that was cancelled
or never ended is simulated with its expected size.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from queryard.core import events as ev
from queryard.core.errors import QueryardError
from queryard.core.journal import Journal
from queryard.core.scheduler import Scheduler
from queryard.history import HistoryReader, QueryRecord, SessionRecord
from queryard.metrics import QueryRow, RunRows, read_run
from queryard.metrics.response import mean
from queryard.policies import compose
from queryard.sim.conditions import Conditions
from queryard.sim.driver import SimDriver
from queryard.sim.ordering import CLUSTER, USERS
from queryard.sim.truth import Truth
from queryard.workload.model import Arrival, Workload

from .books import Books, Told

# How often a simulated job is asked how far it is, as a live one is.
LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class Recorded:
    """A session as it was, and as a workload; times are those of its clock.

    `real` has the queries that gave a result and can be simulated, from the asking to the end;
    `shared` is how many more queries the run of another query answered.
    """

    session: SessionRecord
    journal: Journal
    workload: Workload
    conditions: Conditions
    real: RunRows
    shared: int
    told: Mapping[str, tuple[Told, ...]]
    changes: tuple[ev.PolicyChosen | ev.TableChanged, ...]

    @property
    def mean_response_s(self) -> float | None:
        return _mean_response_s(self.real)

    def simulate(self, profile: Mapping[str, Any] | None = None) -> RunRows:
        """The same arrivals under a policy; without one, under those of the session."""
        settings = self.journal.kernel_settings()
        chosen = dict(self.journal.profile if profile is None else profile)
        journal = Journal(asdict(settings), chosen)
        driver = SimDriver(
            Scheduler(compose, chosen, settings, journal),
            Truth(self.conditions, settings.seed),
            estimates=self._first_estimates,
        )
        driver.add_nodes(self.workload.nodes)
        for arrival in self.workload.arrivals:
            driver.add_arrival(arrival)
        for change in self.changes:
            if profile is None or isinstance(change, ev.TableChanged):
                driver.post(change.time_s, CLUSTER, change)
        _Course(self, driver).run()
        return _judged(read_run(journal), self.real)

    def _first_estimates(self, now: float, arrival: Arrival) -> list[ev.EstimateChanged]:
        first = []
        for job in arrival.query.jobs:
            for told in self.told.get(arrival.query.job_id(job.name), ()):
                if isinstance(told.event, ev.EstimateChanged):
                    first.append(told.event._replace(time_s=now))
                    break
        return first


def difference(recorded: Recorded, simulated: RunRows) -> float | None:
    """By which share the simulated mean response is above the real one."""
    real_s, simulated_s = recorded.mean_response_s, _mean_response_s(simulated)
    return simulated_s / real_s - 1.0 if real_s and simulated_s is not None else None


def _mean_response_s(run: RunRows) -> float | None:
    responses = [row.response_s for row in run.queries.values() if row.response_s is not None]
    return mean(responses) if responses else None


def _judged(run: RunRows, real: RunRows) -> RunRows:
    """Only the queries that count in reality, and from the moment they were asked for."""
    run.queries = {
        query: replace(run.queries[query], submit_s=row.submit_s)
        for query, row in real.queries.items()
        if query in run.queries
    }
    return run


class _Course:
    """Drives a simulation, and tells of each job what was told when as much of it was done."""

    def __init__(self, recorded: Recorded, driver: SimDriver) -> None:
        self._driver = driver
        self._state = driver.scheduler.state
        # Those still to come, the last first.
        self._arrivals_s = sorted(
            (arrival.query.submit_s for arrival in recorded.workload.arrivals), reverse=True
        )
        self._work_s: dict[str, float] = {}
        # What is still to be told, the last first.
        self._ahead: dict[str, list[Told]] = {}
        for arrival in recorded.workload.arrivals:
            for job in arrival.query.jobs:
                job_id = arrival.query.job_id(job.name)
                self._work_s[job_id] = arrival.truth[job.name].work_s
                self._plan(arrival.query.submit_s, recorded.told.get(job_id, ()), job_id)

    def _plan(self, submit_s: float, told: Iterable[Told], job: str) -> None:
        for each in told:
            if each.held_s <= 0:  # while it waited: at the same time after its submission
                at_s = submit_s + each.after_s
                self._driver.post(at_s, USERS, each.event._replace(time_s=at_s))
            else:
                self._ahead.setdefault(job, []).insert(0, each)

    def run(self) -> None:
        driver, state, coming = self._driver, self._state, self._arrivals_s
        now = 0.0
        while driver.unfinished:
            while coming and coming[-1] <= now:
                coming.pop()
            if not state.queries and coming:
                now = coming[-1]
            elif not coming and not self._is_telling():
                break
            now += LOOK_S
            driver.run(now)
            self._tell(now)
        driver.run()

    def _is_telling(self) -> bool:
        """Whether anything moves, and there is more to be told."""
        served = self._state.leaseholders or self._state.running
        return bool(served) and any(job in self._state.jobs for job in self._ahead)

    def _tell(self, now: float) -> None:
        for job_id, job in self._state.leaseholders.items():
            ahead = self._ahead.get(job_id, [])
            # Shares are of what is expected of it, if anything is.
            done_s = job.done_share * (job.work_s if job.work_known else self._work_s[job_id])
            while ahead and ahead[-1].held_s <= done_s:
                self._driver.post(now, USERS, ahead.pop().event._replace(time_s=now))
            if not ahead:
                self._ahead.pop(job_id, None)
        # Whatever happens makes the driver say how far all jobs are.
        self._driver.post(now, USERS, ev.EstimateChanged(now, ""))


# --- from the record to the workload ---------------------------------------------------------


def recorded(reader: HistoryReader, session: str | None = None) -> Recorded:
    """A session by its name, or the last one."""
    found = reader.session(session)
    journal = reader.journal(found.session)
    asked = {record.query: record for record in reader.queries(session=found.session)}
    books = Books(journal)
    run = read_run(journal)
    for query, row in run.queries.items():
        _see_as_asked(row, asked.get(query))
    runs_of = {query: _run_of(query, asked, run) for query in run.queries}
    members: defaultdict[str, list[str]] = defaultdict(list)
    for query, runs in runs_of.items():
        members[runs].append(query)
    arrivals = tuple(
        _arrival(run.queries[query], [run.queries[other] for other in others], books)
        for query, others in members.items()
    )
    if not arrivals:
        raise QueryardError(
            f"session {found.session} has asked nothing yet; name one that has, or see "
            "queryard history --sessions"
        )
    nodes = tuple(row.node for row in run.nodes if row.joined_s <= arrivals[0].query.submit_s)
    return Recorded(
        session=found,
        journal=journal,
        workload=Workload(found.session, arrivals, nodes=nodes),
        conditions=Conditions(
            revoke_delay_s=books.revoke_delay_s,
            progress_every_s=LOOK_S / 2,
            node_boot_s=0.0,  # slots of this machine are there at once
        ),
        real=_answered(run, members, asked),
        shared=len(runs_of) - len(members),
        told=_told(arrivals, members, asked, books),
        changes=tuple(books.changes),
    )


def _told(
    arrivals: Iterable[Arrival],
    members: Mapping[str, Iterable[str]],
    asked: Mapping[str, QueryRecord],
    books: Books,
) -> dict[str, tuple[Told, ...]]:
    """What was told of each job, in the slot-seconds that its work is simulated in.

    Estimates are of core-seconds, and slots are not busy all the time.
    """
    found = {}
    for arrival in arrivals:
        query = arrival.query
        ends = [asked[member] for member in members[query.id] if member in asked]
        work_s = sum(record.work_s or 0.0 for record in ends)
        finished = any(record.outcome == "finished" for record in ends)
        scale = arrival.work_s / work_s if finished and work_s else 1.0
        for job in query.jobs:
            name = query.job_id(job.name)
            found[name] = tuple(told.scaled(scale) for told in books.told[name])
    return found


def _run_of(query: str, asked: Mapping[str, QueryRecord], run: RunRows) -> str:
    """The query with the run that answers this one; itself, if it ran on its own."""
    seen = {query}
    while (record := asked.get(query)) is not None and record.twin_of in run.queries:
        query = record.twin_of
        if query in seen:
            break
        seen.add(query)
    return query


def _see_as_asked(row: QueryRow, record: QueryRecord | None) -> None:
    """Take the end that the client saw; in the kernel a query may go on for a moment longer."""
    if record is not None and record.outcome == "finished":
        row.outcome, row.end_s = "finished", record.ended_s


def _answered(run: RunRows, members: Iterable[str], asked: Mapping[str, QueryRecord]) -> RunRows:
    """Only the queries that gave a result, from the moment they were asked for."""
    rows = {query: run.queries[query] for query in members}
    run.queries = {
        query: replace(row, submit_s=asked[query].asked_s if query in asked else row.submit_s)
        for query, row in rows.items()
        if row.outcome == "finished"
    }
    return run


def _arrival(row: QueryRow, members: Iterable[QueryRow], books: Books) -> Arrival:
    """A query with all the work that was done for it and for the queries that share its run."""
    query = replace(row.query, submit_s=row.submit_s)
    finished = row.outcome == "finished"
    truth = {}
    for job in query.jobs:
        shared = [member.query.job_id(job.name) for member in members]
        truth[job.name] = books.truth(job, shared, finished)
    return Arrival(query, truth, None if finished else books.cancelled_s.get(query.id))
