"""Temporary files: one folder per process, removed at its end, or by the next start after a crash.

Each folder holds a lock file that its process keeps locked; the operating system frees the lock
when the process dies, however it dies. If the lock can be taken, the folder is abandoned.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import stat
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from queryard.core.errors import QueryardError

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows: folders left by a crash stay until the system cleans them
    fcntl = None

_LOCK = ".lock"
# Where sessions of earlier versions had their sockets.
_FORMER = "queryard-????????"


def _default_root() -> Path:
    """A place for each user: others could not write there, and should not."""
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    return Path(tempfile.gettempdir()) / f"queryard-{user}"


def _is_own(folder: Path) -> bool:
    """Whether only this user can change what lies in a folder: all may make one of this name."""
    if not hasattr(os, "getuid"):
        return True
    found = folder.lstat()
    others = stat.S_IWGRP | stat.S_IWOTH
    return (
        stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & others
    )


def own_root(root: Path) -> Path:
    """A place for temporary files that only this user can change.

    It is a new one, which a crash leaves behind, where another user has made one of that name.
    """
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    return root if _is_own(root) else Path(tempfile.mkdtemp(prefix=f"{root.name}-"))


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let one process at a time look after a folder."""
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


class TempSpace:
    """A folder of this process's own below `root` (the system's place for such, by default)."""

    def __init__(self, root: str | Path | None = None) -> None:
        base = Path(root) if root is not None else _default_root()
        try:
            base = base if root is not None else own_root(base)
            base.mkdir(parents=True, exist_ok=True, mode=0o700)
            with _locked(base):
                # Another process must not take the new folder for an abandoned one.
                remove_abandoned(base)
                self.path = base / f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
                self.path.mkdir(mode=0o700)
                self._lock: IO[bytes] | None = (self.path / _LOCK).open("wb")
                if fcntl is not None:
                    fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise QueryardError(
                f"cannot make temporary files in {base}: {error.strerror}; "
                "name another folder with connect(temp=…) or the variable TMPDIR"
            ) from None

    def file(self, suffix: str) -> Path:
        """The path of a file that does not exist yet."""
        return self.path / f"{uuid.uuid4().hex}{suffix}"

    def close(self) -> None:
        if self._lock is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            self._lock.close()
            self._lock = None


def remove_abandoned(base: Path) -> None:
    """Remove the folders of processes that no longer live."""
    if fcntl is None:
        return
    for lock in base.glob(f"*/{_LOCK}"):
        with contextlib.suppress(OSError), lock.open("rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)


def remove_leftovers() -> None:
    """Remove what killed processes of this user have left in the usual place."""
    root = _default_root()
    with contextlib.suppress(OSError):
        if _is_own(root):
            with _locked(root):
                remove_abandoned(root)


def remove_former_sockets() -> None:
    """Remove sockets of killed sessions of earlier versions: a folder of this user's for each."""
    for folder in Path(tempfile.gettempdir()).glob(_FORMER):
        address = folder / "s"
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as caller:
            found = folder.lstat()
            mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
            if mine and os.listdir(folder) == ["s"] and address.is_socket():
                caller.setblocking(False)
                try:
                    caller.connect(str(address))
                except ConnectionRefusedError:
                    address.unlink()
                    folder.rmdir()
