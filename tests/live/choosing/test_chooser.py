"""A portfolio on a live host, deterministic: when it looks, what it chooses, what it learns."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_forms import examples

from queryard.backends.fake import Script
from queryard.core.events import PolicyChosen
from queryard.live.choosing.standing import Standing
from queryard.live.choosing.verdicts import verdict
from queryard.live.rules import read_rules
from queryard.live.settings import Bounds
from queryard.portfolio.arrivals import Arrived
from queryard.portfolio.documents import read_portfolio
from queryard.portfolio.patterns import pattern_of
from queryard.portfolio.present import Untried
from queryard.portfolio.scores import QueryEnd, Schedule
from queryard.portfolio.trials import Trial
from queryard.sim import replay

from .fake_choosing import FakeChoosing, tried

FIRST = {"portfolio": {"objective": "small queries fast", "candidates": ["fifo", "swrd"]}}


def crowd(choosing: FakeChoosing, sizes: tuple[float, ...] = (20.0, 1.0, 1.0, 1.0)) -> None:
    """A large query, and small ones behind it."""
    for size in sizes:
        choosing.host.submit(work_s=size)


def by_work(sizes: dict[str, float]) -> Script:
    return Script(work_s=lambda run: sizes.get(run, 1.0))


def test_the_queue_makes_another_policy_better_and_the_reason_is_journaled():
    choosing = FakeChoosing(FIRST, by_work({"q1": 20.0}))
    crowd(choosing)
    choosing.run(2.0)
    assert choosing.in_force == "swrd"
    state = choosing.host.coordinator.policies.state
    assert state.by == "portfolio"
    assert "swrd scores" in state.reason
    assert "less than fifo" in state.reason
    decision = choosing.chooser.decisions[0]
    assert (decision.trigger, decision.waiting, decision.chosen) == ("first look", 4, "swrd")
    assert {each.name for each in decision.tried} == {"fifo", "swrd"}
    journal = choosing.host.journal
    events = [event for step in journal.steps for event in step.events]
    chosen = [event for event in events if isinstance(event, PolicyChosen)]
    assert (chosen[0].by, chosen[0].reason) == ("portfolio", state.reason)
    choosing.run(60.0)
    choosing.host.check_idle()
    assert replay(journal) is None


def test_the_same_arrivals_give_the_same_decisions():
    def run() -> list[tuple[Any, ...]]:
        choosing = FakeChoosing(FIRST, by_work({"q1": 9.0, "q5": 30.0}))
        crowd(choosing)
        choosing.run(3.0)
        crowd(choosing)
        choosing.run(50.0)
        return [(d.time_s, d.trigger, d.chosen, d.reason) for d in choosing.chooser.decisions]

    assert run() == run()
    assert len(run()) > 1


def test_a_query_that_is_alone_needs_no_decision():
    choosing = FakeChoosing(FIRST)
    choosing.host.submit(work_s=5.0)
    choosing.run(10.0)
    assert not choosing.chooser.decisions


def test_what_was_decided_for_such_a_queue_is_used_again_at_once_and_checked():
    better, asked = ["swrd"], []

    def answer(question, candidates):
        asked.append(question.trigger)
        ends = {name: (1.0 if name == better[0] else 9.0) for name in candidates}
        return 1.0, [trial(question, name, end) for name, end in ends.items()]

    choosing = FakeChoosing(FIRST, by_work({"q1": 20.0, "q8": 20.0}), answer)
    crowd(choosing)
    choosing.tick()
    choosing.run(40.0)
    choosing.host.check_idle()
    better[0] = "fifo"
    crowd(choosing, (4.0, 4.0, 4.0))
    choosing.tick()
    choosing.run(60.0)
    assert choosing.in_force == "fifo"
    choosing.host.check_idle()
    better[0] = "swrd"
    asked.clear()
    before = choosing.host.now_s
    crowd(choosing)
    choosing.tick()
    assert choosing.in_force == "swrd"
    record = choosing.chooser.decisions[-1]
    assert record.remembered
    assert record.time_s == before
    assert not record.tried
    # A real decision checks it.
    assert len(asked) == 1
    choosing.run(before + 1.5)
    assert choosing.in_force == "swrd"
    assert not choosing.chooser.decisions[-1].remembered
    choosing.run(200.0)
    choosing.host.check_idle()


def test_what_was_remembered_and_is_wrong_is_forgotten():
    """The worker changes its mind about queues that look the same."""
    better = ["swrd"]

    def answer(question, candidates):
        ends = {name: (1.0 if name == better[0] else 9.0) for name in candidates}
        return 0.0, [trial(question, name, end) for name, end in ends.items()]

    choosing = FakeChoosing(FIRST, Script(work_s=lambda run: 4.0), answer)
    crowd(choosing, (4.0, 4.0))
    choosing.tick()
    choosing.run(1.0)
    assert choosing.in_force == "swrd"
    pattern = choosing.chooser._memory
    assert len(pattern) >= 1
    better[0] = "fifo"
    choosing.run(20.0)
    assert choosing.in_force == "fifo"
    crowd(choosing, (4.0, 4.0))
    better[0] = "swrd"
    choosing.run(22.0)
    reasons = [d.reason for d in choosing.chooser.decisions]
    assert any("was wrong" in reason for reason in reasons)


def trial(question, name: str, takes_s: float) -> Trial:
    now = question.since_s
    queries = tuple(QueryEnd(query, now, now + takes_s, 1.0) for query in sorted(question.left))
    return Trial(name, Schedule(queries), 0, True, 0.0)


def test_forecasts_are_compared_with_what_came_and_candidates_corrected():
    """The worker believes that `swrd` is twice as fast as it is; outcomes say otherwise."""

    def answer(question, candidates):
        found = tried(question, candidates)
        now = question.since_s
        return 0.1, [
            Trial(
                each.name,
                Schedule(
                    tuple(
                        query._replace(end_s=now + (query.end_s - now) * 0.3)
                        if each.name == "swrd"
                        else query
                        for query in each.schedule.queries
                    )
                ),
                0,
                True,
                0.0,
            )
            for each in found
        ]

    choosing = FakeChoosing(FIRST, Script(work_s=lambda run: 2.0), answer)
    for _ in range(12):
        crowd(choosing, (2.0, 2.0, 2.0))
        choosing.run(choosing.host.now_s + 5.0)
    outcomes = [d.outcome for d in choosing.chooser.decisions if d.outcome is not None]
    assert outcomes
    swrd = [outcome for outcome in outcomes if outcome.policy == "swrd"]
    assert swrd
    assert all(outcome.observed > 2 * outcome.forecast for outcome in swrd)
    reflection = choosing.chooser._reflection
    assert reflection.correction("swrd") >= reflection.correction("fifo")


def test_one_that_was_behind_of_late_does_not_come_back_for_being_as_good():
    """The first candidate is as good on some queues; on others it is worse by far."""
    seen: list[str] = []

    def answer(question, candidates):
        takes_s = 9.0 if question.queries == 4 else 1.0
        found = [trial(question, "fifo", takes_s), trial(question, "swrd", 1.0)]
        return 0.0, found

    choosing = FakeChoosing(FIRST, Script(work_s=lambda run: 4.0), answer)
    for number in (4, 3, 4, 3):
        crowd(choosing, (4.0,) * number)
        choosing.run(choosing.host.now_s + 1.0)
        seen.append(choosing.in_force)
        choosing.run(choosing.host.now_s + 20.0)
    assert seen == ["swrd"] * 4


def test_trials_know_the_pace_of_the_machine():
    asked = []

    def answer(question, candidates):
        asked.append(question.pace)
        return 0.1, tried(question, candidates)

    document = {"portfolio": {"objective": "response", "candidates": ["fifo", "swrd"]}}
    choosing = FakeChoosing(document, Script(work_s=lambda run: 4.0), answer)
    for number in range(8):
        choosing.chooser.ended(f"before{number}", 1.0, Arrived(0.0, "", 1.0), held_s=3.0)
    crowd(choosing, (4.0, 4.0, 4.0))
    choosing.run(2.0)
    assert asked[0] == pytest.approx(3.0)
    forecast = choosing.chooser.decisions[0].tried[0].objectives["response"]
    # Three queries of 12 slot-seconds on 2 slots, one after another.
    assert forecast == pytest.approx((6.0 + 12.0 + 18.0) / 3, rel=0.1)


def test_a_late_answer_is_dropped_and_nothing_changes():
    choosing = FakeChoosing(
        {"portfolio": {**FIRST["portfolio"], "late_s": 1.0}},
        by_work({"q1": 20.0}),
        lambda question, candidates: (3.0, tried(question, candidates)),
    )
    crowd(choosing)
    choosing.run(4.0)
    assert choosing.in_force == "fifo"
    assert "after 3" in choosing.chooser.decisions[0].dropped


def test_an_answer_about_queries_that_have_ended_is_dropped():
    choosing = FakeChoosing(FIRST, Script(work_s=lambda run: 1.0), lambda q, c: (4.0, tried(q, c)))
    crowd(choosing, (1.0, 1.0, 1.0))
    choosing.run(6.0)
    assert "had ended" in choosing.chooser.decisions[0].dropped
    assert not choosing.choices


def test_a_candidate_that_cannot_be_tried_is_told_and_not_chosen():
    def answer(question, candidates):
        fifo = next(each for each in tried(question, candidates) if each.name == "fifo")
        return 0.1, [fifo, Untried("swrd", "it never ends")]

    choosing = FakeChoosing(FIRST, by_work({"q1": 20.0}), answer)
    crowd(choosing)
    choosing.run(2.0)
    assert choosing.in_force == "fifo"
    found = {each.name: each.dropped for each in choosing.chooser.decisions[0].tried}
    assert found == {"fifo": None, "swrd": "it never ends"}


def test_the_share_of_a_core_delays_the_next_decision():
    choosing = FakeChoosing(FIRST, Script(work_s=lambda run: 500.0), cpu_s=0.5)
    crowd(choosing, (500.0, 500.0, 500.0))
    choosing.run(100.0)
    spent_s = choosing.chooser.budget.spent_s
    assert 2.5 < spent_s <= 0.05 * 100.0 + 1.0
    assert spent_s == 0.5 * len(choosing.chooser.decisions)


def test_the_start_of_a_worker_is_saved_for_first():
    choosing = FakeChoosing(FIRST, Script(work_s=lambda run: 500.0))
    crowd(choosing, (500.0, 500.0, 500.0))
    view = choosing.host.coordinator

    def wants(now: float) -> bool:
        return choosing.chooser.look(now, now, view, has_worker=False).wants_worker

    assert [wants(now) for now in (0.0, 1.0, 6.9, 7.1)] == [False, False, False, True]
    choosing.chooser.started(1.0, 8.0)
    # It cost more than expected: decisions wait, and another start is expected to cost as much.
    assert choosing.chooser.look(9.0, 9.0, view).question is None
    assert [wants(now) for now in (21.0, 39.0, 41.0)] == [False, False, True]


def test_memory_does_not_undo_a_decision_that_was_just_made():
    choosing = FakeChoosing(FIRST, by_work({"q1": 20.0}))
    crowd(choosing)
    choosing.run(2.0)
    assert choosing.in_force == "swrd"
    (decided,) = [d for d in choosing.chooser.decisions if d.chosen == "swrd"][-1:]
    pattern = pattern_of(choosing.host.coordinator.kernel.state)
    choosing.chooser._memory.learn(pattern, "fifo")
    choosing.chooser._memory.learn(pattern, "fifo")
    soon = decided.time_s + 0.01
    assert choosing.chooser.look(soon, soon, choosing.host.coordinator).choice is None


def test_after_failures_a_worker_is_asked_less_often():
    choosing = FakeChoosing(
        FIRST, Script(work_s=lambda run: 500.0), lambda q, c: (0.0, RuntimeError("it died"))
    )
    crowd(choosing, (500.0, 500.0))
    choosing.run(60.0)
    times = [decision.time_s for decision in choosing.chooser.decisions]
    gaps = [after - before for before, after in pairwise(times)]
    assert gaps == sorted(gaps)
    assert len(times) <= 7
    assert choosing.in_force == "fifo"


GARBAGE = st.sampled_from(
    [
        None,
        [],
        "no",
        42,
        [1, 2],
        [Untried("fifo", "x"), Untried("swrd", "y")],
        [Trial("other", Schedule(()), 0, True, 0.0)],
        [Trial("fifo", Schedule((QueryEnd("q1", 0.0, float("nan"), 1.0),)), 0, True, 0.0)],
        [Trial("swrd", Schedule((QueryEnd("q1", 0.0, float("inf"), 1.0),)), 0, False, 0.0)],
        RuntimeError("it died"),
    ]
)


@settings(max_examples=examples(40))
@given(st.data())
def test_whatever_workers_answer_no_query_is_lost(data):
    sizes = st.sampled_from((0.1, 0.5, 2.0, 9.0))

    def answer(question, candidates):
        after_s = data.draw(st.sampled_from((0.0, 0.5, 7.0)))
        if data.draw(st.booleans()):
            return after_s, tried(question, candidates)
        return after_s, data.draw(GARBAGE)

    work = {f"q{number}": data.draw(sizes) for number in range(1, 13)}
    document = {
        "portfolio": {
            "objective": data.draw(
                st.sampled_from(("fair to tenants", "deadlines first", "mixed"))
            ),
            "candidates": ["fifo", "marshal", "edf", "edls-sh", "relaqs", "s3-pays"],
        }
    }
    choosing = FakeChoosing(document, by_work(work), answer)
    for number in range(1, 13):
        choosing.host.submit(
            work_s=data.draw(sizes),
            tenant=data.draw(st.sampled_from(("web", "lab"))),
            deadline_s=data.draw(st.sampled_from((None, choosing.host.now_s + 3.0))),
        )
        if data.draw(st.booleans()):
            choosing.run(choosing.host.now_s + data.draw(st.sampled_from((0.25, 2.0))))
        if number == 6 and data.draw(st.booleans()):
            choosing.host.cancel("q3")
    choosing.run(choosing.host.now_s + 80.0)
    assert len(choosing.host.ended) == 12
    choosing.host.check_idle()
    choosing.host.coordinator.kernel.validate()
    assert replay(choosing.host.journal) is None


@pytest.mark.parametrize("slots", [1, 2])
def test_sizes_of_a_cluster_are_chosen_as_well(slots):
    """With provisioning parts a decision is due also for a query that is alone."""
    document = {
        "portfolio": {
            "objective": "low cost",
            "candidates": ["fifo"],
            "provisioning": ["+x", "-x"],
        }
    }
    choosing = FakeChoosing(document, Script(work_s=lambda run: 4.0), slots=slots)
    choosing.host.submit(work_s=4.0)
    choosing.run(3.0)
    assert choosing.chooser.decisions
    names = {each.name for each in choosing.chooser.decisions[0].tried}
    assert names == {"fifo +x", "fifo -x"}
    choosing.run(20.0)
    choosing.host.check_idle()


def test_under_other_shares_of_tenants_it_goes_on_with_what_it_has_learnt():
    """The candidate in force stays, with its new profile; so do later choices."""
    choosing = FakeChoosing(FIRST, by_work({"q1": 20.0}))
    crowd(choosing)
    choosing.run(2.0)
    assert choosing.in_force == "swrd"
    chooser = choosing.chooser
    known, made = len(chooser._memory), len(chooser.decisions)
    shared = read_rules(Bounds(2, 2), {"web": {"weight": 2}}, None, FIRST).portfolio
    assert shared is not None
    assert shared.is_same(chooser.portfolio)
    profile = chooser.follow(shared)
    assert profile["name"] == "swrd"
    assert "web" in profile["pools"]["children"]
    assert (chooser.current, len(chooser._memory), len(chooser.decisions)) == ("swrd", known, made)
    choice = chooser._switch("fifo", "", choosing.host.now_s)
    assert "web" in choice.profile["pools"]["children"]
    assert not shared.is_same(read_portfolio("portfolio:throughput:fifo/swrd"))


def test_what_was_learnt_is_forgotten_and_the_policy_in_force_stays():
    choosing = FakeChoosing(FIRST, Script(work_s=lambda run: 2.0))
    for _ in range(6):
        crowd(choosing, (2.0, 2.0, 2.0))
        choosing.run(choosing.host.now_s + 5.0)
    crowd(choosing)
    choosing.run(choosing.host.now_s + 1.0)
    chooser, in_force = choosing.chooser, choosing.in_force
    chooser._reflection.expect(999, "swrd", Schedule((QueryEnd("x", 0.0, 1.0, 1.0),)), 0.0)
    chooser._reflection.ended("x", 5.0)
    assert len(chooser._memory) > 0
    assert chooser._reflection.correction("swrd") > 1.0
    spent_s, told = chooser.budget.spent_s, len(chooser.decisions)
    chooser.forget()
    assert len(chooser._memory) == 0
    assert {chooser._reflection.correction(name) for name in ("fifo", "swrd")} == {1.0}
    assert (chooser.current, chooser.budget.spent_s, len(chooser.decisions)) == (
        in_force,
        spent_s,
        told,
    )
    choosing.run(choosing.host.now_s + 60.0)
    choosing.host.check_idle()


def test_with_provisioning_parts_a_decision_tries_what_is_near_the_one_in_force():
    """Any candidate can be reached; one decision does not try each policy with each part."""
    document = {
        "portfolio": {
            "objective": "low cost",
            "candidates": ["fifo", "swrd", "edf"],
            "provisioning": ["+x", "-x", "dlx"],
        }
    }
    asked: list[set[str]] = []

    def answer(question, candidates):
        asked.append(set(candidates))
        best = "edf dlx" if "edf dlx" in candidates else "fifo dlx"
        return 0.0, [trial(question, name, 1.0 if name == best else 9.0) for name in candidates]

    choosing = FakeChoosing(document, Script(work_s=lambda run: 50.0), answer)
    crowd(choosing, (50.0, 50.0, 50.0))
    choosing.run(30.0)
    assert asked[0] == {"fifo +x", "fifo -x", "fifo dlx", "swrd +x", "edf +x"}
    assert asked[1] == {"fifo +x", "fifo -x", "fifo dlx", "swrd dlx", "edf dlx"}
    assert choosing.in_force == "edf dlx"
    assert {"edf +x", "edf -x", "fifo -x"} < asked[2]
    tried_then = choosing.chooser.decisions[0].tried
    assert {each.name for each in tried_then} == asked[0]
    assert all(each.dropped is None for each in tried_then)


def test_an_answer_that_says_nothing_of_the_one_in_force_is_dropped():
    """A pattern has put another candidate in force since the question."""
    document = {
        "portfolio": {
            "objective": "low cost",
            "candidates": ["fifo", "swrd"],
            "provisioning": ["+x", "-x"],
        }
    }
    choosing = FakeChoosing(document, Script(work_s=lambda run: 50.0))
    crowd(choosing, (50.0, 50.0))
    chooser = choosing.chooser
    question = chooser.look(9.0, 9.0, choosing.host.coordinator).question
    assert question is not None
    assert "swrd -x" not in question.candidates
    chooser._switch("swrd -x", "", 9.5)
    objective = chooser.portfolio.settings.objective
    found = tried(question, question.candidates)
    read = verdict(objective, list(question.candidates), found, question.since_s)
    assert chooser.answered(question, read, 10.0, 0.0) is None
    assert "came into force from memory" in (chooser.decisions[-1].dropped or "")
    assert (chooser.current, chooser.asked) == ("swrd -x", None)


def test_of_candidates_that_are_as_good_the_one_less_behind_of_late_is_chosen():
    standing = Standing()
    # Of what nothing is known, the order of candidates decides, not that of their names.
    alike = {"fifo": 9.0, "swrd": 1.0, "edf": 1.0}
    standing.note(alike)
    assert standing.steady("edf", "fifo", alike, alike, 0.1) == "swrd"
    standing.behind["swrd"] = 0.5
    nearly = {"fifo": 9.0, "swrd": 1.0, "edf": 1.05}
    assert standing.steady("swrd", "fifo", nearly, nearly, 0.1) == "edf"


def test_what_forecasts_were_worth_changes_no_policy_alone():
    standing = Standing()
    corrected = {"fifo": 1.2, "swrd": 1.0}
    standing.note(corrected)
    assert standing.steady("swrd", "fifo", corrected, {"fifo": 1.0, "swrd": 1.0}, 0.1) == "fifo"
    assert standing.steady("swrd", "fifo", corrected, {"fifo": 1.05, "swrd": 1.0}, 0.1) == "swrd"


def test_a_question_has_what_is_likely_to_arrive_of_each_tenant():
    choosing = FakeChoosing(FIRST, by_work({}))
    for _ in range(8):
        choosing.host.submit(work_s=0.1, tenant="web")
        choosing.run(choosing.host.now_s + 1.0)
    asked = []
    choosing._answer = lambda question, candidates: (
        asked.append(question.expected),
        (0.1, tried(question, candidates)),
    )[1]
    crowd(choosing)
    choosing.run(choosing.host.now_s + 1.0)
    assert {each.tenant for each in asked[0]} == {"web"}


def test_many_small_queries_beside_a_large_one_are_a_reason_to_decide():
    """They are little work; a decision is due before the period is over."""
    document = {"portfolio": {**FIRST["portfolio"], "period_s": 50.0}}
    sizes = {f"q{number}": 0.05 for number in range(4, 40)} | {"q1": 400.0}
    choosing = FakeChoosing(document, by_work(sizes))
    crowd(choosing, (400.0, 1.0, 1.0))
    choosing.run(10.0)
    assert choosing.chooser.asked is None
    crowd(choosing, (0.05,) * 12)
    choosing.tick()
    question = choosing.chooser.asked
    assert question is not None
    assert (question.trigger, question.queries) == ("the queue has changed", 13)
