"""Environments of their own with other packages, for tests and benches that compare with them.

Each is made once, in the user's cache. A variable may name the Python of one that is there already.
Where it cannot be made (no network), that is remembered for an hour.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_AGAIN_S = 3600.0


class Unavailable(Exception):
    """There is no such environment, and none can be made; the text says why."""


@dataclass(frozen=True)
class Environment:
    """`name` is that of its folder, `what` is told to people, `given` names the variable."""

    name: str
    what: str
    packages: tuple[str, ...]
    given: str
    install_s: float = 300.0

    def python(self) -> Path:
        """The Python of the environment."""
        if given := os.environ.get(self.given):
            return Path(given)
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        place = cache / "queryard" / f"{self.name}-python-{version}"
        place.parent.mkdir(parents=True, exist_ok=True)
        ready, failed = place / ".installed", place.with_suffix(".failed")
        python = place / "bin" / "python"
        with _alone(place.with_suffix(".lock")):
            if ready.exists():
                return python
            if failed.exists() and time.time() - failed.stat().st_mtime < _AGAIN_S:
                raise Unavailable(failed.read_text(encoding="utf-8"))
            try:
                self._make(place, python)
            except (OSError, subprocess.SubprocessError) as error:
                said = getattr(error, "stderr", None) or str(error)
                reason = f"{self.what} cannot be installed: {said.strip()[-300:]}"
                failed.write_text(reason, encoding="utf-8")
                raise Unavailable(reason) from None
            ready.touch()
        return python

    def _make(self, place: Path, python: Path) -> None:
        print(f"making an environment with {self.what} in {place} …", file=sys.stderr, flush=True)
        venv.create(place, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run(
            [*pip, "--retries", "1", "--timeout", "30", *self.packages],
            check=True,
            capture_output=True,
            text=True,
            timeout=self.install_s,
        )


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Let no other process do the same at the same time."""
    try:
        import fcntl
    except ImportError:
        raise Unavailable("such environments are made on systems with file locks only") from None
    with file.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
