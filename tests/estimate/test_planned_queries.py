"""What a plan expects of its tasks is corrected by those of the same query that have ended."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.core.commands import Launch
from queryard.core.model import Job, Phase, Query, TaskId
from queryard.estimate.jobs import JobSizes, PhaseSizes
from queryard.estimate.tasks import make_predictor
from queryard.estimate.tasks.estimating import Report, TaskEstimates
from queryard.estimate.tasks.planned import PlannedJob, PlannedQuery
from queryard.estimate.tasks.staged import StagedTimes

SCAN, JOIN, LAST = "scan", "join", "last"


def planned() -> PlannedQuery:
    return PlannedQuery(
        {
            SCAN: PlannedJob(800.0, {}, 80.0, 1.0, None),
            JOIN: PlannedJob(0.0, {SCAN: 80.0}, 40.0, 1.0, 1.0),
            LAST: PlannedJob(0.0, {JOIN: 40.0}, 4.0, 1.0, None),
        }
    )


def query() -> Query:
    return Query(
        "q",
        (
            Job(SCAN, map=Phase(16, sizes=(50.0,) * 16)),
            Job(JOIN, upstream=(SCAN,), map=Phase(4, sizes=(20.0,) * 4), reduce=Phase(2, 20.0)),
            Job(LAST, upstream=(JOIN,), map=Phase(1, sizes=(40.0,))),
        ),
        class_name="template",
    )


class Course:
    """A query on its way, and the newest estimates of its jobs."""

    def __init__(self, predictor: str = "regression") -> None:
        self.tasks = TaskEstimates(make_predictor(predictor))
        self.known = {}
        self.now = 0.0
        self.launches = 0
        self.hear(self.tasks.submitted(0.0, query(), planned()))

    def hear(self, events):
        for event in events:
            self.known[event.job] = event

    def end(self, job, kind, index, seconds, left_bytes):
        self.launches += 1
        launch = Launch(self.launches, "n", (TaskId(f"q/{job}", kind, index),), time_s=self.now)
        self.now += seconds
        self.hear(self.tasks.ended(self.now, launch, Report(output_bytes=left_bytes)))

    def map_s(self, job):
        return self.known[f"q/{job}"].map_s


def test_after_eight_tasks_of_fifty_seconds_no_task_is_expected_to_take_one():
    course = Course()
    assert course.map_s(SCAN) == 1.0
    for index in range(8):
        course.end(SCAN, "map", index, 50.0, 5.0)
    assert course.map_s(SCAN) == pytest.approx(50.0, rel=0.1)
    for job in (JOIN, LAST):
        assert course.map_s(job) > 10
    assert course.known[f"q/{JOIN}"].reduce_s > 10


def test_what_a_job_has_left_is_what_others_are_estimated_with():
    course = Course()
    for index in range(16):
        course.end(SCAN, "map", index, 1.0, 20.0)  # 320 bytes, four times the plan's
    plan = course.tasks._followed["q"].plan
    assert plan.size_factor(JOIN) == pytest.approx(4.0)
    assert plan.size_factor(LAST) == pytest.approx(4.0)  # in proportion, until more is known
    for index in range(4):
        course.end(JOIN, "map", index, 1.0, 10.0)
    for index in range(2):
        course.end(JOIN, "reduce", index, 1.0, 10.0)
    assert plan.size_factor(LAST) == pytest.approx(0.5)
    course.tasks.forget("q")
    assert not course.tasks._followed


def test_phases_that_have_ended_tell_what_those_of_other_templates_take():
    sizes = JobSizes("extract", PhaseSizes(16, 8e8))
    plan = PlannedQuery({SCAN: PlannedJob(800.0, {}, 80.0, 1.0, None, sizes)})
    tasks = TaskEstimates(make_predictor("regression"))
    known, launches = [], 0
    for number in range(12):
        name, job = f"q{number}", Job(SCAN, map=Phase(16, sizes=(50.0,) * 16))
        (event,) = tasks.submitted(0.0, Query(name, (job,), class_name=f"t{number}"), plan)
        known.append(event.map_s)
        for index in range(16):
            launches += 1
            launch = Launch(launches, "n", (TaskId(f"{name}/{SCAN}", "map", index),), time_s=0.0)
            tasks.ended(1.0, launch, Report(output_bytes=5.0))
        tasks.forget(name)
    assert known == sorted(known)
    assert known[0] < 0.25
    assert known[-1] == pytest.approx(1.0, rel=0.3)


def ride(course, indexes, left_bytes, seconds=1.0):
    """Maps of the scan that share their reads with another query."""
    for index in indexes:
        course.launches += 1
        tasks = (TaskId(f"q/{SCAN}", "map", index), TaskId("other/scan", "map", index))
        launch = Launch(course.launches, "n", tasks, time_s=course.now)
        course.now += seconds
        report = Report(2 * left_bytes, rider_bytes={task.job: left_bytes for task in tasks})
        course.hear(course.tasks.ended(course.now, launch, report))


def test_riders_tell_what_they_have_left_and_nothing_of_time():
    course = Course()
    ride(course, range(16), 20.0, seconds=50.0)  # 320 bytes, four times the plan's
    plan = course.tasks._followed["q"].plan
    assert course.tasks._jobs[f"q/{SCAN}"].is_done
    assert plan.size_factor(JOIN) == pytest.approx(4.0)
    assert course.map_s(JOIN) == pytest.approx(4.0)


def test_a_phase_of_riders_and_others_ends_with_the_last_of_both():
    course = Course()
    ride(course, range(1, 16), 20.0)
    assert course.map_s(JOIN) == 1.0
    course.end(SCAN, "map", 0, 1.0, 20.0)
    assert course.tasks._followed["q"].plan.size_factor(JOIN) == pytest.approx(4.0)
    assert course.map_s(JOIN) == pytest.approx(4.0)


def test_of_maps_that_ride_the_shuffled_bytes_are_known():
    tasks = TaskEstimates(make_predictor("standard"))
    job = Job(JOIN, map=Phase(2, sizes=(20.0,) * 2), reduce=Phase(2, 20.0))
    plan = PlannedQuery({JOIN: PlannedJob(40.0, {}, 40.0, 1.0, 1.0)})
    tasks.submitted(0.0, Query("q", (job,)), plan)
    for index in range(2):
        riders = tuple(TaskId(f"{query}/{JOIN}", "map", index) for query in "qr")
        report = Report(50.0, rider_bytes={f"q/{JOIN}": 30.0, f"r/{JOIN}": 20.0})
        tasks.ended(1.0, Launch(index, "n", riders, time_s=0.0), report)
    assert tasks._jobs[f"q/{JOIN}"].asked.shuffled_bytes == 60.0


def test_the_rider_that_is_left_of_a_shared_read_tells_no_time():
    course = Course()
    tasks = (TaskId(f"q/{SCAN}", "map", 0),)  # the others have failed
    report = Report(20.0, rider_bytes={f"q/{SCAN}": 20.0})
    assert course.tasks.ended(50.0, Launch(1, "n", tasks, time_s=0.0), report) == []
    assert course.tasks._jobs[f"q/{SCAN}"].maps == {0: 20.0}
    assert course.tasks._followed["q"].plan.seconds(SCAN, "map") == 1.0


def test_a_predictor_is_asked_only_of_phases_of_which_tasks_have_ended(monkeypatch):
    course, asked = Course(), []
    predict = course.tasks._predictor.predict
    monkeypatch.setattr(
        course.tasks._predictor, "predict", lambda task: asked.append(task.job) or predict(task)
    )
    for index in range(8):
        course.end(SCAN, "map", index, 50.0, 5.0)
    assert set(asked) == {f"q/{SCAN}"}


def test_a_task_that_runs_twice_counts_once():
    course = Course()
    for _ in range(20):
        course.end(SCAN, "map", 0, 1.0, 5.0)
    assert not course.tasks._jobs[f"q/{SCAN}"].is_done


@given(
    st.lists(st.floats(1e-3, 1e4), max_size=20),
    st.floats(0, 1e9),
    st.sampled_from([SCAN, JOIN, LAST]),
)
def test_seconds_stay_between_the_plan_and_what_was_seen(seen, left, job):
    plan = planned()
    for seconds in seen:
        plan.took(SCAN, "map", seconds)
    expected = plan.seconds(job, "map")
    assert min([1.0, *seen]) * 0.999 <= expected <= max([1.0, *seen]) * 1.001
    plan.finished(SCAN, left)
    assert plan.seconds(job, "map") > 0


def test_a_scan_that_leaves_a_hundred_times_more_does_not_stretch_what_reads_its_groups():
    jobs = {
        "scan": PlannedJob(1e9, {}, 1e6, 1.0, None, fixed_s=0.01),
        "groups": PlannedJob(0.0, {"scan": 1e6}, 2000.0, 1.0, 1.0, fixed_s=0.01, most_bytes=2600.0),
        "top": PlannedJob(0.0, {"groups": 2000.0}, 100.0, 0.02, None, fixed_s=0.01),
    }
    course = PlannedQuery(jobs)
    course.finished("scan", 1e8)
    assert course.size_factor("groups") == pytest.approx(100.0)
    assert course.seconds("groups", "map") == pytest.approx(0.01 + 0.99 * 100)
    assert course.size_factor("top") == pytest.approx(1.3)
    assert course.seconds("top", "map") == pytest.approx(0.023)
    # What a job has left is believed, whatever its bound was.
    course.finished("groups", 20_000.0)
    assert course.size_factor("top") == pytest.approx(10.0)


def timed(times: StagedTimes, sizes: JobSizes, class_name: str = "") -> PlannedJob:
    return times.timed(class_name, PlannedJob(0.0, {}, 0.0, 1.0, None, sizes))


def test_the_interval_of_a_job_comes_of_what_its_tasks_do_and_narrows_as_such_tasks_end():
    times = StagedTimes()
    scan = JobSizes("extract", PhaseSizes(4, scan_bytes=1e9))
    mixed = JobSizes("extract", PhaseSizes(4, scan_bytes=1e8, read_bytes=1e8, left_bytes=1e8))
    first = times.doubt("", timed(times, scan))
    assert first > times.doubt("", timed(times, mixed))  # errors of several prices partly cancel
    usual_s = timed(times, scan).map_s
    for _ in range(20):
        times.learn("", "map", scan, 2 * usual_s)
    known = times.doubt("", timed(times, scan))
    assert known < first / 2
    # Joins have taught nothing.
    join = scan._replace(operator="join")
    assert times.doubt("", timed(times, join)) == first


def test_the_interval_of_a_template_comes_of_how_its_queries_differed():
    sizes = JobSizes("extract", PhaseSizes(4, scan_bytes=1e9))
    steady, varied = StagedTimes(), StagedTimes()
    for turn in range(8):
        steady.learn("template", "map", sizes, 1.0)
        varied.learn("template", "map", sizes, 8.0 if turn % 2 else 0.5)
    doubts = [
        times.doubt("template", timed(times, sizes, "template")) for times in (steady, varied)
    ]
    assert doubts[0] < 0.1
    assert doubts[1] > 10 * doubts[0]


def test_a_job_of_unknown_sizes_has_no_interval():
    assert StagedTimes().doubt("", PlannedJob(0.0, {}, 0.0, 1.0, None)) is None
