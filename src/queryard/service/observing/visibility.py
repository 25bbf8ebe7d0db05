"""What a token may see, as a key: all tokens with the same key see the same documents."""

from __future__ import annotations

from dataclasses import dataclass

from ..principal import Principal


@dataclass(frozen=True, slots=True)
class Visibility:
    """A tenant and those below it; None for all tenants, which only admins see."""

    tenant: str | None

    @classmethod
    def of(cls, principal: Principal) -> Visibility:
        """What a principal may see.

        >>> Visibility.of(Principal("ann", "sales"))
        Visibility(tenant='sales')
        >>> Visibility.of(Principal("root", "ops", "admin"))
        Visibility(tenant=None)
        """
        return cls(None if principal.role == "admin" else principal.tenant)

    @property
    def is_all(self) -> bool:
        return self.tenant is None

    def may_see(self, tenant: str) -> bool:
        """As `Principal.may_see`.

        >>> Visibility("sales").may_see("sales/emea"), Visibility("sales").may_see("salesforce")
        (True, False)
        """
        own = self.tenant
        return own is None or tenant == own or tenant.startswith(f"{own}/")

    def narrowed(self, tenant: str) -> Visibility | None:
        """What it sees of a tenant and those below it; None if that is nothing.

        >>> Visibility("sales").narrowed("sales/emea"), Visibility("sales").narrowed("web")
        (Visibility(tenant='sales/emea'), None)
        """
        if self.may_see(tenant):
            return Visibility(tenant)
        own = self.tenant
        return self if own is not None and Visibility(tenant).may_see(own) else None
