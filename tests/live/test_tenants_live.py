"""Tenants and their shares, priorities and deadlines, in a session with real queries."""

from __future__ import annotations

import datetime as dt
import time
from collections import Counter

import pytest
from long_forms import some_of
from waiting import turns_until, wait_until

import queryard
from queryard.core.errors import QueryardError
from queryard.core.model import Tenant

from .crowds import busy, check_empty, check_kernel, end_order, spin, spun, start_order


@pytest.fixture
def open_session(data, tmp_path):
    """Makes sessions without a history, which end with the test."""
    sessions = []

    def make(**options):
        options = {"slots": 1, "memory": "4 GB", "history": False, **options}
        sessions.append(queryard.connect(data, temp=tmp_path / "temp", **options))
        return sessions[-1]

    yield make
    for session in sessions:
        session.close()


# --- shares ----------------------------------------------------------------------------------


# A new tenant has a credit of two turns, so that shares show only over many turns.
SHORT_TURNS = {
    "pools": {
        "by": "tenant",
        "choice": "turns",
        "quantum_s": 0.01,
        "default": {"order": "srpt-fair"},
    }
}


def submit_at_once(session, tenants):
    """A query for each tenant; none starts before the last has come."""
    # Slots go round among tenants, but memory stays where it is.
    blocking = busy(session, tenant="first", memory=session.client.pool_bytes)
    handles = [session.submit(spin(8), tenant=name) for name in tenants]
    wait_until(lambda: session.report().waiting == len(tenants), 30.0, "all to wait")
    blocking.cancel()
    return handles


@pytest.mark.parametrize(
    "profile", some_of(["marshal", "hierarchical", "tenant-tls", "fifo", "tls"], 2)
)
def test_a_flood_of_one_tenant_does_not_starve_another(open_session, profile):
    tenants = {"flood": {}, "light": {"guarantee": 0.5}}
    session = open_session(slots=2, profile=profile, tenants=tenants)
    flood = [session.submit(spin(8), tenant="flood") for _ in range(40)]
    light = session.submit(spin(0.1), tenant="light")
    assert light.result(60).fetchall()[0][1] == spun(0.1)
    assert light.wait(60)
    check_kernel(session)
    assert sum(not handle.ended for handle in flood) > 20
    for handle in flood:
        handle.cancel()
    check_empty(session)


def slot_seconds_until_done(tenant, names, handles):
    """What each tenant has had by the end of the last query of one, and the longest query of all.

    In seconds rather than queries, since a query may be held up by whatever else a machine does.
    """
    order = end_order(handles)
    last = max(place for place, at in enumerate(order) if names[at] == tenant)
    had: Counter[str] = Counter()
    for at in order[: last + 1]:
        had[names[at]] += handles[at].timing.held_s
    return had, max(handle.timing.held_s for handle in handles)


def test_slots_are_shared_by_weight(open_session):
    session = open_session(
        profile=SHORT_TURNS, tenants={"large": {"weight": 4}, "small": {"weight": 1}}
    )
    names = ["small", "large"] * 12
    handles = submit_at_once(session, names)
    # By the time the large share has done all, the small one has had a quarter of that.
    had, longest = slot_seconds_until_done("large", names, handles)
    assert abs(had["small"] - had["large"] / 4) <= 2 * longest
    check_empty(session)


def test_a_cap_holds_even_if_the_rest_is_idle(open_session):
    session = open_session(slots=2, tenants={"capped": {"cap": 0.5}})
    first, second = (session.submit(spin(20), tenant="capped") for _ in range(2))
    most = 0
    reasons = ""
    for _ in turns_until(lambda: first.ended and second.ended):
        most = max(most, sum(view.slots for view in session.queries()))
        reasons += str(second.why()) + str(first.why())
        time.sleep(0.002)
    assert most == 1
    assert "pool capped is at its cap of 1 slot" in reasons
    free = session.submit(spin(20), tenant="free")
    seen = 0
    for _ in turns_until(lambda: free.ended):
        seen = max(seen, sum(view.slots for view in session.queries()))
        time.sleep(0.001)
    assert seen == 2


def test_a_guarantee_is_met_at_once(open_session):
    session = open_session(slots=2, profile="fifo", tenants={"sure": {"guarantee": 0.5}})
    blocking = busy(session, tenant="crowd")
    behind = session.submit(spin(1), tenant="crowd")
    sure = session.submit(spin(1), tenant="sure")
    assert sure.wait(30)
    assert sure.error is None
    assert not behind.ended
    blocking.cancel()
    assert behind.wait(30)


def test_tenants_may_be_a_tree(open_session):
    tenants = {
        "sales": {"weight": 1, "tenants": {"emea": {"weight": 3}, "apac": {"weight": 1}}},
        "lab": {"weight": 1},
    }
    session = open_session(tenants=tenants)
    names = ["sales/emea", "sales/apac", "lab", "sales", "lab", "sales/unnamed"] * 3
    handles = [session.submit(spin(1), tenant=name) for name in names]
    check_kernel(session)
    pools = {handle.why().pool for handle in handles}
    assert pools >= {"sales/emea", "sales/apac"}
    for handle in handles:
        assert handle.result(60).fetchall()[0][1] == spun(1)
    check_empty(session)


def test_all_of_a_tree_has_the_share_of_its_root(open_session):
    tenants = [Tenant("sales/emea"), Tenant("sales/apac"), Tenant("lab")]
    session = open_session(profile=SHORT_TURNS, tenants=tenants)
    names = ["sales/emea", "sales/apac"] * 10 + ["lab"] * 10
    handles = submit_at_once(session, names)
    # While lab has done all of its own, the two others have had as much between them.
    had, longest = slot_seconds_until_done("lab", names, handles)
    assert abs(had["sales/emea"] + had["sales/apac"] - had["lab"]) <= 2 * longest


def test_tenants_from_objects_and_from_a_mapping_are_the_same(open_session):
    listed = open_session(tenants=[Tenant("web", weight=3, guarantee=0.25), Tenant("web/eu")])
    mapped = open_session(
        tenants={"web": {"weight": 3, "guarantee": 0.25, "tenants": {"eu": {}}}},
    )
    assert listed.profile == mapped.profile


def test_a_catalog_file_holds_settings_of_the_session(data, tmp_path):
    (tmp_path / "catalog.toml").write_text(
        f"""
        [tables]
        facts = '{data / "facts.parquet"}'

        [session]
        slots = [1, 3]
        memory = "600 MB"
        profile = "fifo"
        plan = "staged"
        history = false

        [tenants.web]
        weight = 3
        guarantee = 0.25
        limits = {{ waiting = 1, wait = "5 min" }}

        [tenants.web.tenants.eu]
        cap = 0.5

        [limits]
        waiting = 7
        """
    )
    with queryard.connect(tmp_path / "catalog.toml") as session:
        assert session.slots == 3
        assert session.memory_bytes == 600_000_000
        assert session.plan == "staged"
        web = session.profile["pools"]["children"]["web"]
        assert (web["weight"], web["guarantee"]) == (3, 0.25)
        assert web["children"]["eu"]["cap"] == 0.5
        assert session.host._recorder.history is None
        assert session.sql("SELECT count(*) FROM facts", tenant="web").fetchall() == [(400_000,)]
    with queryard.connect(tmp_path / "catalog.toml", slots=2, profile="tls", plan="native") as own:
        assert own.slots == 2
        assert own.plan == "native"
        assert own.profile["name"] == "tls"


# --- what is wrong with them -------------------------------------------------------------------

WRONG_TENANTS = [
    ({"web": {"wieght": 3}}, ["tenants.web", "wieght", "weight"]),
    ({"web": {"weight": "much"}}, ["tenants.web.weight", "number", "'much'"]),
    ({"web": {"weight": True}}, ["tenants.web.weight", "number", "True"]),
    ({"web": {"weight": -1}}, ["tenants.web", "weight", "above 0", "-1"]),
    ({"web": {"weight": 0}}, ["tenants.web", "weight", "above 0"]),
    ({"web": {"weight": float("nan")}}, ["tenants.web", "weight"]),
    ({"web": {"guarantee": 1.5}}, ["tenants.web", "guarantee", "1.5"]),
    ({"web": {"guarantee": -0.1}}, ["tenants.web", "guarantee", "-0.1"]),
    ({"web": {"cap": 0}}, ["tenants.web", "cap"]),
    ({"web": {"guarantee": 0.5, "cap": 0.25}}, ["tenants.web", "guarantee", "0.5", "0.25"]),
    ({"web": 3}, ["tenants.web", "table", "3"]),
    ({"web": {"tenants": 3}}, ["tenants.web.tenants", "table", "3"]),
    ({"web": {"tenants": {"eu": {"cpa": 1}}}}, ["tenants.web.tenants.eu", "cpa", "cap"]),
    ({"web": {"limits": 3}}, ["tenants.web.limits", "table", "3"]),
    ({"web": {"limits": {"wiating": 3}}}, ["tenants.web.limits", "wiating", "waiting"]),
    ({"web": {"limits": {"waiting": 1.5}}}, ["tenants.web.limits.waiting", "1.5"]),
    ({"web": {"limits": {"wait": "long"}}}, ["tenants.web.limits.wait", "long"]),
    ({"web": {"limits": {"memory": -1}}}, ["tenants.web.limits.memory", "-1"]),
    ({"": {}}, ["tenants", "name"]),
    ({"a/": {}}, ["tenants", "a/"]),
    ("web", ["tenants", "table", "web"]),
    (7, ["tenants", "table", "7"]),
    ([Tenant("web"), "lab"], ["tenants", "lab"]),
    ([Tenant("web"), Tenant("web")], ["web", "two tenants"]),
    (
        {"web": {"guarantee": 0.75}, "lab": {"guarantee": 0.5}},
        ["guarantees", "1.25", "web 0.75", "lab 0.5"],
    ),
    (
        {"web": {"cap": 0.5, "tenants": {"a": {"guarantee": 0.5}, "b": {"guarantee": 0.25}}}},
        ["web", "guarantees", "0.75", "0.5"],
    ),
]


@pytest.mark.parametrize(("tenants", "said"), WRONG_TENANTS)
def test_what_is_wrong_with_tenants_is_named(data, tenants, said):
    with pytest.raises(QueryardError) as caught:
        queryard.connect(data, history=False, tenants=tenants)
    for part in said:
        assert part in str(caught.value)


WRONG_FILES = [
    ("[session]\nslosts = 2", ["session", "slosts", "slots"]),
    ("session = 3", ["session", "table", "3"]),
    ("[session]\nslots = 'many'", ["slots", "many"]),
    ("[session]\nslots = [3, 1]", ["slots", "(3, 1)"]),
    ("[session]\nslots = 0", ["slots", "0"]),
    ("[session]\nmemory = 'much'", ["memory", "much"]),
    ("[session]\nmemory = '1 MB'", ["memory", "1 MB"]),
    ("[session]\nplan = 'stagged'", ["plan", "stagged", "staged"]),
    ("[session]\nprofile = 'fofi'", ["profile", "fofi", "fifo"]),
    ("[session]\nprofile = 3", ["profile", "3"]),
    ("[tenants]\nweb = 3", ["tenants.web", "3"]),
    ("[tenants.web]\nweight = 'x'", ["tenants.web.weight", "x"]),
    ("tenants = 3", ["tenants", "3"]),
    ("limits = 3", ["limits", "3"]),
    ("[limits]\nwaiting = -1", ["limits.waiting", "-1"]),
    ("[limits]\nwaiting = true", ["limits.waiting", "True"]),
    ("[limits]\nwait = 0", ["limits.wait", "0"]),
    ("[limits]\nmemory = 'x'", ["limits.memory", "x"]),
    ("[limits]\nqueue = 3", ["limits", "queue", "waiting"]),
]


@pytest.mark.parametrize(("text", "said"), WRONG_FILES)
def test_what_is_wrong_in_a_catalog_file_is_named(data, tmp_path, text, said):
    catalog = tmp_path / "catalog.toml"
    tables = f"[tables]\nfacts = '{data / 'facts.parquet'}'\n"
    catalog.write_text(tables + text if text.startswith("[") else text + "\n" + tables)
    with pytest.raises(QueryardError) as caught:
        queryard.connect(catalog, history=False)
    for part in said:
        assert part in str(caught.value)


@pytest.mark.parametrize("tenant", ["", "/", "a/", "/a", "a//b", 3])
def test_a_tenant_has_a_name(open_session, tenant):
    with pytest.raises(QueryardError, match="tenant"):
        open_session().submit("SELECT 1", tenant=tenant)


# --- priorities --------------------------------------------------------------------------------


def test_the_more_important_query_goes_first(open_session):
    session = open_session(profile="priority")
    blocking = busy(session, priority=100)
    priorities = [0, 5, -1, 1.5, 5]
    handles = [session.submit(spin(1), priority=priority) for priority in priorities]
    wait_until(lambda: session.report().waiting == 5)
    blocking.cancel()
    assert start_order(handles) == [1, 4, 3, 0, 2]


@pytest.mark.parametrize("priority", ["high", True, None, [1]])
def test_a_priority_is_a_number(open_session, priority):
    with pytest.raises(QueryardError, match="priority: must be a number"):
        open_session().submit("SELECT 1", priority=priority)


@pytest.mark.parametrize("priority", [float("nan"), float("inf")])
def test_a_priority_that_cannot_be_compared_is_refused(open_session, priority):
    session = open_session()
    with pytest.raises(QueryardError, match="priority"):
        session.submit("SELECT 1", priority=priority)
    assert session.sql("SELECT 1").fetchall() == [(1,)]
    check_empty(session)


# --- deadlines ---------------------------------------------------------------------------------


def test_a_deadline_is_an_amount_of_time_or_a_time(open_session):
    session = open_session()
    local = dt.datetime.now()
    for deadline in (
        300,
        300.0,
        "5 min",
        "300",
        "300000ms",
        local + dt.timedelta(minutes=5),
        dt.datetime.now(dt.UTC) + dt.timedelta(minutes=5),
        dt.datetime.now(dt.timezone(dt.timedelta(hours=-7))) + dt.timedelta(minutes=5),
    ):
        blocking = busy(session)
        handle = session.submit("SELECT 1", deadline=deadline)
        told = [view.deadline_s for view in session.queries() if view.id == handle.id]
        if told:  # it may be over already
            assert told[0] == pytest.approx(session.now() + 300, abs=20)
        blocking.cancel()
        assert handle.result(30).fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("deadline", "said"),
    [
        (0, "above 0"),
        (-5, "above 0"),
        (float("nan"), "above 0"),
        (float("inf"), "above 0"),
        ("soon", "soon"),
        ("5 fortnights", "fortnights"),
        ("-5 s", "-5 s"),
        (True, "expected a time"),
        ([5], "expected a time"),
        (dt.datetime(2001, 1, 1), "has passed"),
        (dt.datetime(2001, 1, 1, tzinfo=dt.UTC), "has passed"),
    ],
)
def test_a_deadline_that_makes_no_sense_is_refused(open_session, deadline, said):
    session = open_session()
    with pytest.raises(QueryardError, match="deadline") as caught:
        session.submit("SELECT 1", deadline=deadline)
    assert said in str(caught.value)
    check_empty(session)


def test_a_query_that_is_late_runs_on(open_session):
    session = open_session(profile="edf")
    blocking = busy(session, deadline=0.01)
    handle = session.submit(spin(1), deadline="50 ms")
    time.sleep(0.1)
    assert not handle.ended
    blocking.cancel()
    assert handle.result(30).fetchall()[0][1] == spun(1)


def test_the_earliest_deadline_goes_first(open_session):
    session = open_session(profile="edf")
    blocking = busy(session, deadline=1)
    deadlines = [3000, 20, None, "10 min", 100]
    handles = [session.submit(spin(1), deadline=deadline) for deadline in deadlines]
    wait_until(lambda: session.report().waiting == 5)
    blocking.cancel()
    assert start_order(handles) == [1, 4, 3, 0, 2]


def test_the_default_profile_hurries_for_a_deadline_in_sight(open_session):
    session = open_session()
    session.sql(spin(30)).fetchall()  # how long its like take is known from now on
    in_sight_s = 2.5 * session.estimate(spin(30)).alone_s.value
    blocking = busy(session, priority=1)
    handles = [session.submit(spin(30)) for _ in range(6)]
    urgent = session.submit(spin(30), deadline=in_sight_s)
    wait_until(lambda: session.report().waiting == 7)
    blocking.cancel()
    order = start_order([*handles, urgent])
    assert order.index(6) < 3
    check_empty(session)
