"""Whether a pool waits that uses less than it is promised."""

from __future__ import annotations

import pytest
from kernel_driver import Yard

from queryard.core.explain import owes
from queryard.core.model import Tenant
from queryard.policies.tenancy import for_tenants


def yard(profile: str, guarantee: float) -> Yard:
    tenants = [Tenant("web", guarantee=guarantee), Tenant("lab")]
    made = Yard(for_tenants(profile, tenants), "1x2")
    # Tasks are not taken back: a tenant waits for its share.
    made.submit("big", [("scan", 2, 10.0)], tenant="lab")
    return made


@pytest.mark.parametrize("profile", ["marshal", "tls"])
def test_a_tenant_that_waits_below_its_guarantee_is_owed_a_slot(profile):
    # A third of two slots is less than one, and still a promise.
    made = yard(profile, 1 / 3)
    made.run(5.0)
    assert not owes(made.scheduler)
    made.submit("small", [("scan", 1, 1.0)], at=6.0, tenant="web")
    made.run(7.0)
    assert owes(made.scheduler)
    made.run()
    assert not owes(made.scheduler)


@pytest.mark.parametrize("profile", ["marshal", "tls"])
def test_a_tenant_without_guarantee_is_owed_nothing(profile):
    made = yard(profile, 0.0)
    made.submit("small", [("scan", 1, 1.0)], at=6.0, tenant="web")
    made.run(7.0)
    assert not owes(made.scheduler)
