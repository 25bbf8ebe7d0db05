"""Pools that take turns: shares of slot-time, also where a share of the slots is none."""

from __future__ import annotations

import math
import random
from collections import Counter
from statistics import fmean
from typing import Any

import pytest
from by_hand import Hand, divisible, granted, launched, maps, revoked
from hypothesis import given, settings
from hypothesis import strategies as st
from long_forms import examples

from queryard.core import events as ev
from queryard.core.commands import Grant, WakeAt
from queryard.core.errors import InvalidProfile
from queryard.core.model import Divisible, Job, Node, Query, Tenant
from queryard.core.policy import PoolSpec
from queryard.core.pools import Pool
from queryard.core.turns import shares
from queryard.policies import compose, for_tenants
from queryard.policies.orders.fifo import Fifo
from queryard.sim.conditions import Conditions
from queryard.sim.driver import SimDriver
from queryard.sim.references import Demand, processor_sharing
from queryard.sim.run import build
from queryard.workload.model import Arrival, JobTruth, Workload

TURNS: dict[str, Any] = {"pools": {"by": "tenant", "choice": "turns", "default": {"order": "fifo"}}}
QUANTUM_S = PoolSpec.quantum_s


def leased(name: str, at_s: float, work_s: float, tenant: str, width: int) -> Arrival:
    jobs = (Job("d", divisible=Divisible(width)),)
    return Arrival(Query(name, jobs, tenant=tenant, submit_s=at_s), {"d": JobTruth(work_s=work_s)})


def run(
    arrivals: list[Arrival],
    slots: int,
    tenants: list[Tenant],
    until_s: float,
    profile: dict[str, Any] = TURNS,
) -> SimDriver:
    driver = build(
        Workload("w", tuple(arrivals)),
        [Node("n", slots)],
        for_tenants(profile, tenants),
        conditions=Conditions(revoke_delay_s=0.01),
    )
    driver.run(until_s)
    return driver


def served(driver: SimDriver, until_s: float) -> tuple[Counter[str], dict[str, float]]:
    """Slot-seconds, and the longest time without a slot, by the first letter of the query."""
    total: Counter[str] = Counter()
    longest: dict[str, float] = {}
    slots: Counter[str] = Counter()
    last_s: dict[str, float] = {}
    now = 0.0
    assert driver.scheduler.journal is not None
    for step in driver.scheduler.journal.steps:
        for name, count in slots.items():
            total[name] += count * (step.time_s - now)
        now = step.time_s
        for event in step.events:
            if isinstance(event, ev.LeaseEnded):
                slots[event.job[0]] -= event.slots
                last_s[event.job[0]] = now
        for command in step.commands:
            if isinstance(command, Grant):
                name = command.job[0]
                gone_s = now - last_s.get(name, 0.0) if not slots[name] else 0.0
                longest[name] = max(longest.get(name, 0.0), gone_s)
                slots[name] += command.slots
    return total, longest


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(
    slots=st.integers(1, 5),
    weights=st.lists(st.sampled_from((1.0, 2.0, 3.0)), min_size=2, max_size=5),
)
def test_busy_tenants_get_their_shares_of_the_time(slots: int, weights: list[float]) -> None:
    names = "abcde"[: len(weights)]
    tenants = [Tenant(name, weight=w) for name, w in zip(names, weights, strict=True)]
    arrivals = [leased(f"{name}{i}", 0.0, 500.0, name, slots) for name in names for i in (0, 1)]
    until_s = 120.0
    driver = run(arrivals, slots, tenants, until_s)
    total, longest = served(driver, until_s)
    for name, weight in zip(names, weights, strict=True):
        due_s = until_s * slots * weight / sum(weights)
        assert total[name] == pytest.approx(due_s, rel=0.03, abs=4 * QUANTUM_S)
        # A round, of turns that may last some quanta because of the tick.
        assert longest[name] <= 4 * QUANTUM_S * (sum(weights) / weight + len(weights))
    driver.scheduler.validate()


def test_a_guarantee_is_a_share_of_the_time_where_it_is_no_whole_slot():
    tenants = [Tenant("a", weight=2), Tenant("b"), Tenant("c", guarantee=0.4)]
    arrivals = [leased(name, 0.0, 900.0, name, 2) for name in "abc"]
    total, _ = served(run(arrivals, 2, tenants, 100.0), 100.0)
    assert total["c"] == pytest.approx(80.0, rel=0.04)
    assert total["a"] == pytest.approx(80.0, rel=0.04)
    assert total["b"] == pytest.approx(40.0, rel=0.06)


def test_a_cap_stays_a_number_of_slots():
    tenants = [Tenant("a"), Tenant("b", cap=0.25)]
    arrivals = [leased(name, 0.0, 900.0, name, 4) for name in "ab"]
    driver = run(arrivals, 4, tenants, 50.0)
    total, _ = served(driver, 50.0)
    assert total["b"] == pytest.approx(50.0, rel=0.02)
    assert driver.scheduler.state.queries["b"].slots == 1


def alone(asked: list[tuple[float, float]], speed: float) -> float:
    demands = [Demand(str(i), at_s, work, work / speed) for i, (at_s, work) in enumerate(asked)]
    return fmean(processor_sharing(demands, speed).values())


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_a_light_tenant_beside_a_flood_is_served_as_if_alone_on_its_share(slots: int):
    ratios = []
    for seed in range(4):
        draw = random.Random(seed)
        now, asked = 1.0, []
        while now < 90.0:
            asked.append((now, math.exp(draw.uniform(math.log(0.2), math.log(4.0)))))
            now += draw.expovariate(0.4 * slots / 3 / 1.3)
        flood = [leased(f"f{i}", 0.0, 8.0, "flood", slots) for i in range(40 * slots)]
        light = [leased(f"l{i}", at, work, "light", slots) for i, (at, work) in enumerate(asked)]
        tenants = [Tenant("flood"), Tenant("light", guarantee=0.33, weight=0.1)]
        driver = run(flood + light, slots, tenants, 1000.0)
        taken = [driver.ends[f"l{i}"] - at for i, (at, _) in enumerate(asked)]
        ratios.append(fmean(taken) / alone(asked, slots / 3))
    assert fmean(ratios) <= 1.3


def test_idle_time_earns_little_credit():
    arrivals = [leased("a", 0.0, 500.0, "a", 1), leased("b", 60.0, 500.0, "b", 1)]
    driver = run(arrivals, 1, [], 62.0 + 4 * QUANTUM_S)
    total, _ = served(driver, 62.0)
    assert total["a"] > 60.0, "it is not made to wait until the other has caught up"


@pytest.mark.parametrize(("credit", "revokes"), [(0.0, 0), (2.0, 1), (4.0, 2)])
def test_a_newcomer_may_use_its_credit_at_once(credit: float, revokes: int):
    hand = Hand({"pools": {**TURNS["pools"], "credit": credit}}, "1x2")
    for name in "ab":
        hand.obey(hand.submit(name, divisible("d", 2), tenant=name))
    hand.wait(10.0)
    for _ in range(40):  # turns of both
        hand.wait(0.1)
        hand.obey(hand.do(ev.Woke(hand.now)))
    commands = hand.submit("c", divisible("d", 2), tenant="c")
    assert len(revoked(commands)) == revokes
    hand.check_replay()


@pytest.mark.parametrize(
    ("credit", "small_s", "revokes"), [(0.0, 0.1, 0), (4.0, 0.1, 1), (4.0, 9.0, 0)]
)
def test_a_small_query_does_not_wait_for_the_turn_of_its_tenant(
    credit: float, small_s: float, revokes: int
):
    pools = {**TURNS["pools"], "default": {"order": "srpt-fair"}, "credit": credit}
    hand = Hand({"pools": pools}, "1x1")
    for name in "ab":
        hand.obey(hand.submit(name, divisible("d", 1), estimates=100.0, tenant=name))
    turned = False
    for _ in range(100):  # until a turn has just begun
        hand.wait(0.1)
        commands = hand.do(ev.Woke(hand.now))
        hand.obey(commands)
        if turned := bool(revoked(commands)):
            break
    assert turned
    (holder,) = hand.state.leaseholders.values()
    other = "a" if holder.query.id == "b" else "b"
    commands = hand.submit("s", divisible("d", 1), estimates=small_s, tenant=other)
    assert len(revoked(commands)) == revokes
    hand.check_replay()


def test_of_small_queries_those_of_the_larger_weight_go_first():
    pools = {**TURNS["pools"], "default": {"order": "srpt-fair"}, "credit": 4.0}
    names = ("light", "heavy")
    arrivals = [leased(f"{name} large", 0.0, 500.0, name, 1) for name in names]
    arrivals += [leased(f"{name}{n}", 10.0, 0.01, name, 1) for name in names for n in range(10)]
    tenants = [Tenant("light"), Tenant("heavy", weight=100.0)]
    ends = run(arrivals, 1, tenants, 20.0, {"pools": pools}).ends
    assert max(ends[f"heavy{n}"] for n in range(10)) < ends["light3"]


def test_small_queries_without_end_get_no_larger_share():
    arrivals = [leased(f"s{n}", 0.0, 0.05, "small", 1) for n in range(1000)]
    arrivals.append(leased("large", 0.0, 500.0, "large", 1))
    tenants: list[Tenant] = []
    total, _ = served(run(arrivals, 1, tenants, 40.0), 40.0)
    # Two quanta of credit, and one in which no slot changes hands.
    assert abs(total["small"] - total["large"]) <= 2 * 3 * QUANTUM_S + 0.5


def test_a_credit_is_a_number_of_quanta_of_turns():
    with pytest.raises(InvalidProfile, match="credit must be a number of quanta from 0, got -1"):
        compose({"pools": {**TURNS["pools"], "credit": -1}})
    with pytest.raises(InvalidProfile, match=r"only pools with choice = .turns. have one"):
        compose({"pools": {"by": "tenant", "default": "fifo", "credit": 1.0}})


def test_tasks_that_cannot_be_taken_back_take_turns_too():
    hand = Hand(TURNS, "1x2")
    for name in "abc":
        hand.submit(name, maps("j", 20), tenant=name)
    order = hand.run_all()
    began = Counter(task[0] for task in order[:30])
    assert max(began.values()) - min(began.values()) <= 2


def test_two_equal_tenants_do_not_swap_at_every_event():
    hand = Hand(TURNS, "1x1")
    hand.submit("a", divisible("d", 1), tenant="a")
    hand.obey(hand.submit("b", divisible("d", 1), tenant="b"))
    swaps = 0
    for _ in range(200):
        hand.wait(0.01)
        for job in list(hand.state.leaseholders):
            commands = hand.do(ev.Progressed(hand.now, job, 0.1))
            swaps += bool(revoked(commands))
            hand.obey(commands)
    assert 1 <= swaps <= 2.0 / QUANTUM_S


def test_the_kernel_is_woken_while_a_tenant_waits_and_not_otherwise():
    hand = Hand(TURNS, "1x1")
    assert not any(isinstance(c, WakeAt) for c in hand.submit("a", divisible("d", 2), tenant="a"))
    assert WakeAt(QUANTUM_S) in hand.submit("b", divisible("d", 1), tenant="b")
    hand.check_replay()


def test_a_fork_takes_the_same_turns():
    hand = Hand(TURNS, "1x2")
    for name in "abc":
        hand.submit(name, divisible("d", 2), tenant=name)
    for _ in range(20):
        hand.wait(0.4)
        fork = hand.scheduler.fork()
        commands = hand.do(ev.Woke(hand.now))
        assert fork.handle(ev.Woke(hand.now)) == commands
        hand.obey(commands)


def test_turns_begin_anew_with_a_new_policy():
    hand = Hand("fifo", "1x1")
    for name in "ab":
        hand.submit(name, divisible("d", 1), tenant=name)
    hand.wait(50.0).do(ev.PolicyChosen(hand.now, TURNS))
    hand.obey(hand.wait(2.0).do(ev.Woke(hand.now)))
    assert hand.slots("b") == 1
    assert "pools take turns; before a comes b" in hand.scheduler.why("a").reasons
    hand.check_replay()


def test_who_waits_for_memory_is_not_owed_turns():
    hand = Hand(TURNS, [Node("n0", 1, 10.0)])
    hand.submit("a", divisible("d", 1), tenant="a", memory_bytes=10.0)
    hand.submit("b", divisible("d", 1), tenant="b", memory_bytes=10.0)
    for _ in range(100):
        hand.obey(hand.wait(1.0).do(ev.Woke(hand.now)))
    hand.submit("a2", divisible("d", 1), tenant="a")
    assert granted(hand.lease_over("a/d")) == {"b/d": 1}
    hand.obey(hand.wait(3.0).do(ev.Woke(hand.now)))
    assert hand.slots("a2") == 1, "soon after, although b has waited for so long"


@pytest.mark.parametrize("memory_bytes", [0.0, 1.0, 10.0])
def test_long_tasks_keep_to_the_shares_also_if_each_query_reserves_memory_first(
    memory_bytes: float,
):
    hand = Hand(for_tenants(TURNS, [Tenant("a", weight=4.0)]), [Node("n0", 1, 10.0)])
    for number in range(40):
        for name in "ab":
            query = f"{name}{number}"
            hand.submit(query, maps("j", 1), tenant=name, memory_bytes=memory_bytes)
    served: Counter[str] = Counter()
    for _ in range(40):
        (task,) = hand.running()
        hand.wait(20 * QUANTUM_S).finish(task)
        served[task[0]] += 1
    assert served == pytest.approx({"a": 32, "b": 8}, abs=1)


def test_why_says_whose_turn_comes_before():
    hand = Hand(TURNS, "1x1")
    hand.submit("a", divisible("d", 1), tenant="a")
    hand.wait(9.0).submit("b", divisible("d", 1), tenant="b")
    assert "pools take turns; b is next" in hand.scheduler.why("b").reasons


def child(weight: float, guarantee: float = 0.0, cap: float = 1.0) -> Pool:
    pool = Pool(1, "p", PoolSpec(Fifo(), weight=weight, guarantee=guarantee, cap=cap), None, 1)
    pool.resize(10)
    return pool


@pytest.mark.parametrize(
    ("children", "expected"),
    [
        ([child(1), child(1)], [0.5, 0.5]),
        ([child(3), child(1)], [0.75, 0.25]),
        ([child(1), child(1), child(1, guarantee=0.5)], [0.25, 0.25, 0.5]),
        ([child(9), child(1, guarantee=0.05)], [0.9, 0.1]),
        ([child(1), child(1, cap=0.2)], [0.8, 0.2]),
        ([child(1, cap=0.3), child(1, cap=0.2)], [0.3, 0.2]),
        ([child(1, guarantee=0.6), child(1, guarantee=0.4), child(1)], [0.6, 0.4, 0.0]),
    ],
)
def test_shares_go_by_weight_between_guarantee_and_cap(children: list[Pool], expected: Any):
    assert shares(children, 1.0, 10) == pytest.approx(expected, abs=1e-5)


def test_a_quantum_belongs_to_turns():
    with pytest.raises(InvalidProfile, match=r"pools\.quantum_s: only pools with choice"):
        compose({"pools": {"by": "tenant", "quantum_s": 1.0, "default": "fifo"}})
    with pytest.raises(InvalidProfile, match="quantum_s must be a number above 0, got -1"):
        compose({"pools": {**TURNS["pools"], "quantum_s": -1}})


def test_a_task_launched_in_turn_is_charged():
    hand = Hand(TURNS, "1x4")
    hand.submit("a", maps("j", 9), tenant="a")
    hand.wait(1.0).submit("b", maps("j", 9), tenant="b")
    assert launched(hand.finish("a/j:m0", "a/j:m1")) == ["b/j:m0", "b/j:m1"]
