"""How a session on a server is opened."""

from __future__ import annotations

from queryard.live.amounts import as_age
from queryard.live.request import Plan

from .credentials import credentials
from .session import RemoteSession
from .transport import PATIENCE_S, Transport


def connect(
    server: str | None = None,
    token: str | None = None,
    *,
    tenant: str | None = None,
    label: str = "",
    ca: str | None = None,
    patience: float | str = PATIENCE_S,
    plan: Plan | None = None,
) -> RemoteSession:
    """Open a session on a server.

    `server` is its address, as "http://host:8080". The address and the token may also stand in the
    environment (QUERYARD_SERVER, QUERYARD_TOKEN), or in a file of mode 0600
    (~/.config/queryard/server.toml). `tenant` is one below the token's own, `label` is shown in
    lists of sessions, `ca` a file of certificates to trust. A server that does not answer is asked
    again for `patience`. `plan` is how queries run unless they say otherwise.
    """
    found = credentials(server, token, ca)
    transport = Transport(
        found.server, found.token, ca=found.ca, patience_s=as_age(patience, "patience")
    )
    try:
        return RemoteSession(transport, tenant=tenant, label=label, plan=plan)
    except BaseException:
        transport.close()
        raise
