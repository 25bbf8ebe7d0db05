"""An environment of its own with DuckDB 1.5.5 and its extension Quack, for tests and benches."""

from __future__ import annotations

from tools.environment import Environment, Unavailable

__all__ = ["VERSION", "Unavailable", "environment"]

VERSION = "1.5.5"
_QUACK = Environment(
    name=f"quack-{VERSION}",
    what=f"DuckDB {VERSION} with Quack",
    packages=(
        f"duckdb=={VERSION}",
        f"duckdb-extensions=={VERSION}",
        f"duckdb-extension-httpfs=={VERSION}",
        f"duckdb-extension-quack=={VERSION}",
    ),
    given="QUERYARD_QUACK_PYTHON",
)
# The Python of the environment.
environment = _QUACK.python
