"""Asking sessions that other processes of the same user have open."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from queryard.core.errors import QueryardError
from queryard.engine.temp import remove_former_sockets, remove_leftovers
from queryard.history.presence import is_this_machine, this_machine
from queryard.live.control import NOTES, read_line

# How long an answer is waited for.
ANSWER_S = 2.0


class NoAnswer(QueryardError):
    """A session is open, and has not answered in time."""


class Remote:
    """A session of another process."""

    def __init__(self, session: str, pid: int, address: str) -> None:
        self.session = session
        self.pid = pid
        self._address = address

    def __str__(self) -> str:
        return f"session {self.session} (process {self.pid})"

    def ask(self, what: str, *, within_s: float = ANSWER_S, **details: Any) -> Any:
        """Its answer; raises what it says is wrong, `NoAnswer`, and OSError if it is gone."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
            try:
                caller.settimeout(within_s)
                caller.connect(self._address)
                # A session that takes no more questions may say so, and hang up, before this one.
                with contextlib.suppress(BrokenPipeError):
                    caller.sendall(json.dumps({"ask": what, **details}).encode() + b"\n")
                with contextlib.suppress(ConnectionResetError):
                    caller.recv(0)
                line = read_line(caller, within_s, longest=1 << 30)
            except (TimeoutError, BlockingIOError):
                raise NoAnswer(
                    f"{self} is open but has not answered within {within_s:g} s; it is busy, or "
                    "stopped. Ask again"
                ) from None
            except ValueError as error:
                raise ConnectionResetError(f"{self} gave no answer: {error}") from None
        reply = json.loads(line)
        if "error" in reply:
            raise QueryardError(reply["error"])
        return reply["answer"]


def remotes(folder: Path) -> Iterator[Remote]:
    """The sessions that are open on some data now; `folder` is its `.queryard`.

    Also those that are too busy to answer. What killed ones left on this machine is removed.
    """
    for note in sorted((folder / NOTES).glob("*.json")):
        try:
            told = json.loads(note.read_text(encoding="utf-8"))
            remote = Remote(note.stem, int(told["pid"]), str(told["socket"]))
            if not is_this_machine(str(told.get("machine", this_machine()))):
                continue  # its socket is there, not here
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
                caller.settimeout(ANSWER_S)
                caller.connect(told["socket"])
        except (FileNotFoundError, ConnectionRefusedError):
            # Its process was killed.
            with contextlib.suppress(OSError):
                note.unlink()
        except (TimeoutError, BlockingIOError):
            yield remote  # more callers wait than it takes: it is busy, or stopped
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        else:
            yield remote
    remove_leftovers()
    remove_former_sockets()
