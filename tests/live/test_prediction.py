"""What a session expects of queries, and learns from them."""

from __future__ import annotations

import itertools
import json
import statistics
import threading
import time
from types import SimpleNamespace
from typing import NamedTuple

import duckdb
import pytest

from queryard.engine.staged import times
from queryard.engine.staged.times import task_seconds
from queryard.engine.syntax.classify import classify
from queryard.estimate.prices import Rates
from queryard.estimate.work import FIGURES, GUESS_S
from queryard.live.estimates import templates
from queryard.live.estimates.prediction import Predictor
from queryard.live.estimates.refinement import revised_work
from queryard.live.request import QueryRequest
from queryard.sql.catalog import open_catalog
from queryard.sql.planner import plan_staged

SUM = "SELECT key, sum(amount) FROM facts WHERE small > 3 GROUP BY key"


class Seen(NamedTuple):
    template: str
    work_s: float
    peak_memory_bytes: int | None = None
    outcome: str = "finished"
    table_bytes: float = 0.0


def asked(sql: str, parameters=(), plan="native") -> QueryRequest:
    return QueryRequest(sql, classify(sql), parameters, plan)


@pytest.fixture(autouse=True)
def equal_planning(monkeypatch):
    """Planning takes a millisecond each time; measured, it would differ from time to time."""
    clock = SimpleNamespace(thread_time=itertools.count(0.0, 0.001).__next__)
    monkeypatch.setattr("queryard.engine.planning.time", clock)


@pytest.fixture
def predictor(data):
    made = Predictor(open_catalog(data))
    yield made
    made.close()


def test_an_unknown_query_is_predicted_by_the_bytes_of_its_tables(predictor):
    large, small = predictor.first(asked(SUM)), predictor.first(asked("FROM dims"))
    assert large.by == small.by == "bytes"
    assert large.work_s > small.work_s >= 0.002
    assert large.memory_bytes is None


@pytest.mark.parametrize("sql", ["SELECT 42", "EXPLAIN SELECT sum(amount) FROM facts"])
def test_what_reads_no_table_is_guessed_to_be_short(predictor, sql):
    prediction = predictor.first(asked(sql))
    assert (prediction.by, prediction.work_s) == ("guess", GUESS_S)


def test_a_plan_tells_more(predictor):
    count, sort = asked("SELECT count(*) FROM facts"), asked("SELECT * FROM facts ORDER BY words")
    assert predictor.first(count).work_s == predictor.first(sort).work_s
    planned = predictor.refine(count), predictor.refine(sort)
    assert [prediction.by for prediction in planned] == ["plan", "plan"]
    assert planned[0].work_s < planned[1].work_s / 5


def test_the_statements_of_a_script_are_added_up(predictor):
    one = predictor.refine(asked(SUM)).work_s
    assert predictor.refine(asked(f"{SUM}; {SUM}")).work_s == pytest.approx(2 * one)


def test_what_cannot_be_planned_is_not_refined(predictor):
    assert predictor.refine(asked("CREATE TEMP TABLE t AS FROM facts")) is None
    assert predictor.refine(asked(f"{SUM}; SET VARIABLE x = 3")) is None


def test_a_template_takes_what_its_like_took_whatever_the_literals(predictor):
    predictor.learn(asked(SUM), 1.5, 1_000_000)
    prediction = predictor.first(asked(SUM.replace("3", "77").lower()))
    assert (prediction.by, prediction.work_s) == ("template", 1.5)
    assert prediction.memory_bytes == 1_300_000
    # And there is no need to plan it again.
    assert predictor.refine(asked(SUM)) is None


def test_parameters_are_literals(predictor):
    predictor.learn(asked("FROM facts WHERE id = 4"), 0.5)
    assert predictor.first(asked("FROM facts WHERE id = ?", [9])).by == "template"


def test_a_staged_query_tells_nothing_of_the_same_query_run_natively(predictor):
    predictor.learn(asked(SUM, plan="staged"), 9.0)
    assert predictor.first(asked(SUM)).by == "bytes"


def test_a_template_takes_longer_when_its_files_have_grown(tmp_path):
    path = tmp_path / "numbers.parquet"

    def write(rows: int) -> None:
        duckdb.sql(f"COPY (SELECT hash(range) AS a FROM range({rows})) TO '{path}'")

    write(20_000)
    catalog = open_catalog(tmp_path)
    predictor = Predictor(catalog)
    question = asked("SELECT max(a + 1) FROM numbers")
    predictor.learn(question, 1.0, 1000)
    assert predictor.first(question).work_s == 1.0
    write(60_000)
    catalog.refresh()
    assert predictor.first(question).work_s == pytest.approx(3.0, rel=0.1)
    assert predictor.first(question).memory_bytes == pytest.approx(3900, rel=0.1)
    predictor.close()


def test_what_earlier_sessions_saw_is_recalled_before_what_this_one_saw(data):
    template = asked(SUM).template
    predictor = Predictor(open_catalog(data), past=[Seen(template, 2.0, 500)])
    assert predictor.first(asked(SUM)).work_s == 2.0
    for _ in range(FIGURES):
        predictor.learn(asked(SUM), 1.0)
    predictor.recall([Seen(template, 50.0)] * 5)
    assert predictor.first(asked(SUM)).work_s == 1.0
    predictor.close()


def test_plans_are_corrected_by_what_others_have_taken(predictor):
    before = predictor.refine(asked(SUM)).work_s
    for number in range(8):
        other = asked(f"SELECT sum(amount) AS s{number} FROM facts")
        predictor.learn(other, 3 * predictor.refine(other).work_s)
    after = predictor.refine(asked(SUM))
    # All were off by a factor of at least 3, the later ones by less as it was learnt.
    assert after.work_s > 2 * before
    assert predictor.first(asked("SELECT max(key * 2) FROM facts")).by == "bytes"


def test_what_was_learnt_of_prices_outlives_a_session(data):
    before, after = Predictor(open_catalog(data)), Predictor(open_catalog(data))
    start_s = after.refine(asked(SUM)).work_s
    for number in range(8):
        other = asked(f"SELECT sum(amount) AS s{number} FROM facts")
        before.learn(other, 3 * before.refine(other).work_s)
    state = json.loads(json.dumps(before.learnt()))
    after.recall_learnt({**state, "prices": "those of another version"})
    assert after.refine(asked(SUM)).work_s == start_s
    after.recall_learnt(state)
    assert after.learnt() == state
    assert after.refine(asked(SUM)).work_s > 2 * start_s
    unplanned = asked("SELECT max(key * 2) FROM facts")
    assert after.first(unplanned) == before.first(unplanned)
    before.close()
    after.close()


def test_after_a_reset_all_is_as_at_the_start(predictor):
    other, unplanned = asked("SELECT sum(small) FROM facts"), asked("SELECT min(small) FROM facts")
    start_s = predictor.refine(other).work_s, predictor.first(unplanned).work_s
    for number in range(12):
        seen = asked(f"SELECT sum(amount) AS a{number} FROM facts WHERE small > 3")
        predictor.learn(seen, 10 * predictor.refine(seen).work_s)
    assert predictor.first(seen).by == "template"
    assert predictor.refine(other).work_s > 2 * start_s[0]
    predictor.reset(templates=True, prices=False)
    assert predictor.first(seen).by == "plan"
    assert predictor.refine(other).work_s > 2 * start_s[0]
    predictor.reset(templates=False, prices=True)
    assert (predictor.refine(other).work_s, predictor.first(unplanned).work_s) == start_s


def test_one_template_asked_all_day_does_not_speak_for_others(predictor):
    before = predictor.refine(asked(SUM)).work_s
    often = asked("SELECT sum(amount) FROM facts")
    predictor.refine(often)
    for _ in range(100):
        predictor.learn(often, 60.0)
    # It counts as hardly more than one query, and no query counts for much.
    assert predictor.refine(asked(SUM)).work_s < 2.5 * before


def test_a_slow_machine_is_told_by_its_rates(data):
    catalog = open_catalog(data)
    usual, slow = Predictor(catalog), Predictor(catalog, Rates(3.0, 3.0, 3.0))
    by_bytes, by_plan = (
        by(slow, asked(SUM)).work_s / by(usual, asked(SUM)).work_s
        for by in (Predictor.first, Predictor.refine)
    )
    assert by_bytes == pytest.approx(3)
    assert 1.5 < by_plan < 4.5  # what planning takes is measured, each time
    usual.close()
    slow.close()


LESS = "SELECT id FROM facts WHERE small < {} ORDER BY words"


def test_the_literals_of_a_query_count_before_any_of_its_template_has_ended(predictor):
    few, most = (predictor.refine(asked(LESS.format(number))) for number in (2, 90))
    assert most.work_s > 5 * few.work_s
    # On submission the plan of other literals is better than nothing, and doubted.
    other = predictor.first(asked(LESS.format(40)))
    assert (other.by, other.work_s) == ("plan", most.work_s)
    assert other.spread >= 2.0 > most.spread


def test_what_a_template_took_is_scaled_by_what_plans_say_of_other_literals(predictor):
    few, most = asked(LESS.format(2)), asked(LESS.format(90))
    planned = [predictor.refine(one).work_s for one in (few, most)]
    predictor.learn(few, 0.3)
    predictor.reset(templates=False, prices=True)
    assert predictor.first(few).work_s == 0.3
    found = predictor.first(most)
    assert found.by == "template"
    assert found.work_s == pytest.approx(0.3 * planned[1] / planned[0], rel=0.3)
    # With literals that were not planned yet it is as much as before, until there is a plan.
    new = asked(LESS.format(95))
    assert predictor.first(new).work_s == 0.3
    assert predictor.wants_plan(new)
    assert predictor.refine(new).work_s > 1.0
    assert not predictor.wants_plan(new)


def test_the_same_literals_take_as_long_as_the_last_time(predictor):
    for turn in range(3):
        predictor.learn(asked(SUM.replace("3", "4")), 0.5 + turn / 100)
        predictor.learn(asked(SUM), 5.0)
    assert predictor.first(asked(SUM)).work_s == 5.0
    assert predictor.first(asked(SUM.replace("3", "4"))).work_s == 0.51
    parameters = asked(SUM.replace("3", "?"), [9])
    predictor.learn(parameters, 1.0)
    assert predictor.first(parameters).work_s == 1.0


@pytest.mark.parametrize(
    ("taken", "wanted"),
    [
        ([0.001], False),  # short
        ([0.3], True),  # too few to say
        ([0.30, 0.31, 0.30], False),  # alike
        ([0.30, 0.90, 0.30], True),
    ],
)
def test_a_known_template_is_planned_only_where_that_may_pay(predictor, taken, wanted):
    for number, work_s in enumerate(taken):
        predictor.learn(asked(SUM.replace("3", str(number + 10))), work_s)
    assert predictor.wants_plan(asked(SUM)) == wanted
    assert (predictor.refine(asked(SUM)) is not None) == wanted
    assert not predictor.wants_plan(asked(SUM.replace("3", "10")))  # it has run


def test_plans_that_tell_nothing_of_a_template_are_not_asked_for(predictor):
    for number, work_s in ((90, 0.3), (2, 3.0), (50, 1.0)):
        question = asked(LESS.format(number))
        predictor.refine(question)
        predictor.learn(question, work_s)
    assert not predictor.wants_plan(asked(LESS.format(70)))
    assert predictor.first(asked(LESS.format(70))).work_s == 1.0


CROSS = "SELECT count(*) FROM facts a, facts b"


def test_a_plan_that_was_made_is_known_at_once_for_the_next_of_its_template(predictor):
    assert predictor.first(asked(CROSS)).by == "bytes"
    planned = predictor.refine(asked(CROSS))
    assert predictor.first(asked(CROSS)) == planned
    assert planned.work_s > 10.0


def test_cancelled_queries_raise_what_is_expected_and_one_that_ends_corrects_it(predictor):
    before = predictor.first(asked(SUM))
    for _ in range(45):
        predictor.learn(asked(SUM), 5.0, known="at least")
    after = predictor.first(asked(SUM))
    assert after.work_s > 5.0 > 10 * before.work_s
    assert after.by == before.by  # of none it is known what it takes
    assert predictor.refine(asked(SUM)).work_s > 5.0
    predictor.learn(asked(SUM), 7.0)
    assert (predictor.first(asked(SUM)).work_s, predictor.refine(asked(SUM))) == (7.0, None)
    predictor.learn(asked(SUM), 0.5)
    predictor.learn(asked(SUM), 0.5)
    assert predictor.first(asked(SUM)).work_s == 0.5


def test_a_plan_is_not_doubted_because_a_query_was_cancelled_long_before_its_end(predictor):
    planned = predictor.refine(asked(CROSS))
    predictor.learn(asked(CROSS), planned.work_s / 20, known="at least")
    assert predictor.first(asked(CROSS)).work_s == pytest.approx(planned.work_s, rel=0.02)
    # Nor do others learn from it that plans promise too much.
    before = predictor.refine(asked(SUM)).work_s
    predictor.learn(asked("SELECT sum(key) FROM facts"), 0.001, known="at least")
    assert predictor.refine(asked(SUM)).work_s == before


def test_a_query_that_runs_is_a_lower_bound_for_those_of_its_template_while_it_runs(predictor):
    before = predictor.first(asked(SUM)).work_s
    assert predictor.running(asked(SUM), 3.0)
    assert predictor.first(asked(SUM)).work_s > 3.0
    assert not predictor.running(asked(SUM), 3.1)  # hardly more
    assert predictor.running(asked(SUM), 6.0)
    assert predictor.first(asked(SUM)).work_s > 6.0
    predictor.forget(asked(SUM))
    assert predictor.first(asked(SUM)).work_s == before
    assert predictor.running(asked(SUM), 3.0)
    predictor.learn(asked(SUM), 4.0)
    assert predictor.first(asked(SUM)).work_s == 4.0


def test_queries_that_earlier_sessions_cancelled_are_recalled_as_lower_bounds(data):
    template = asked(SUM).template
    past = [Seen(template, 9.0, 500, "cancelled")] * 3
    predictor = Predictor(open_catalog(data), past=past)
    assert predictor.first(asked(SUM)).work_s > 9.0
    assert predictor.first(asked(SUM)).memory_bytes is None
    predictor.recall([Seen(template, 11.0, 800)])
    assert predictor.first(asked(SUM)).work_s == 11.0
    predictor.close()


def test_running_longer_than_predicted_is_taken_into_account(predictor):
    predictor.learn(asked(SUM), 1.0)
    prediction = predictor.first(asked(SUM))
    assert revised_work(prediction, 1.0, 0.5, 0.2) == 1.0
    assert revised_work(prediction, 1.0, 4.0, 0.2) > 4.2


def test_only_so_many_templates_are_remembered(data, monkeypatch):
    monkeypatch.setattr(templates, "TEMPLATES", 5)
    predictor = Predictor(open_catalog(data))
    questions = [asked(f"SELECT {number} AS c{number}") for number in range(9)]
    for question in questions:
        predictor.learn(question, 1.0)
    known = [predictor.first(question).by == "template" for question in questions]
    assert known == [False] * 4 + [True] * 5
    predictor.close()


def test_a_template_that_is_known_by_heart_teaches_no_prices(predictor, monkeypatch):
    """Its plan need not be priced again with every query that ends."""
    priced = []
    plan = predictor._plan
    monkeypatch.setattr(predictor, "_plan", lambda plans: priced.append(plans) or plan(plans))
    question = asked(SUM)
    for number in range(FIGURES + 5):
        predictor.learn(question, 1.0 + number)
    assert len(priced) == FIGURES
    assert predictor.first(question).work_s > FIGURES / 2


def test_many_threads_may_learn_and_ask(predictor):
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(30):
                question = asked(f"SELECT sum(amount) AS c{turn % 7} FROM facts")
                predictor.first(question)
                predictor.refine(question)
                predictor.learn(question, 0.1 * (number + 1))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_the_first_prediction_is_instant(predictor):
    predictor.first(asked(SUM))
    times = []
    for number in range(50):
        question = asked(f"{SUM} HAVING count(*) > {number}")
        began = time.thread_time()
        predictor.first(question)
        times.append(time.thread_time() - began)
    assert statistics.median(times) < 0.0005


def test_every_job_of_a_staged_plan_has_an_estimate(data):
    plan = plan_staged("SELECT key, sum(amount) FROM facts GROUP BY key", open_catalog(data))
    found = task_seconds(plan)
    assert list(found) == [job.name for job in plan.jobs]
    for job in plan.jobs:
        map_s, reduce_s = found[job.name]
        assert 0 < map_s < 10
        assert (reduce_s is None) == (job.partitions == 0)


def test_tasks_of_large_splits_take_longer(data):
    catalog = open_catalog(data)
    many = plan_staged("SELECT key, words FROM facts", catalog, target_bytes=200_000)
    few = plan_staged("SELECT key, words FROM facts", catalog, target_bytes=10_000_000)
    (many_s, _), (few_s, _) = (task_seconds(plan)[plan.jobs[0].name] for plan in (many, few))
    assert many_s < few_s


def test_tasks_take_longer_on_a_slow_machine(data, monkeypatch):
    plan = plan_staged(SUM, open_catalog(data))
    monkeypatch.setattr(times, "known_rates", lambda path: Rates())
    usual = task_seconds(plan)
    monkeypatch.setattr(times, "known_rates", lambda path: Rates(3.0, 3.0, 3.0))
    for name, (map_s, reduce_s) in task_seconds(plan).items():
        assert map_s == pytest.approx(3 * usual[name][0])
        if reduce_s is not None:
            assert reduce_s == pytest.approx(3 * usual[name][1])
