"""A session on a server: the Python API of an embedded session, over HTTP."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .connecting import connect
    from .errors import NotKnown, NotOnServer, ServerError, TokenRefused
    from .handle import RemoteHandle
    from .session import RemoteSession

__all__ = [
    "NotKnown",
    "NotOnServer",
    "RemoteHandle",
    "RemoteSession",
    "ServerError",
    "TokenRefused",
    "connect",
]
_MODULES = {
    "connecting": ("connect",),
    "errors": ("NotKnown", "NotOnServer", "ServerError", "TokenRefused"),
    "handle": ("RemoteHandle",),
    "session": ("RemoteSession",),
}


def __getattr__(name: str) -> Any:
    # Which server is meant is found out without DuckDB, Arrow and httpx.
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module 'queryard.remote' has no attribute {name!r}")
