"""Models of staged jobs and tasks: what was put in comes out, whatever else happens."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.core.errors import InvalidModel
from queryard.estimate.jobs import JobSizes, JobTimes, PhaseSizes, TaskTimes, balance
from queryard.estimate.tasks.planned import PlannedJob
from queryard.estimate.tasks.staged import StagedTimes

OPERATORS = ("extract", "groupby", "join")
# θ0 to θ4 of a job by operator, and the terms of a task.
THETA = {
    "extract": (0.02, 6e-9, 2e-9, 5e-9, 0.0),
    "groupby": (0.01, 3e-9, 9e-9, 20e-9, 0.0),
    "join": (0.03, 8e-9, 4e-9, 12e-9, 16e-9),
}
PHI = {"map": (0.004, 2e-5, 5e-9, 3e-9, 1e-8, 6e-9), "reduce": (0.009, 5e-6, 0.0, 9e-9, 2e-9, 4e-9)}

sizes = st.floats(0, 1e12)


def drawn_job(rng: random.Random) -> JobSizes:
    def size() -> float:
        return 10 ** rng.uniform(5, 8.5)

    maps = PhaseSizes(rng.randint(1, 20), size(), size(), size(), size(), rng.uniform(50, 2000))
    reduces = PhaseSizes(
        rng.randint(1, 4), size(), maps.left_bytes, size(), size(), rng.uniform(50, 2000)
    )
    return JobSizes(rng.choice(OPERATORS), maps, reduces, balance(size(), size()))


def job_s(job: JobSizes) -> float:
    assert job.reduce is not None
    start, read, share, left, skew = THETA[job.operator]
    sent = job.map.left_bytes
    of_join = job.balance * sent if job.operator == "join" else 0.0
    return (
        start
        + read * job.in_bytes
        + share * sent / job.reduce.tasks
        + left * job.out_bytes
        + skew * of_join
    )


def task_s(job: JobSizes, kind) -> float:
    phase = job.phase(kind)
    amounts = (
        1.0,
        phase.text_chars,
        phase.scan_bytes / phase.tasks,
        phase.read_bytes / phase.tasks,
        phase.built_bytes,
        phase.left_bytes / phase.tasks,
    )
    return sum(price * amount for price, amount in zip(PHI[kind], amounts, strict=True))


def learnt(rng, jobs, noise=0.0, odd=0.0):
    equation, tasks = JobTimes(), TaskTimes()
    for _ in range(jobs):
        job = drawn_job(rng)

        def seen(seconds):
            return seconds * rng.lognormvariate(0, noise) * (50 if rng.random() < odd else 1)

        equation.learn(job, seen(job_s(job)))
        for kind in PHI:
            tasks.learn(job, kind, seen(task_s(job, kind)))
    return equation, tasks


def worst(rng, equation, tasks):
    """The median and the 90th percentile of relative errors on other jobs."""
    found = []
    for _ in range(200):
        job = drawn_job(rng)
        found.append(abs(equation.seconds(job) / job_s(job) - 1))
        found += [abs(tasks.task_seconds(job, kind) / task_s(job, kind) - 1) for kind in PHI]
    found.sort()
    return found[len(found) // 2], found[len(found) * 9 // 10]


@pytest.mark.parametrize(
    ("noise", "odd", "median", "ninth"),
    [(0.0, 0.0, 0.05, 0.15), (0.2, 0.0, 0.1, 0.3), (0.2, 0.05, 0.25, 0.6)],
)
def test_coefficients_come_out_as_they_went_in(noise, odd, median, ninth):
    rng = random.Random(5)
    found = worst(rng, *learnt(rng, 600, noise, odd))
    assert found[0] < median
    assert found[1] < ninth


def test_the_same_jobs_give_the_same_model():
    one, other = (learnt(random.Random(3), 50, 0.3)[0] for _ in range(2))
    job = drawn_job(random.Random(9))
    assert one.seconds(job) == other.seconds(job)
    assert one.interval(job) == other.interval(job)


def test_intervals_hold_what_they_say_and_narrow():
    rng = random.Random(2)
    fresh = JobTimes()
    equation, tasks = learnt(rng, 400, 0.3)
    inside, of_tasks = 0, 0
    for _ in range(300):
        job = drawn_job(rng)
        low, high = equation.interval(job)
        inside += low <= job_s(job) * rng.lognormvariate(0, 0.3) <= high
        assert high / low < fresh.interval(job)[1] / fresh.interval(job)[0]
        low, high = tasks.interval(job, "map")
        of_tasks += low <= task_s(job, "map") * rng.lognormvariate(0, 0.3) <= high
    assert inside >= 240
    assert of_tasks >= 240


def test_one_odd_job_spoils_little():
    rng = random.Random(7)
    equation, _ = learnt(rng, 200)
    job = drawn_job(rng)
    before = equation.seconds(job)
    equation.learn(job, 1000 * before)
    assert equation.seconds(job) < 1.6 * before


@given(
    st.lists(st.tuples(st.sampled_from(OPERATORS), *[sizes] * 5, st.floats(0, 1e6)), max_size=30),
    st.tuples(*[sizes] * 5),
)
def test_seconds_are_positive_whatever_was_learnt(seen, asked):
    equation, tasks = JobTimes(), TaskTimes()
    for operator, scan, read, built, sent, left, seconds in seen:
        maps, reduces = PhaseSizes(3, scan, read, built, sent), PhaseSizes(2, 0.0, sent, 0.0, left)
        job = JobSizes(operator, maps, reduces, balance(scan, built))
        equation.learn(job, seconds)
        tasks.learn(job, "map", seconds)
        tasks.learn(job, "reduce", seconds)
    scan, read, built, sent, left = asked
    for operator in OPERATORS:
        job = JobSizes(
            operator, PhaseSizes(3, scan, read, built, sent), PhaseSizes(2, left_bytes=left)
        )
        low, high = equation.interval(job)
        assert 0 < low <= equation.seconds(job) <= high
        assert tasks.seconds(job) > 0


def test_a_job_without_reduces_has_no_reduce_tasks_to_ask_for():
    with pytest.raises(InvalidModel, match="without reduce"):
        JobSizes("join", PhaseSizes(1)).phase("reduce")


def test_a_template_has_its_own_pace_and_others_keep_theirs():
    times = StagedTimes()
    job = JobSizes("join", PhaseSizes(2, 1e8), PhaseSizes(1, left_bytes=1e7))
    planned = PlannedJob(1e8, {}, 1e7, 1.0, 1.0, job)
    first = times.timed("", planned)
    for number in range(40):
        times.learn(f"template{number}/j1", "map", job, first.map_s)
        times.learn("slow/j1", "map", job, 4 * first.map_s)
    slow, other = times.timed("slow/j1", planned), times.timed("new/j1", planned)
    assert slow.map_s == pytest.approx(4 * first.map_s, rel=0.2)
    assert first.map_s < other.map_s < 3 * first.map_s
    assert slow.reduce_s == first.reduce_s
    fork = times.fork()
    fork.learn("new/j1", "map", job, 9.0)
    assert times.timed("new/j1", planned) == other
    assert planned._replace(sizes=None) == times.timed("slow/j1", planned._replace(sizes=None))


def test_what_was_learnt_of_tasks_outlives_a_session():
    before, after = StagedTimes(), StagedTimes()
    job = JobSizes("join", PhaseSizes(2, 1e8), PhaseSizes(1, left_bytes=1e7))
    planned = PlannedJob(1e8, {}, 1e7, 1.0, 1.0, job)
    usual = before.timed("", planned)
    for _ in range(20):
        before.learn("", "map", job, 4 * usual.map_s)
    state = json.loads(json.dumps(before.to_state()))
    after.take_state(state)
    assert after.timed("", planned) == before.timed("", planned)
    assert after.timed("", planned).map_s > 3 * usual.map_s
    # Factors hold for the prices that they were learnt with; what is no state is ignored.
    for other in (
        {**state, "prices": {}},
        {**state, "factors": {"join/map": {"means": "x"}}},
        None,
    ):
        new = StagedTimes()
        new.take_state(other)
        assert new.timed("", planned) == usual
