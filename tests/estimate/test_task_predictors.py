"""Predictors of task times: POSUM's rules by hand, and what the regression promises."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.core.errors import QueryardError
from queryard.estimate.tasks import PREDICTORS, Seen, TaskFeatures, make_predictor
from queryard.estimate.tasks.detailed import Detailed
from queryard.estimate.tasks.regression import MEMORY, Circle, Line, Memory, fit_line, typical
from queryard.estimate.tasks.standard import Standard


def a_map(job: str, size: float, kind: str = "sort", **more: object) -> TaskFeatures:
    return TaskFeatures(job, "map", kind, "ada", input_bytes=size, **more)  # type: ignore[arg-type]


def a_reduce(job: str, kind: str = "sort", **more: object) -> TaskFeatures:
    return TaskFeatures(job, "reduce", kind, "ada", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PREDICTORS)
def test_nothing_is_known_at_first(name: str) -> None:
    predictor = make_predictor(name)
    assert predictor.predict(a_map("a", 10.0)) is None
    assert predictor.predict(a_reduce("a")) is None


@pytest.mark.parametrize("name", PREDICTORS)
@given(seed=st.integers(0, 10_000))
def test_a_fork_knows_as_much_and_learns_by_itself(name: str, seed: int) -> None:
    random = Random(seed)

    def seen() -> Seen:
        job, kind = f"j{random.randrange(40)}", random.choice(("sort", "grep", ""))
        if random.random() < 0.3:
            reduce = a_reduce(job, kind, map_bytes=500.0, map_tasks=5, reduces=2)
            seconds = random.uniform(1.0, 9.0)
            return Seen(reduce, seconds, shuffle_s=seconds / 4, merge_s=seconds / 8)
        is_local = random.choice((True, False, None))
        task = a_map(job, random.uniform(1.0, 99.0), kind, is_local=is_local)
        return Seen(task, random.uniform(1.0, 9.0), output_bytes=random.uniform(0.0, 9.0))

    asked = [
        ask("new", kind=kind, **more)
        for kind in ("sort", "grep", "")
        for ask, more in (
            (lambda job, **more: a_map(job, 50.0, **more), {"is_local": True}),
            (a_reduce, {"map_bytes": 400.0, "map_tasks": 4, "reduces": 2}),
        )
    ]
    predictor = make_predictor(name)
    for _ in range(60):
        predictor.learn(seen())
    fork = predictor.fork()
    before = [predictor.predict(task) for task in asked]
    assert [fork.predict(task) for task in asked] == before
    for _ in range(60):
        fork.learn(seen())
    assert [predictor.predict(task) for task in asked] == before
    other = predictor.fork()
    for _ in range(60):
        predictor.learn(seen())
    assert [other.predict(task) for task in asked] == before


def test_the_regression_keeps_no_circles_of_jobs_that_are_gone() -> None:
    predictor = make_predictor("regression")
    for n in range(100):
        predictor.learn(Seen(a_map(f"j{n}", 10.0 + n), 1.0 + n))
    before = predictor.predict(a_map("new", 50.0))
    circles = len(predictor._phases["map"]._circles)  # type: ignore[attr-defined]
    for n in range(100):
        predictor.forget(f"j{n}")
    assert len(predictor._phases["map"]._circles) == circles - 100  # type: ignore[attr-defined]
    assert predictor.predict(a_map("new", 50.0)) == before


def test_an_unknown_predictor_is_refused() -> None:
    with pytest.raises(QueryardError, match="did you mean 'regression'"):
        make_predictor("regresion")


def test_basic_asks_the_job_then_its_class_then_its_tenant() -> None:
    basic = make_predictor("basic")
    basic.learn(Seen(a_map("other", 1.0, "grep"), 9.0))
    assert basic.predict(a_map("new", 1.0)) == 9.0
    basic.learn(Seen(a_map("old", 1.0), 3.0))
    assert basic.predict(a_map("new", 1.0)) == 3.0
    basic.learn(Seen(a_map("new", 1.0), 5.0))
    basic.learn(Seen(a_map("new", 1.0), 7.0))
    assert basic.predict(a_map("new", 1.0)) == 6.0


def test_only_the_latest_jobs_count() -> None:
    basic = PREDICTORS["basic"]().__class__(past_jobs=2)  # type: ignore[call-arg]
    for number, seconds in enumerate((100.0, 2.0, 4.0)):
        basic.learn(Seen(a_map(f"job{number}", 1.0), seconds))
    assert basic.predict(a_map("new", 1.0)) == 3.0


def test_standard_maps_go_by_their_own_input() -> None:
    amended, printed = Standard(), Standard(maps="mean")
    for standard in (amended, printed):
        standard.learn(Seen(a_map("a", 100.0), 4.0))
        standard.learn(Seen(a_map("a", 50.0), 4.0))
    assert amended.predict(a_map("a", 200.0)) == pytest.approx(200 * (0.04 + 0.08) / 2)
    assert printed.predict(a_map("a", 200.0)) == 4.0


def test_standard_reduces_prefer_past_rates_to_their_own() -> None:
    standard = Standard()
    standard.learn(Seen(a_map("old", 100.0), 1.0, output_bytes=50.0))
    reduce = a_reduce("old", map_bytes=100.0, map_tasks=1, reduces=1)
    standard.learn(Seen(reduce, 10.0))
    # 0.2 s per byte in the past; the new job's own maps leave half of 400 bytes to two reduces.
    standard.learn(Seen(a_map("new", 400.0), 1.0, output_bytes=200.0))
    asked = a_reduce("new", map_bytes=400.0, map_tasks=4, reduces=2)
    assert standard.predict(asked) == pytest.approx(100 * 0.2)
    by_split = Standard(share="split")
    by_split.learn(Seen(a_map("old", 100.0), 1.0, output_bytes=50.0))
    by_split.learn(Seen(reduce, 10.0))
    assert by_split.predict(asked) == pytest.approx(0.5 * 400 / 4 * 0.2)


@pytest.mark.parametrize("name", ["standard", "standard-split", "detailed", "detailed-unplaced"])
def test_the_history_of_a_job_is_other_jobs(name: str) -> None:
    """20 s in the past, 200 s the job's own first reduce: 20 s are predicted, not 110."""
    predictor = make_predictor(name)
    for job in ("old", "new"):
        predictor.learn(Seen(a_map(job, 100.0), 1.0, output_bytes=100.0))
    asked = a_reduce("new", map_bytes=100.0, map_tasks=1, reduces=1)
    predictor.learn(Seen(asked._replace(job="old"), 20.0, shuffle_s=10.0, merge_s=5.0))
    predictor.learn(Seen(asked, 200.0, shuffle_s=100.0, merge_s=50.0))
    assert predictor.predict(asked) == pytest.approx(20.0)
    assert predictor.predict(asked._replace(job="next")) == pytest.approx(110.0)


@pytest.mark.parametrize("name", ["basic", "standard", "detailed"])
def test_every_past_job_counts_once_however_many_tasks_it_has(name: str) -> None:
    predictor = make_predictor(name)
    for _ in range(9):
        predictor.learn(Seen(a_map("long", 100.0), 10.0))
    predictor.learn(Seen(a_map("short", 100.0), 20.0))
    assert predictor.predict(a_map("new", 100.0)) == pytest.approx(15.0)


def test_a_job_does_not_take_the_place_of_one_of_its_past() -> None:
    standard = Standard(past_jobs=1)
    standard.learn(Seen(a_reduce("old", shuffled_bytes=100.0, reduces=1), 20.0))
    own = a_reduce("new", shuffled_bytes=100.0, reduces=1)
    standard.learn(Seen(own, 200.0))
    assert standard.predict(own) == pytest.approx(20.0)
    assert standard.predict(own._replace(job="next")) == pytest.approx(200.0)


def test_without_a_past_of_reduces_the_rate_of_maps_is_taken() -> None:
    standard = Standard()
    standard.learn(Seen(a_map("a", 100.0), 2.0, output_bytes=100.0))
    assert standard.predict(a_reduce("a", map_bytes=300.0, reduces=3)) == pytest.approx(2.0)


def test_detailed_adds_up_the_phases() -> None:
    detailed = Detailed()
    detailed.learn(Seen(a_map("a", 100.0), 1.0, output_bytes=100.0))
    done = a_reduce("a", map_bytes=100.0, reduces=1)
    detailed.learn(Seen(done, 10.0, shuffle_s=5.0, merge_s=2.0))
    assert detailed.predict(a_reduce("b", map_bytes=200.0, reduces=1)) == pytest.approx(20.0)
    first = done._replace(job="c", is_first_wave=True)
    detailed.learn(Seen(first, 34.0, shuffle_s=30.0, merge_s=2.0))
    asked = a_reduce("d", map_bytes=100.0, reduces=1, is_first_wave=True)
    assert detailed.predict(asked) == pytest.approx(30.0 + 2.0 + (3.0 + 2.0) / 2)


def test_a_line_is_not_moved_by_stragglers() -> None:
    rng = Random(3)
    points = [(x := rng.uniform(10, 100), 5 + 0.2 * x) for _ in range(60)]
    points += [(rng.uniform(10, 100), 500.0) for _ in range(6)]
    line = fit_line(points)
    assert line.start_s == pytest.approx(5, rel=0.1)
    assert line.rate == pytest.approx(0.2, rel=0.1)


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e5)), min_size=1, max_size=40))
def test_a_line_never_falls_and_never_starts_below_zero(points: list[tuple[float, float]]) -> None:
    line = fit_line(points)
    assert line.start_s >= 0
    assert line.rate >= 0
    assert math.isfinite(line(1e9))


@given(st.lists(st.floats(0.001, 1e4), min_size=1, max_size=30))
def test_the_typical_time_is_one_of_them_and_the_best(times_s: list[float]) -> None:
    def mean_error(value: float) -> float:
        return sum(abs(value - t) / max(t, 0.1) for t in times_s)

    best = typical(times_s)
    assert best in times_s
    assert mean_error(best) <= min(map(mean_error, times_s)) * (1 + 1e-9)


def test_a_circle_of_one_size_only_corrects_the_wider_one() -> None:
    circle = Circle()
    for _ in range(50):
        circle.add(100.0, 30.0)
    line = circle.line(Line(5.0, 0.1))
    assert (line.start_s, line.rate) == (pytest.approx(10.0, rel=0.1), pytest.approx(0.2, rel=0.1))


def test_the_regression_learns_a_constant_and_a_slope_of_each_phase() -> None:
    regression = make_predictor("regression")
    rng = Random(1)
    for number in range(40):
        size = rng.uniform(1e6, 1e8)
        job = f"job{number}"
        regression.learn(Seen(a_map(job, size), 2 + size * 1e-7, output_bytes=size))
        asked = a_reduce(job, map_bytes=size, reduces=1)
        shuffle_s, merge_s, rest_s = 10.0, size * 1e-7, 1 + size * 1e-7
        seconds = shuffle_s + merge_s + rest_s
        regression.learn(Seen(asked, seconds, None, shuffle_s, merge_s))
    assert regression.predict(a_map("new", 5e7)) == pytest.approx(7.0, rel=0.05)
    regression.learn(Seen(a_map("new", 5e7), 7.0, output_bytes=5e7))
    asked = a_reduce("new", map_bytes=5e7, reduces=1)
    assert regression.predict(asked) == pytest.approx(21.0, rel=0.05)


def test_a_job_that_is_unlike_its_class_is_soon_known() -> None:
    regression = make_predictor("regression")
    for number in range(30):
        regression.learn(Seen(a_map(f"job{number}", 1e6 * (1 + number)), 1.0 + number))
    before = regression.predict(a_map("odd", 1e7))
    for _ in range(8):
        regression.learn(Seen(a_map("odd", 1e7), 50.0))
    after = regression.predict(a_map("odd", 1e7))
    assert before == pytest.approx(10, rel=0.1)
    assert after == pytest.approx(50, rel=0.25)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c"]),
            st.sampled_from(["map", "reduce"]),
            st.sampled_from(["", "sort", "grep"]),
            st.none() | st.floats(0, 1e9),
            st.floats(0, 1e4),
        ),
        max_size=40,
    )
)
def test_predictions_are_finite_and_not_negative(
    tasks: list[tuple[str, str, str, float | None, float]],
) -> None:
    for name in PREDICTORS:
        predictor = make_predictor(name)
        for job, kind, class_name, size, seconds in tasks:
            asked = TaskFeatures(
                job,
                "map" if kind == "map" else "reduce",
                class_name,
                "ada",
                input_bytes=size,
                map_bytes=size,
                map_tasks=2,
                reduces=2,
            )
            guess = predictor.predict(asked)
            assert guess is None or 0 <= guess < math.inf
            predictor.learn(Seen(asked, seconds, size))


def test_the_regression_remembers_sizes_although_many_tasks_of_one_size_came_since() -> None:
    """A large job ends with thousands of equal tasks; small ones and larger ones come again."""
    regression = make_predictor("regression")
    sizes = [2.0**power for power in range(10, 30)]
    for number, size in enumerate(sizes * 2):
        task = TaskFeatures(f"early{number}", "map", input_bytes=size)
        regression.learn(Seen(task, 2.0 + 1e-6 * size))
    for _ in range(2000):
        regression.learn(Seen(TaskFeatures("large", "map", input_bytes=1024.0), 2.0))
    for size in (1024.0, 2.0**28, 2.0**33):
        expected_s = regression.predict(TaskFeatures("new", "map", input_bytes=size))
        assert expected_s == pytest.approx(2.0 + 1e-6 * size, rel=0.05)


@given(seed=st.integers(0, 10_000), kinds=st.integers(1, 6))
def test_a_full_memory_gives_up_the_oldest_of_the_commonest_size(seed: int, kinds: int) -> None:
    random = Random(seed)
    memory = Memory()
    kept: dict[int, list[tuple[float, float]]] = {}
    weights = [random.random() for _ in range(kinds)]
    for n in range(2 * MEMORY):
        (size,) = random.choices(range(kinds), weights)
        point = (float(2**size), float(n))
        memory.add(point)
        kept.setdefault(size, []).append(point)
        if sum(map(len, kept.values())) > MEMORY:
            max(kept.values(), key=len).pop(0)
    assert sorted(memory.points) == sorted(point for of in kept.values() for point in of)
