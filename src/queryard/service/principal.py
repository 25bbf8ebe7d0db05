"""The identity behind a request: a token's name, its tenant and its role."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["user", "admin", "metrics"]
"""What a token may do: put queries, see those of all tenants as well, or read figures only."""


@dataclass(frozen=True, slots=True)
class Principal:
    """A client that has shown a valid token; `name` is the token's, and the PostgreSQL user.

    `id` is the token's too: a token that is made again under its name is another principal.
    """

    name: str
    tenant: str
    role: Role = "user"
    id: str = ""

    @property
    def may_query(self) -> bool:
        """Whether it may put queries; a token for figures may not."""
        return self.role != "metrics"

    @property
    def may_see_figures(self) -> bool:
        """Whether the figures of all tenants are shown to it."""
        return self.role in ("admin", "metrics")

    def may_act_for(self, tenant: str) -> bool:
        """Whether queries of a tenant are its own: of its tenant, or of one below it.

        >>> Principal("ann", "sales").may_act_for("sales/emea")
        True
        >>> Principal("ann", "sales").may_act_for("salesforce")
        False
        """
        return tenant == self.tenant or tenant.startswith(f"{self.tenant}/")

    def may_see(self, tenant: str) -> bool:
        """Whether queries of a tenant are shown to it; an admin sees all."""
        return self.role == "admin" or self.may_act_for(tenant)
