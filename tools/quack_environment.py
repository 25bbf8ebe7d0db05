"""An environment of its own with DuckDB 1.5.5 and its extension Quack, for tests and benches.

It is made once, in the user's cache. `QUERYARD_QUACK_PYTHON` names the Python of one that is there
already. Where it cannot be made (no network), that is remembered for an hour.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VERSION = "1.5.5"
PACKAGES = (
    f"duckdb=={VERSION}",
    f"duckdb-extensions=={VERSION}",
    f"duckdb-extension-httpfs=={VERSION}",
    f"duckdb-extension-quack=={VERSION}",
)
GIVEN = "QUERYARD_QUACK_PYTHON"
_AGAIN_S = 3600.0
_INSTALL_S = 300.0


class Unavailable(Exception):
    """There is no such environment, and none can be made; the text says why."""


def environment() -> Path:
    """The Python of the environment."""
    if given := os.environ.get(GIVEN):
        return Path(given)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    place = cache / "queryard" / f"quack-{VERSION}-python-{version}"
    place.parent.mkdir(parents=True, exist_ok=True)
    ready, failed = place / ".installed", place.with_suffix(".failed")
    python = place / "bin" / "python"
    with _alone(place.with_suffix(".lock")):
        if ready.exists():
            return python
        if failed.exists() and time.time() - failed.stat().st_mtime < _AGAIN_S:
            raise Unavailable(failed.read_text(encoding="utf-8"))
        try:
            _make(place, python)
        except (OSError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", None) or str(error)
            reason = f"DuckDB {VERSION} with Quack cannot be installed: {said.strip()[-300:]}"
            failed.write_text(reason, encoding="utf-8")
            raise Unavailable(reason) from None
        ready.touch()
    return python


def _make(place: Path, python: Path) -> None:
    print(f"making an environment with DuckDB {VERSION} in {place} …", file=sys.stderr, flush=True)
    venv.create(place, with_pip=True, clear=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "--retries", "1", "--timeout", "15", *PACKAGES],
        check=True,
        capture_output=True,
        text=True,
        timeout=_INSTALL_S,
    )


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Let no other process do the same at the same time."""
    try:
        import fcntl
    except ImportError:
        raise Unavailable("Quack is tried on systems with file locks only") from None
    with file.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
