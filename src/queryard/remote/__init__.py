"""A session on a server: the Python API of an embedded session, over HTTP."""

from .errors import NotKnown, NotOnServer, ServerError, TokenRefused
from .handle import RemoteHandle
from .session import RemoteSession, connect

__all__ = [
    "NotKnown",
    "NotOnServer",
    "RemoteHandle",
    "RemoteSession",
    "ServerError",
    "TokenRefused",
    "connect",
]
