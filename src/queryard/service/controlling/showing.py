"""What controls show: the settings as they are, and changes as their record has them."""

from __future__ import annotations

from typing import Any

from queryard.core.model import Tenant
from queryard.core.tenants import SHARES
from queryard.live.admission.limits import Limits
from queryard.live.session import Session

from ..tokens import TokenStore
from .overlay import Overlay
from .record import Change, Record, holds_reset
from .steered import LIMITS, plain


def told(change: Change, overlay: Overlay, last_reset: int | None) -> dict[str, Any]:
    """A change as a document; the last reset can be undone while the server has its models."""
    return {
        "id": change.id,
        "at": change.at,
        "by": change.by,
        "what": change.what,
        "text": change.text,
        "reason": change.reason,
        "before": change.before,
        "after": change.after,
        "undoable": overlay.on_top(change.id) or change.id == last_reset,
        "undoes": change.undoes,
        "undone_by": change.undone_by,
    }


def shown_changes(
    record: Record, overlay: Overlay, limit: int, last_reset: int | None
) -> dict[str, Any]:
    """The last changes, the latest first, and what is known of all."""
    resets = [change.at for change in record.changes if holds_reset(change)]
    return {
        "models_reset_at": resets[-1] if resets else None,
        "last": record.last,
        "kept": not record.unkept,
        "changes": [told(change, overlay, last_reset) for change in record.changes[-limit:][::-1]],
    }


def shown_policy(session: Session, tenants: set[str]) -> dict[str, Any]:
    """What a session decides by: its policy, the shares and limits of tenants, its own limits."""
    return {
        "profile": plain(session.chosen_profile),
        "portfolio": plain(session.policy_state().portfolio),
        "tenants": [_tenant(session, name) for name in sorted(tenants)],
        "limits": _limits(session.limits),
    }


def tenants_named(session: Session, tokens: TokenStore) -> set[str]:
    """Tenants that are named anywhere."""
    return {
        *(tenant.name for tenant in session.tenants),
        *session.tenant_limits,
        *(info.tenant for info in tokens.list()),
        *(view.tenant for view in session.queries()),
    }


def _tenant(session: Session, name: str) -> dict[str, Any]:
    found = next((each for each in session.tenants if each.name == name), Tenant(name))
    limits = session.tenant_limits.get(name, Limits())
    shares = {field: getattr(found, field) for field in SHARES}
    return {"name": name, **shares, "limits": _limits(limits)}


def _limits(limits: Limits) -> dict[str, Any]:
    return {field: getattr(limits, field) for field in LIMITS}
