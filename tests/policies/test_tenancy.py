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
        ([WEB, BATCH, Tenant("web")], r"tenants: 'web' is given 2 times; give it once"),
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
