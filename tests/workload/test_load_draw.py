"""Requests drawn from specs: the same seed is the same list, and shares are what they say."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from queryard.core.errors import InvalidRecord
from queryard.policies import resolve_profile
from queryard.sim import simulate
from queryard.workload.load import (
    Alone,
    LoadSpec,
    as_workload,
    draw,
    examples,
    read_recorded,
    read_spec,
    write_recorded,
)

DATA = "[data]\ntpch = { s = 0.01 }\n"
TWO = """
[[tenants]]
name = "web"
share = 3
variants = 1
mix = ["s.q06", "s.q01"]
[[tenants]]
name = "batch"
priority = -1
deadlines = 0.5
tightness = [2, 4]
"""


def spec_of(tmp_path: Path, text: str) -> LoadSpec:
    file = tmp_path / "spec.toml"
    file.write_text(text)
    return read_spec(file)


def test_the_same_seed_is_the_same_list(tmp_path: Path):
    spec = spec_of(tmp_path, "queries = 40\narrivals = { rate = 2 }\n" + DATA + TWO)
    assert draw(spec, seed=5) == draw(spec, seed=5)
    assert draw(spec, seed=5) != draw(spec, seed=6)
    assert draw(spec) == draw(spec, seed=0)


def test_shares_priorities_deadlines_and_variants(tmp_path: Path):
    spec = spec_of(tmp_path, "queries = 80\narrivals = { rate = 2 }\n" + DATA + TWO)
    requests = draw(spec)
    assert [ask.id for ask in requests] == [f"r{n:02d}" for n in range(1, 81)]
    assert Counter(ask.tenant for ask in requests) == {"web": 60, "batch": 20}
    web = [ask for ask in requests if ask.tenant == "web"]
    assert Counter(ask.template for ask in web) == {"s.q06": 30, "s.q01": 30}
    assert len({ask.sql for ask in web}) == 2
    assert all(ask.priority == 0 and ask.deadline_factor is None for ask in web)
    batch = [ask for ask in requests if ask.tenant == "batch"]
    assert {ask.priority for ask in batch} == {-1}
    assert len({ask.template for ask in batch}) >= 19  # of 22, each about as often
    factors = [ask.deadline_factor for ask in batch if ask.deadline_factor is not None]
    assert len(factors) == 10
    assert all(2 <= factor <= 4 for factor in factors)


def test_one_question_does_not_move_another(tmp_path: Path):
    plain = spec_of(tmp_path, "queries = 30\narrivals = { rate = 2 }\n" + DATA + TWO)
    other = spec_of(tmp_path, "queries = 30\narrivals = { kind = 'at once' }\n" + DATA + TWO)
    assert [ask.sql for ask in draw(plain)] == [ask.sql for ask in draw(other)]


def test_a_poisson_process_has_its_rate(tmp_path: Path):
    spec = spec_of(tmp_path, 'duration = "500 s"\narrivals = { rate = 4 }\n' + DATA)
    times_s = [ask.time_s for ask in draw(spec)]
    assert 1800 < len(times_s) < 2200
    assert times_s == sorted(times_s)
    gaps_s = [after - before for before, after in pairwise(times_s)]
    short = sum(gap < 0.25 for gap in gaps_s) / len(gaps_s)
    assert 0.58 < short < 0.68  # 1 - 1/e


def test_a_load_is_work_over_slots_and_time(tmp_path: Path):
    text = "queries = 200\narrivals = { load = 0.5 }\n" + DATA
    spec = spec_of(tmp_path, text)
    work_s = dict.fromkeys(spec.templates, 3.0)
    times_s = [ask.time_s for ask in draw(spec, work_s=work_s, slots=2)]
    assert max(times_s) <= 600.0  # 200 x 3 s of work at half of 2 slots
    assert max(times_s) > 570.0
    by_time = replace(spec, amount=replace(spec.amount, queries=None, duration_s=60.0))
    assert len(draw(by_time, work_s=work_s, slots=2)) == 20


def test_a_load_needs_to_know_the_work(tmp_path: Path):
    spec = spec_of(tmp_path, "queries = 2\narrivals = { load = 0.5 }\n" + DATA)
    with pytest.raises(InvalidRecord, match=r"needs the work of 's\.q"):
        draw(spec)


def test_bursts_are_bursts(tmp_path: Path):
    text = "duration = 400\narrivals = { kind = 'bursty', rate = 2, on = 5, off = 15 }\n"
    times_s = [ask.time_s for ask in draw(spec_of(tmp_path, text + DATA))]
    assert all(time_s % 20 < 5 for time_s in times_s)
    assert 700 < len(times_s) < 900


def test_every_so_often_and_at_once(tmp_path: Path):
    text = "duration = 3\narrivals = { kind = 'every', every = '500 ms', start = 1 }\n" + DATA
    times_s = [ask.time_s for ask in draw(spec_of(tmp_path, text))]
    assert times_s == [1.0, 1.5, 2.0, 2.5, 3.0, 3.5]
    at_once = spec_of(tmp_path, "queries = 3\n" + DATA)
    assert [ask.time_s for ask in draw(at_once)] == [0.0] * 3


def test_a_tenant_with_arrivals_of_its_own(tmp_path: Path):
    text = (
        "queries = 5\narrivals = { rate = 1 }\n" + DATA + "[[tenants]]\nname = 'web'\n"
        "[[tenants]]\nname = 'night'\nqueries = 3\narrivals = { kind = 'at once', start = 2 }\n"
    )
    requests = draw(spec_of(tmp_path, text))
    assert Counter(ask.tenant for ask in requests) == {"web": 5, "night": 3}
    assert {ask.time_s for ask in requests if ask.tenant == "night"} == {2.0}


def test_examples_are_texts_that_will_be_asked(tmp_path: Path):
    spec = spec_of(tmp_path, "queries = 30\narrivals = { load = 0.5 }\n" + DATA + TWO)
    texts = examples(spec)
    asked = draw(spec, work_s=dict.fromkeys(spec.templates, 1.0))
    assert set(texts) == {ask.template for ask in asked}
    assert {sql for found in texts.values() for sql in found} <= {ask.sql for ask in asked}
    assert all(len(found) <= 3 for found in texts.values())


def test_examples_of_everything_where_the_work_decides_how_many_come(tmp_path: Path):
    spec = spec_of(tmp_path, "duration = 30\narrivals = { load = 0.5 }\n" + DATA)
    assert set(examples(spec)) == set(spec.templates)


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_a_recording_gives_the_same_requests_back(tmp_path: Path, ending: str):
    spec = spec_of(tmp_path, "queries = 12\narrivals = { rate = 2 }\n" + DATA + TWO)
    requests = draw(spec)
    file = tmp_path / f"asked{ending}"
    write_recorded(requests, file)
    again = spec_of(
        tmp_path, f"arrivals = {{ kind = 'recorded', file = 'asked{ending}' }}\n" + DATA
    )
    assert again.arrivals.file == file
    assert draw(again, recorded=read_recorded(file)) == requests
    fewer = replace(again, amount=replace(again.amount, queries=3))
    assert draw(fewer, recorded=read_recorded(file)) == tuple(
        replace(ask, id=f"r{n}") for n, ask in enumerate(requests[:3], 1)
    )


def test_a_recording_by_hand(tmp_path: Path):
    file = tmp_path / "log.csv"
    file.write_text(
        'time,sql,tenant,deadline\n2 s,SELECT 2,web,\n500ms,"SELECT\n1;",,1 min\n3,SELECT 2,,\n'
    )
    first, second, third = read_recorded(file)
    assert (first.time_s, first.tenant, first.sql) == (0.5, "default", "SELECT\n1")
    assert first.deadline_s == 60.0
    assert second.template == third.template != first.template


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "", "unknown ending '.txt'"),
        ("a.csv", "time,sql\n", "holds no request"),
        ("a.csv", "time,sql\nsoon,SELECT 1\n", "line 2, time: 'soon' is not a time"),
        ("a.csv", "time,sql,user\n1,SELECT 1,me\n", "line 2: unknown field 'user'"),
        ("a.csv", "time,tenant\n1,me\n", "line 2: the field 'sql' is missing"),
        ("a.jsonl", '{"time": 1, "sql": "x"}\n[]\n', "line 2: expected an object"),
        ("a.jsonl", "{time: 1}\n", "line 1: not valid JSON"),
        ("a.jsonl", '{"time": 1, "sql": "x", "priority": "a"}', "line 1, priority: expected"),
    ],
)
def test_mistakes_in_recordings(tmp_path: Path, name: str, text: str, message: str):
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidRecord, match=message):
        read_recorded(tmp_path / name)
    with pytest.raises(InvalidRecord, match="cannot be read"):
        read_recorded(tmp_path / "none.csv")


def test_a_load_can_be_simulated(tmp_path: Path):
    spec = spec_of(tmp_path, "queries = 30\narrivals = { rate = 1 }\n" + DATA + TWO)
    requests = draw(spec)
    alone = {ask.template: Alone(1.0, 2.0) for ask in requests if ask.template != "s.q01"}
    workload = as_workload("x", requests, alone, 2, spec.tenants)
    known = [ask for ask in requests if ask.template != "s.q01"]
    assert [arrival.query.id for arrival in workload.arrivals] == [ask.id for ask in known]
    assert all(arrival.work_s == 2.0 for arrival in workload.arrivals)
    due = next(ask for ask in known if ask.deadline_factor is not None)
    (query,) = [a.query for a in workload.arrivals if a.query.id == due.id]
    assert query.deadline_s == pytest.approx(due.time_s + due.deadline_factor)
    run = simulate(workload, workload.nodes, resolve_profile("fifo"))
    assert run.journal.steps
