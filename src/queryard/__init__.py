"""Queryard: a yard where analytic queries are marshalled.

>>> import queryard
>>> with queryard.connect() as qy:
...     qy.sql("SELECT 6 * 7 AS answer").fetchall()
[(42,)]
"""

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from queryard.live import Answer, Handle, Session, connect

__all__ = ["Answer", "Handle", "Session", "__version__", "connect"]

try:
    __version__ = version("queryard")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+unknown"


def __getattr__(name: str) -> Any:
    # The simulator needs neither DuckDB nor Arrow, and should not wait for them.
    if name in __all__:
        from queryard import live

        return getattr(live, name)
    raise AttributeError(f"module 'queryard' has no attribute {name!r}")
