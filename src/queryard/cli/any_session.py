"""What commands ask: a session on data or on a server, and the tables of either."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from queryard.live import Session
    from queryard.remote.catalog import RemoteCatalog
    from queryard.remote.session import RemoteSession
    from queryard.sql.catalog import Catalog

    AnySession = Session | RemoteSession
    AnyCatalog = Catalog | RemoteCatalog
