"""Queryard: a yard where analytic queries are marshalled.

>>> import queryard
>>> with queryard.connect() as qy:
...     qy.sql("SELECT 6 * 7 AS answer").fetchall()
[(42,)]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from queryard.version import __version__

if TYPE_CHECKING:
    from queryard.comparison import Comparison, compare
    from queryard.connecting import connect
    from queryard.core.errors import QueryardError
    from queryard.engine.errors import (
        NotAllowed,
        OutOfMemory,
        QueryCancelled,
        QueryFailed,
        QueryTimedOut,
    )
    from queryard.live import Answer, Handle, Refused, Session

__all__ = [
    "Answer",
    "Comparison",
    "Handle",
    "NotAllowed",
    "OutOfMemory",
    "QueryCancelled",
    "QueryFailed",
    "QueryTimedOut",
    "QueryardError",
    "Refused",
    "Session",
    "__version__",
    "compare",
    "connect",
]

_MODULES = {
    "queryard.comparison": ("Comparison", "compare"),
    "queryard.connecting": ("connect",),
    "queryard.live": ("Answer", "Handle", "Refused", "Session"),
    "queryard.core.errors": ("QueryardError",),
    "queryard.engine.errors": (
        "NotAllowed",
        "OutOfMemory",
        "QueryCancelled",
        "QueryFailed",
        "QueryTimedOut",
    ),
}


def __getattr__(name: str) -> Any:
    # The simulator needs neither DuckDB nor Arrow, and should not wait for them.
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'queryard' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
