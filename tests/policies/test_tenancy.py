"""Any profile inside the shares of tenants."""

from __future__ import annotations

import pytest
from kernel_driver import Yard

from queryard.core.errors import InvalidModel, InvalidProfile
from queryard.core.model import Tenant
from queryard.policies import catalogue, compose, for_tenants, resolve_profile

WEB = Tenant("web", weight=3, guarantee=0.25)
BATCH = Tenant("batch", cap=0.5)


def test_the_order_of_the_profile_decides_inside_each_tenant():
    profile = for_tenants({"base": "tls", "name": "mine"}, [WEB, BATCH])
    assert "order" not in profile
    assert (profile["name"], profile["jobs"]) == ("mine", "lodfa")
    assert profile["pools"] == {
        "by": "tenant",
        "default": {"order": "qef"},
        "children": {
            "web": {"order": "qef", "weight": 3, "guarantee": 0.25},
            "batch": {"order": "qef", "cap": 0.5},
        },
    }


def test_pools_of_the_profile_stand_inside_each_tenant():
    inner = resolve_profile("edls-sh")["pools"]
    pools = for_tenants("edls-sh", [BATCH])["pools"]
    assert pools["default"] == inner
    assert pools["children"]["batch"] == {**inner, "cap": 0.5}


def test_a_profile_by_tenant_keeps_its_pools_but_for_the_given_shares():
    own = {"web": {"order": "qef", "weight": 9, "cap": 0.9}, "lab": "swrd"}
    mine = {"pools": {"by": "tenant", "children": own, "default": {"order": "edf", "weight": 2}}}
    assert for_tenants(mine, [WEB, BATCH])["pools"] == {
        "by": "tenant",
        "default": {"order": "edf", "weight": 2},
        "children": {
            "web": {"order": "qef", "weight": 3, "guarantee": 0.25},
            "lab": "swrd",
            "batch": {"order": "edf", "cap": 0.5},
        },
    }


def test_what_bounds_the_whole_goes_on_bounding_the_whole():
    pools = for_tenants({"pools": {"order": "fair", "cap": 0.8}}, [WEB])["pools"]
    assert (pools["cap"], pools["default"]) == (0.8, {"order": "fair"})


def test_an_order_keeps_its_settings_and_the_profile_given_is_left_alone():
    order = {"name": "qef", "window_s": 60}
    given = {"order": order}
    shared = for_tenants(given, [WEB])
    assert shared["pools"]["children"]["web"]["order"] == order
    shared["pools"]["default"]["order"]["window_s"] = 1
    assert given == {"order": {"name": "qef", "window_s": 60}}


def test_without_tenants_all_are_alike():
    assert for_tenants("fifo", [])["pools"] == {
        "by": "tenant",
        "default": {"order": "fifo"},
        "children": {},
    }


@pytest.mark.parametrize("name", [info.name for info in catalogue()])
def test_every_profile_can_be_shared_between_tenants(name: str):
    profile = for_tenants(name, [WEB, BATCH])
    assert compose(profile).name == name
    yard = Yard(profile, "2x2")
    for tenant in ("web", "batch", "other"):
        yard.submit(tenant, [("work", 6, 1.0)], tenant=tenant)
    assert set(yard.run().ends) == {"web", "batch", "other"}


def test_slots_follow_the_weights_and_the_cap():
    yard = Yard(for_tenants("fifo", [Tenant("web", weight=2), Tenant("batch", cap=0.25)]), "1x4")
    for name in ("batch", "web"):
        yard.submit(name, [("work", 8, 1.0)], tenant=name)
    yard.run()
    # One slot of four for the batch, also once it is alone.
    assert yard.ends == {"web": 3.0, "batch": 8.0}


@pytest.mark.parametrize(
    ("tenants", "message"),
    [
        ([WEB, BATCH, Tenant("web")], r"tenants: two tenants are called 'web'; give it once"),
        (
            [Tenant("a", guarantee=0.7), Tenant("b"), Tenant("c", guarantee=0.5)],
            r"tenants: the guarantees add up to 1.2, more than 1 \(a 0.7, c 0.5\)",
        ),
    ],
)
def test_shares_that_cannot_be_given_are_refused(tenants: list[Tenant], message: str):
    with pytest.raises(InvalidProfile, match=message):
        for_tenants("fifo", tenants)


def test_guarantees_of_tenants_and_of_the_profile_must_fit_together():
    mine = {
        "pools": {
            "by": "tenant",
            "children": {"lab": {"order": "fifo", "guarantee": 0.8}},
            "default": "fifo",
        }
    }
    with pytest.raises(InvalidProfile, match=r"guarantees of the pools add up to 1.05"):
        for_tenants(mine, [WEB])


def test_a_cap_below_the_guarantee_is_no_tenant():
    with pytest.raises(InvalidModel, match=r"tenant 'a': .*guarantee 0.5 and cap 0.2"):
        Tenant("a", guarantee=0.5, cap=0.2)


# --- a tree of tenants ----------------------------------------------------------------------

TREE = [Tenant("sales", weight=3), Tenant("sales/emea", weight=2), Tenant("lab")]


def slots_of(yard: Yard, *queries: str) -> list[int]:
    return [yard.slots_of(query) for query in queries]


def test_a_path_has_its_part_of_what_its_parent_has():
    yard = Yard(for_tenants("fifo", TREE), "1x12")
    for tenant in ("sales/emea", "sales/apac", "lab"):
        yard.submit(tenant.replace("/", "-"), [("work", 99, 5.0)], tenant=tenant)
    yard.run(1.0)
    assert slots_of(yard, "sales-emea", "sales-apac", "lab") == [6, 3, 3]


def test_a_parent_has_queries_of_its_own():
    yard = Yard(for_tenants("fifo", TREE), "1x8")
    yard.submit("own", [("work", 99, 5.0)], tenant="sales")
    yard.submit("child", [("work", 99, 5.0)], tenant="sales/emea/paris")
    yard.submit("other", [("work", 99, 5.0)], tenant="lab")
    yard.run(1.0)
    assert slots_of(yard, "own", "child", "other") == [2, 4, 2]


def test_a_parent_that_is_only_named_in_a_path_weighs_1():
    yard = Yard(for_tenants("fifo", [Tenant("sales/emea", weight=9)]), "1x4")
    yard.submit("deep", [("work", 99, 5.0)], tenant="sales/emea")
    yard.submit("flat", [("work", 99, 5.0)], tenant="lab")
    yard.run(1.0)
    assert slots_of(yard, "deep", "flat") == [2, 2]


def test_the_cap_of_a_parent_bounds_all_below_it():
    tenants = [Tenant("sales", cap=0.5), Tenant("sales/emea"), Tenant("sales/apac")]
    yard = Yard(for_tenants("fifo", tenants), "1x8")
    for tenant in ("emea", "apac"):
        yard.submit(tenant, [("work", 99, 5.0)], tenant=f"sales/{tenant}")
    yard.run(1.0)
    assert slots_of(yard, "emea", "apac") == [2, 2]


def test_a_guarantee_deep_in_the_tree_is_one_of_the_whole():
    tenants = [Tenant("sales/emea", guarantee=0.5), Tenant("lab", weight=9)]
    yard = Yard(for_tenants("fifo", tenants), "1x8")
    yard.submit("flood", [("work", 99, 5.0)], tenant="lab")
    yard.run(1.0)
    yard.submit("deep", [("work", 99, 5.0)], at=1.0, tenant="sales/emea")
    yard.run(6.0)
    assert yard.slots_of("deep") == 4


def test_pools_inside_pools_by_turns_take_turns():
    profile = for_tenants("marshal", TREE)
    assert profile["pools"]["children"]["sales"]["choice"] == "turns"
    assert profile["pools"]["children"]["sales"]["children"]["emea"]["order"] == "srpt-fair"


def test_a_profile_without_a_tree_goes_by_the_first_name():
    yard = Yard("hierarchical", "1x4")
    for tenant in ("sales/emea", "sales/apac", "lab"):
        yard.submit(tenant.replace("/", "-"), [("work", 99, 5.0)], tenant=tenant)
    yard.run(1.0)
    assert yard.slots_of("lab") == 2


@pytest.mark.parametrize("name", ["", "/", "sales/", "/emea", "a//b"])
def test_a_path_has_no_empty_names(name: str):
    with pytest.raises(InvalidModel, match="tenant name"):
        Tenant(name)


def test_what_is_guaranteed_inside_must_fit_the_cap_of_the_parent():
    tenants = [Tenant("a", cap=0.5), Tenant("a/x", guarantee=0.3), Tenant("a/y", guarantee=0.3)]
    message = r"inside 'a' add up to 0.6, more than its cap of 0.5 \(a/x 0.3, a/y 0.3\)"
    with pytest.raises(InvalidProfile, match=message):
        for_tenants("fifo", tenants)


def test_guarantees_inside_count_towards_the_whole():
    tenants = [Tenant("a/x", guarantee=0.6), Tenant("a", guarantee=0.2), Tenant("b", guarantee=0.5)]
    with pytest.raises(InvalidProfile, match=r"add up to 1.1, more than 1 \(a 0.6, b 0.5\)"):
        for_tenants("fifo", tenants)
