"""The tenants of a workload file: what each of them may count on."""

from __future__ import annotations

from queryard.core.model import Tenant
from queryard.core.tenants import SHARES, check_together, read_tenant

from .fields import Fields

TENANT_FIELDS = ("name", *SHARES)


def read_tenants(top: Fields) -> tuple[Tenant, ...]:
    """All tenants of the file, checked one by one and together."""
    entries = top.tables("tenants", "tenant", "name", TENANT_FIELDS)
    found = [
        (read_tenant(fields.text("name"), fields, fields.fail), fields.fail) for fields in entries
    ]
    check_together(found)
    return tuple(tenant for tenant, _ in found)
