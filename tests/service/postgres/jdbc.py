"""Where the JDBC driver of PostgreSQL is, for the tests that run programs in Java."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest


def jdbc_driver() -> Path:
    """The driver's archive: where Maven or Debian puts it, or named by QUERYARD_JDBC."""
    if shutil.which("java") is None:
        pytest.skip("java is not installed")
    maven = Path.home() / ".m2/repository/org/postgresql/postgresql"
    places = [
        Path(os.environ.get("QUERYARD_JDBC", "")),
        Path("/usr/share/java/postgresql.jar"),
        *maven.glob("*/postgresql-*.jar"),
    ]
    for place in places:
        if place.is_file():
            return place
    pytest.skip(
        "the JDBC driver is not installed (Debian: libpostgresql-jdbc-java); or name its "
        "archive with QUERYARD_JDBC"
    )
