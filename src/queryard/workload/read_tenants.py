"""The tenants of a workload file: what each of them may count on."""

from __future__ import annotations

from queryard.core.model import Tenant

from .fields import Fields

TENANT_FIELDS = ("name", "weight", "guarantee", "cap")


def read_tenants(top: Fields) -> tuple[Tenant, ...]:
    """All tenants of the file, checked one by one and together."""
    found: dict[str, Tenant] = {}
    guaranteed = 0.0
    for fields in top.tables("tenants", "tenant", "name", TENANT_FIELDS):
        name = fields.text("name")
        if name in found:
            fields.fail("name", f"two tenants are called {name!r}")
        guarantee, cap = fields.share("guarantee", 0.0), fields.share("cap", 1.0)
        if not cap:
            fields.fail("cap", "0 would never let a query of this tenant run")
        if guarantee > cap:
            fields.fail("guarantee", f"{guarantee:g} is above the cap of {cap:g}")
        # A tenant below another one has its part of what that one has.
        guaranteed += 0.0 if "/" in name else guarantee
        if guaranteed > 1 + 1e-9:
            fields.fail("guarantee", f"the guarantees add up to {guaranteed:g}, more than 1")
        found[name] = Tenant(name, fields.positive("weight", 1.0), guarantee, cap)
    return tuple(found.values())
