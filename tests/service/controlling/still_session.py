"""A session that only remembers what it was told to follow."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from queryard.core.model import Tenant
from queryard.live.admission.limits import Limits, read_limits
from queryard.live.admission.tenants import Tenants, read_tenants
from queryard.live.choosing.state import PolicyState
from queryard.policies import for_tenants, resolve_profile


class View(NamedTuple):
    id: str
    tenant: str


class StillSession:
    """As much of a session as controls use."""

    def __init__(self, profile: Any = "marshal", tenants: Any = None, limits: Any = None) -> None:
        self.use_tenants(tenants, limits, profile)
        self.paused_by: str | None = None
        self.active: list[View] = []
        self.cancelled: dict[str, BaseException] = {}
        self.resets: list[tuple[tuple[str, ...], float | None]] = []
        self.host = self

    def use_tenants(
        self,
        tenants: Any,
        limits: Any = None,
        profile: Any = None,
        by: str = "",
        reason: str = "",
    ) -> None:
        found = read_tenants(tenants)
        chosen = self.chosen_profile if profile is None else profile
        shared = for_tenants(resolve_profile(chosen), found.shares)  # raises what is wrong
        self.limits: Limits = read_limits(limits or {}, "limits")
        self._tenants: Tenants = found
        self.profile: Mapping[str, Any] = shared
        self.chosen_profile = chosen
        self.told = (by, reason)

    @property
    def tenants(self) -> tuple[Tenant, ...]:
        return self._tenants.shares

    @property
    def tenant_limits(self) -> Mapping[str, Limits]:
        return dict(self._tenants.limits)

    def policy_state(self) -> PolicyState:
        return PolicyState(str(self.profile.get("name")), 0.0, *self.told)

    def pause(self, by: str) -> None:
        self.paused_by = by

    def resume(self) -> None:
        self.paused_by = None

    def queries(self) -> list[View]:
        return [view for view in self.active if view.id not in self.cancelled]

    def cancel(self, query: str, error: BaseException) -> None:
        self.cancelled[query] = error

    def reset_models(self, models: Collection[str], *, before: float | None = None):
        self.resets.append((tuple(models), before))
        return self.resets.pop

    def refresh(self) -> tuple[str, ...]:
        return ()


class NoTokens:
    """A store without tokens."""

    def list(self) -> list[Any]:
        return []
