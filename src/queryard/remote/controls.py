"""The controls of a server, for admins; each change is recorded there and can be undone."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from queryard.core.errors import QueryardError

from .credentials import credentials
from .transport import PATIENCE_S, Transport

# How often a what-if is asked whether it is done.
LOOK_S = 0.2


class RemoteControls:
    """Every change gives its record: `id`, `at`, `by`, `text`, `before`, `after`, `undoable` …

    All take a `reason`, for the record, and `seen`, the number of the last change that the caller
    knows of: if there is a later one, nothing is changed.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def show(self, limit: int = 100) -> dict[str, Any]:
        """All that can be changed, as it is, and the last changes, the latest first."""
        found = self._transport.json("GET", "/v1/controls", params={"limit": limit})
        return dict(found)

    def change(self, change: str, **arguments: Any) -> dict[str, Any]:
        """Make a change by its name, as `change("tenant", tenant="web", weight=3)`."""
        return dict(self._post("/v1/controls", {"change": change, **arguments}))

    def undo(self, change: int, reason: str = "") -> dict[str, Any]:
        """Set what a change has set to what it was before."""
        return dict(self._post(f"/v1/controls/{change}/undo", {"reason": reason}))

    def profile(self, profile: str | Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """Follow another policy."""
        return self.change("profile", profile=profile, **more)

    def tenant(self, name: str, **changes: Any) -> dict[str, Any]:
        """Change the `weight`, the `guarantee`, the `cap` or the `limits` of a tenant."""
        return self.change("tenant", tenant=name, **changes)

    def pause(self, **more: Any) -> dict[str, Any]:
        """Start no waiting query; what runs goes on."""
        return self.change("pause", **more)

    def resume(self, **more: Any) -> dict[str, Any]:
        """Let waiting queries start again."""
        return self.change("resume", **more)

    def drain(self, **more: Any) -> dict[str, Any]:
        """Take no further queries; those that are there end."""
        return self.change("drain", **more)

    def open(self, **more: Any) -> dict[str, Any]:
        """Take queries again."""
        return self.change("open", **more)

    def cancel_tenant(self, name: str, **more: Any) -> dict[str, Any]:
        """Cancel all queries of a tenant and of those below it."""
        return self.change("cancel-tenant", tenant=name, **more)

    def reset_models(self, models: Sequence[str] | None = None, **more: Any) -> dict[str, Any]:
        """Forget what was learnt: of `templates`, of `prices`, by a `portfolio`; all by default."""
        given = {} if models is None else {"models": list(models)}
        return self.change("reset-models", **given, **more)

    def whatif(
        self,
        policies: Sequence[str | Mapping[str, Any]],
        *,
        since: float | str | None = None,
        until: float | str | None = None,
        slots: int | None = None,
    ) -> dict[str, Any]:
        """Compare policies on what was asked in some time, the last hour by default; it waits.

        What is found has `rows`, `table`, `verdict` and `figures`, as of `queryard.compare`.
        """
        given = {"since": since, "until": until, "slots": slots}
        body = {"policies": list(policies)} | {k: v for k, v in given.items() if v is not None}
        path = f"/v1/whatif/{self._post('/v1/whatif', body)['id']}"
        try:
            while True:
                found = dict(self._transport.json("GET", path))
                if found["state"] in ("done", "failed"):
                    break
                time.sleep(LOOK_S)
        except BaseException:
            self._transport.later("DELETE", path)
            raise
        if found["state"] == "failed":
            raise QueryardError(f"the what-if failed: {found['error']}")
        return found

    def _post(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._transport.json("POST", path, body=body, again=False)
        return found


@contextmanager
def connect_controls(
    server: str | None = None, token: str | None = None, *, ca: str | None = None
) -> Iterator[RemoteControls]:
    """The controls of a server without a session there: a server that drains opens none."""
    found = credentials(server, token, ca)
    transport = Transport(found.server, found.token, ca=found.ca, patience_s=PATIENCE_S)
    try:
        yield RemoteControls(transport)
    finally:
        transport.close()
