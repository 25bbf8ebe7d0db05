"""Whether a session that has not closed still lives.

While a session records, it holds the lock of a file of its own, in a folder beside the history
(`history.sqlite-sessions/`). The operating system frees the lock when the process ends, however it
ends. A lock counts on the machine of the session only: elsewhere, and for sessions without such a
file, one that has given no sign of life for a day is gone. A session gives one every hour.
"""

from __future__ import annotations

import contextlib
import os
import platform
from pathlib import Path
from typing import Any

from .places import private_folder

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows: only the signs of life count
    fcntl = None

DAY_S = 86_400.0
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_TRIES = 5


def this_machine() -> str:
    """Its name, and what tells its containers from other machines: the kernel they share."""
    try:
        return f"{platform.node()} {_BOOT_ID.read_text(encoding='ascii').strip()}"
    except OSError:
        return platform.node()


def is_this_machine(told: str) -> bool:
    """Whether one of both is the same: the name outlasts a restart, containers have others."""
    return not set(told.split()).isdisjoint(this_machine().split())


class Presence:
    """The lock file of one session; without locks, none."""

    def __init__(self, history: Path, session: str) -> None:
        self._file = _folder(history) / session
        self._handle: int | None = None
        if fcntl is None:
            return
        with contextlib.suppress(OSError):
            self._handle = self._made()
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(self._handle, this_machine().encode())

    def _made(self) -> int:
        for _ in range(_TRIES - 1):
            private_folder(self._file.parent)
            # Another session that ends may remove the empty folder just now.
            with contextlib.suppress(FileNotFoundError):
                return os.open(self._file, os.O_CREAT | os.O_RDWR, 0o600)
        return os.open(self._file, os.O_CREAT | os.O_RDWR, 0o600)

    def end(self) -> None:
        if self._handle is not None:
            _remove(self._file)
            os.close(self._handle)
            self._handle = None


def is_gone(history: Path, session: str, seen_at: float, now: float) -> bool:
    """Whether the process of a session that has not closed has ended."""
    unseen = seen_at < now - DAY_S
    if fcntl is None:
        return unseen
    try:
        handle = os.open(_folder(history) / session, os.O_RDONLY)
    except OSError:
        return unseen
    try:
        machine = os.read(handle, 1000).decode(errors="replace")
        if not is_this_machine(machine):
            return unseen
        # Shared: several may look at the same time.
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return unseen
    else:
        return True
    finally:
        os.close(handle)


def forget(history: Path, session: str) -> None:
    """Remove the lock file of a session that is over."""
    _remove(_folder(history) / session)


def known(history: Path) -> list[str]:
    """The sessions that have a lock file."""
    try:
        return sorted(os.listdir(_folder(history)))
    except OSError:
        return []


def _folder(history: Path) -> Path:
    return history.with_name(f"{history.name}-sessions")


def _remove(file: Path) -> None:
    with contextlib.suppress(OSError):
        file.unlink(missing_ok=True)
        file.parent.rmdir()  # fails while there are others
