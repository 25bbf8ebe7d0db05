"""Processes that a bench has started, and what they listen on; ended by their ids."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Process(NamedTuple):
    """A process; ids are used again, so the time of its start belongs to it."""

    pid: int
    began: int

    @property
    def lives(self) -> bool:
        found = _stat(self.pid)
        return found is not None and found.began == self.began and found.state != "Z"

    def kill(self) -> None:
        if self.lives:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    @property
    def command(self) -> str:
        """What it is, for people."""
        try:
            return Path(f"/proc/{self.pid}/cmdline").read_text().replace("\0", " ")[:80]
        except OSError:
            return str(self.pid)


class _Stat(NamedTuple):
    state: str
    parent: int
    began: int


def _stat(pid: int) -> _Stat | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return _Stat(fields[0], int(fields[1]), int(fields[19]))


def descendants(pid: int) -> set[Process]:
    """All processes below one."""
    by_parent = _by_parent()
    below: set[Process] = set()
    left = [pid]
    while left:
        for child in by_parent.get(left.pop(), []):
            below.add(child)
            left.append(child.pid)
    return below


def children(pid: int) -> set[Process]:
    """The processes that one has started itself."""
    return set(_by_parent().get(pid, []))


def _by_parent() -> dict[int, list[Process]]:
    found: dict[int, list[Process]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (stat := _stat(int(entry.name))) is not None:
            found.setdefault(stat.parent, []).append(Process(int(entry.name), stat.began))
    return found


def stopped(pid: int) -> set[Process]:
    """A process and all below it, each stopped, so that none starts another."""
    found: set[Process] = set()
    while new := (descendants(pid) | _itself(pid)) - found:
        for process in new:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGSTOP)
        found |= new
    return found


def _itself(pid: int) -> set[Process]:
    return set() if (found := _stat(pid)) is None else {Process(pid, found.began)}


def end(processes: Iterable[Process], patience_s: float) -> list[str]:
    """Wait until processes have ended; those that take too long are killed, and told."""
    until_s = time.monotonic() + patience_s
    left = set(processes)
    while (left := {one for one in left if one.lives}) and time.monotonic() < until_s:
        time.sleep(0.05)
    commands = [one.command for one in left]
    for one in left:
        one.kill()
    return commands


def listening(pids: Iterable[int]) -> list[str]:
    """The addresses on which processes listen, as the system writes them."""
    sockets = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for handle in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    name = os.readlink(handle)
                    if name.startswith("socket:["):
                        sockets.add(name[8:-1])
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in sockets:
                found.append(fields[1])
    return found


def off_loopback(pids: Iterable[int]) -> list[str]:
    """The addresses other than 127.0.0.1 on which processes listen."""
    return [found for found in listening(pids) if found.partition(":")[0] not in _LOOPBACK]


_LOOPBACK = (
    "0100007F",
    "00000000000000000000000001000000",
    "0000000000000000FFFF00000100007F",
)
