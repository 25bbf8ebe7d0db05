"""Pools by tenant: weights, guarantees and caps hold whatever comes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from by_hand import Hand, divisible, granted, launched, maps, of_type
from hypothesis import given, settings
from hypothesis import strategies as st
from long_forms import examples

from queryard.core import events as ev
from queryard.core.commands import Launch
from queryard.core.model import Node, Query
from queryard.sim import simulate
from queryard.workload.model import Arrival, JobTruth, Workload

TENANTS = ("ann", "bob", "eve")


def by_tenant(default: Any = None, **pools: Any) -> dict[str, Any]:
    tree: dict[str, Any] = {"by": "tenant", "default": default or {"order": "fair"}}
    tree["children"] = {name: {"order": "fair", **pool} for name, pool in pools.items()}
    return {"pools": tree}


def used(hand: Hand) -> Counter[str]:
    slots: Counter[str] = Counter()
    for query in hand.state.queries.values():
        slots[query.spec.tenant] += query.slots
    return slots


# --- by hand -------------------------------------------------------------------------------------


def test_weights_divide_the_slots():
    hand = Hand(by_tenant(ann={"weight": 3}, bob={"weight": 1}), "1x8")
    queries = [Query(t, (maps("j", 50),), tenant=t) for t in ("ann", "bob")]
    hand.do(*(ev.QuerySubmitted(0.0, query) for query in queries))
    assert used(hand) == {"ann": 6, "bob": 2}


def test_a_pool_borrows_what_others_leave():
    hand = Hand(by_tenant(ann={"guarantee": 0.5}), "1x8")
    hand.submit("b", maps("j", 50), tenant="bob")
    assert used(hand) == {"bob": 8}


def test_what_is_guaranteed_is_given_back_first():
    hand = Hand(by_tenant(ann={"guarantee": 0.5}, bob={"weight": 100}), "1x8")
    hand.submit("b", maps("j", 50), tenant="bob")
    hand.submit("a", maps("j", 50), tenant="ann")
    for number in range(6):
        (task,) = launched(hand.finish(f"b/j:m{number}"))
        assert task.startswith("a/" if number < 4 else "b/"), "four slots are guaranteed"


def test_leases_above_the_guarantee_of_another_are_revoked():
    hand = Hand(by_tenant(ann={"guarantee": 0.75}, bob={"weight": 100}), "1x4")
    hand.submit("b", divisible("d", 4), tenant="bob")
    hand.obey(hand.wait(1.0).submit("a", divisible("d", 4), tenant="ann"))
    assert used(hand) == {"ann": 3, "bob": 1}


def test_a_cap_is_never_exceeded_by_tasks_or_leases():
    hand = Hand(by_tenant({"order": "fifo", "cap": 0.5}), "1x8")
    assert len(launched(hand.submit("a", maps("j", 50), tenant="ann"))) == 4
    assert granted(hand.submit("b", divisible("d", 50), tenant="bob")) == {"b/d": 4}
    assert hand.submit("c", maps("j", 9), tenant="ann") == []


def test_a_cap_leaves_one_slot_at_least():
    hand = Hand(by_tenant({"order": "fifo", "cap": 0.01}), "1x8")
    assert len(launched(hand.submit("a", maps("j", 50), tenant="ann"))) == 1


def test_caps_follow_the_size_of_the_cluster():
    hand = Hand(by_tenant({"order": "fifo", "cap": 0.5}), "1x4")
    assert len(launched(hand.submit("a", maps("j", 50), tenant="ann"))) == 2
    assert len(launched(hand.join(Node("new", 4)))) == 2
    assert hand.lose("new") == []
    while used(hand)["ann"] > 2:
        assert hand.finish(hand.running()[0]) == [], "above its cap it gets nothing"
    assert len(launched(hand.finish(hand.running()[0]))) == 1


def test_a_cap_in_the_middle_of_the_tree_holds_for_all_below_it():
    profile = {
        "pools": {
            "by": "kind",
            "children": {
                "exact": {
                    "by": "tenant",
                    "default": {"order": "fifo", "cap": 0.5},
                    "cap": 0.75,
                },
                "online": {"order": "fair"},
            },
        }
    }
    hand = Hand(profile, "1x8")
    for tenant in TENANTS:
        hand.submit(tenant, maps("j", 50), tenant=tenant)
    assert sum(used(hand).values()) == 6
    assert max(used(hand).values()) <= 4


def test_the_weight_of_a_pool_may_be_its_number_of_queries():
    pools = {"weight": "queries"}
    hand = Hand(by_tenant(ann=pools, bob=pools), "1x8")
    queries = [Query(f"a{i}", (maps("j", 50),), tenant="ann") for i in range(3)]
    queries.append(Query("b", (maps("j", 50),), tenant="bob"))
    hand.do(*(ev.QuerySubmitted(0.0, query) for query in queries))
    assert used(hand) == {"ann": 6, "bob": 2}


def test_inside_a_pool_its_own_order_rules():
    hand = Hand(by_tenant(ann={"order": "priority"}), "1x1")
    hand.submit("now", maps("j", 1), tenant="ann")
    for priority in (1.0, 3.0, 2.0):
        hand.submit(f"p{priority:g}", maps("j", 1), tenant="ann", priority=priority)
    assert launched(hand.finish("now/j:m0")) == ["p3/j:m0"]


# --- whatever comes ------------------------------------------------------------------------------

shares = st.sampled_from((0.0, 0.1, 0.25, 0.3))
caps = st.sampled_from((0.2, 0.4, 0.5, 0.75, 1.0))
leaves = st.builds(
    lambda order, weight, guarantee, cap: {
        "order": order,
        "weight": weight,
        "guarantee": min(guarantee, cap),
        "cap": cap,
    },
    st.sampled_from(("fifo", "fair", "swrd", "priority", "fair-jobs")),
    st.sampled_from((1.0, 2.0, 5.0, "queries")),
    shares,
    caps,
)


@settings(max_examples=examples(80), deadline=None, derandomize=True)
@given(
    pools=st.fixed_dictionaries(dict.fromkeys(TENANTS, leaves)),
    slots=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    draw=st.randoms(use_true_random=False),
)
def test_caps_and_guarantees_hold_whatever_comes(pools, slots, draw):
    profile = {"pools": {"by": "tenant", "children": pools, "default": {"order": "fifo"}}}
    hand = Hand(profile, [Node(f"n{i}", n) for i, n in enumerate(slots)])
    for number in range(60):
        hand.wait(1.0)
        if draw.random() < 0.4:
            tenant = draw.choice(TENANTS)
            job = maps("j", draw.randint(1, 6), draw.randint(0, 2))
            commands = hand.submit(f"q{number}", job, tenant=tenant, estimates=draw.random())
        elif hand.state.running:
            run = draw.choice(sorted(hand.state.running.values()))
            if draw.random() < 0.2:
                commands = hand.do(ev.TaskFailed(hand.now, run.number, "oops"))
            else:
                commands = hand.do(ev.TaskFinished(hand.now, run.number, run.node))
        else:
            continue
        check_launches(hand, pools, commands)


def check_launches(hand: Hand, pools: dict[str, Any], commands: list[Any]) -> None:
    """Go back through what was launched: at each launch caps and guarantees were minded."""
    total = hand.state.total_slots
    use = used(hand)
    waiting = {
        tenant: sum(
            job.map.pending + (job.reduce.pending if job.reduce and job.maps_done else 0)
            for query in hand.state.queries.values()
            if query.spec.tenant == tenant
            for job in query.jobs
            if job.map
        )
        for tenant in TENANTS
    }
    for launch in reversed(of_type(Launch, commands)):
        tenant = hand.state.jobs[launch.tasks[0].job].query.spec.tenant
        cap = max(1, int(pools[tenant]["cap"] * total + 1e-9))
        assert use[tenant] <= cap, f"{tenant} uses {use[tenant]} of at most {cap}"
        use[tenant] -= 1
        waiting[tenant] += 1
        if use[tenant] < guaranteed(pools[tenant], total):
            continue
        for other in TENANTS:
            below = use[other] < guaranteed(pools[other], total)
            could = waiting[other] > 0 and other != tenant
            assert not (below and could), f"{tenant} was served before {other}"


def guaranteed(pool: dict[str, Any], total: int) -> int:
    return int(pool["guarantee"] * total + 1e-9)


@pytest.mark.parametrize("weights", [(1, 1, 1), (1, 2, 3), (5, 1, 1), (10, 1, 4)])
def test_long_run_shares_follow_the_weights(weights: tuple[int, ...]):
    """Every tenant has more than enough to do; core-seconds are divided as the weights are."""
    pools = {t: {"weight": w} for t, w in zip(TENANTS, weights, strict=True)}
    arrivals = tuple(
        Arrival(
            Query(f"{tenant}{number}", (maps("j", 400),), tenant=tenant),
            {"j": JobTruth(map_s=1.0 + 0.37 * number)},
        )
        for tenant in TENANTS
        for number in range(3)
    )
    run = simulate(
        Workload("busy", arrivals), [Node(f"n{i}", 5) for i in range(3)], by_tenant(**pools)
    )
    served: Counter[str] = Counter()
    times = {a.query.id: a.truth["j"].map_s for a in arrivals}
    for step in run.journal.steps:
        if step.time_s > 60.0:
            break
        for launch in of_type(Launch, step.commands):
            query = launch.tasks[0].job.partition("/")[0]
            served[query.rstrip("0123456789")] += times[query]
    total = sum(served.values())
    for tenant, weight in zip(TENANTS, weights, strict=True):
        assert served[tenant] / total == pytest.approx(weight / sum(weights), abs=0.05)


@pytest.mark.parametrize("odds", [(1.0, 1.0), (0.7, 0.3), (9.0, 1.0)])
def test_a_lottery_follows_its_odds(odds: tuple[float, float]):
    pools = {
        "by": "tenant",
        "choice": "lottery",
        "children": {
            tenant: {"order": "fifo", "weight": weight}
            for tenant, weight in zip(("ann", "bob"), odds, strict=True)
        },
        "default": {"order": "fifo"},
    }
    hand = Hand({"pools": pools}, "1x1", seed=3)
    hand.do(
        *(ev.QuerySubmitted(0.0, Query(t, (maps("j", 1000),), tenant=t)) for t in ("ann", "bob"))
    )
    drawn: Counter[str] = Counter()
    for _ in range(800):
        (task,) = hand.running()
        drawn[task.partition("/")[0]] += 1
        hand.finish(task)
    assert drawn["ann"] / 800 == pytest.approx(odds[0] / sum(odds), abs=0.05)
