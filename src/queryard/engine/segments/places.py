"""Files of this process in memory, and on disk below a folder of its own.

A file in memory is anonymous (`memfd`): it takes no room in /dev/shm and is gone with the process,
however that ends. DuckDB may remember what it knows of a path, and numbers of files are used again,
so such a file is read under a link with a name of its own. Where the folder cannot be written there
are no links, and nothing is kept.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from pathlib import Path

from queryard.core.errors import QueryardError
from queryard.engine.temp import TempSpace

try:
    import resource
except ImportError:  # Windows, which has no files in memory either
    MOST_IN_MEMORY = 0
else:
    # Each file in memory takes one of the numbers that a process has for open files.
    MOST_IN_MEMORY = min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)


class MemoryFile:
    """A file without a name, for as long as this object is open."""

    def __init__(self) -> None:
        self._handle = os.memfd_create("segment", os.MFD_CLOEXEC)
        self._pid = os.getpid()

    @property
    def path(self) -> str:
        """Where this process finds it; another file may be found there once it is closed."""
        return f"/proc/{self._pid}/fd/{self._handle}"

    @property
    def size_bytes(self) -> int:
        return os.fstat(self._handle).st_size

    def write(self, block: bytes) -> None:
        rest = memoryview(block)
        while rest:
            rest = rest[os.write(self._handle, rest) :]

    def copy_to(self, path: str) -> None:
        """Write it to a file that does not exist yet."""
        with open(path, "xb") as target:
            size, done = self.size_bytes, 0
            while done < size:
                done += os.sendfile(target.fileno(), self._handle, done, size - done)

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def has_memory_files() -> bool:
    """Whether the system has files without a name that can be found by a path."""
    return hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir()


class Places:
    """The folder of this process: links to files in memory, and files on disk."""

    def __init__(self, root: str | Path | None) -> None:
        self._root = root
        self._space: TempSpace | None = None
        self._pid = os.getpid()
        self.problem = ""
        """Why nothing can be kept, if so."""

    def new_path(self) -> str | None:
        """A path that nothing has or had, or None where the folder cannot be made."""
        if self._space is None and not self.problem:
            try:
                self._space = TempSpace(self._root)
            except QueryardError as error:
                self.problem = str(error)
        if self._space is None:
            return None
        return str(self._space.path / f"{uuid.uuid4().hex}.parquet")

    def link(self, file: MemoryFile) -> str | None:
        """Another path of a file in memory, which no other file will have."""
        path = self.new_path()
        if path is None:
            return None
        try:
            os.symlink(file.path, path)
        except OSError as error:
            self.problem = f"{path}: cannot be made ({error.strerror or error})"
            return None
        return path

    def room_bytes(self) -> int:
        """What is free on the disk of the folder."""
        path = self.new_path()
        if path is None:
            return 0
        try:
            return shutil.disk_usage(os.path.dirname(path)).free
        except OSError:
            return 0

    def close(self) -> None:
        # A forked child has the same objects, and the folder is not its own.
        if self._space is not None and os.getpid() == self._pid:
            self._space.close()
        self._space = None


def removed(path: str) -> None:
    """Remove a file, if it is there."""
    with contextlib.suppress(OSError):
        os.unlink(path)
