"""One session for tests that hold for both: embedded, or on a server in this process."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_until

import queryard
from queryard.engine.sealing.access import Access

PLACES = ("embedded", "server")
_beneath: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


@contextmanager
def served(session: queryard.Session, folder: Path, **grants: Any) -> Iterator[str]:
    """The address of a server on a session; tokens are kept in a folder. Gives URL and secret."""
    pytest.importorskip("fastapi")
    uvicorn = pytest.importorskip("uvicorn")
    from queryard.service.config import ServiceConfig, ServiceLimits
    from queryard.service.http.application import create_app
    from queryard.service.tokens import TokenStore
    from queryard.service.yard import Yard

    tokens = TokenStore(folder / "tokens.json")
    tokens.add("ann", "default")
    limits = ServiceLimits(statements_per_s=1e6, open_results=10_000)
    config = ServiceConfig(limits=limits, grants={"default": Access(sealed=True, **grants)})
    yard = Yard(session, config, tokens)
    server = uvicorn.Server(
        uvicorn.Config(
            create_app(yard),
            host="127.0.0.1",
            port=0,
            log_level="error",
            timeout_graceful_shutdown=1,
        )
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started or not thread.is_alive())
        assert server.started
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        yard.close()


def token_of(folder: Path) -> str:
    """A fresh secret of the server whose tokens are in a folder."""
    from queryard.service.tokens import TokenStore

    store = TokenStore(folder / "tokens.json")
    if store.info("tester") is not None:
        store.revoke("tester")
    return store.add("tester", "default", "admin")


@contextmanager
def a_session(place: str, folder: Path, *given: Any, **options: Any) -> Iterator[Any]:
    """A session on the data that `queryard.connect` is given, embedded or on a server."""
    with queryard.connect(*given, **options) as session:
        if place == "embedded":
            yield session
            return
        with (
            served(session, folder) as url,
            queryard.connect(url, token=token_of(folder)) as remote,
        ):
            _beneath[remote] = session
            yield remote


def beneath(session: Any) -> Any:
    """The embedded session that a session is, or is served by."""
    return _beneath.get(session, session)
