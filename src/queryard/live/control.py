"""The socket by which other processes of the same user ask a session.

A note beside the data (in the user's cache where nothing may be left there) says where it is. One
line of JSON asks, one answers; `router` says what. Every call has a thread of its own, so that a
question that takes long keeps no other waiting. The socket and the note are gone when the session
closes. What a killed one left is removed by the next session, and by the next process that asks.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from queryard.core.errors import QueryardError
from queryard.engine.temp import TempSpace, remove_leftovers
from queryard.history.places import private_folder
from queryard.history.presence import is_this_machine, this_machine

from .router import Askable, Reply, reply_to

NOTES = "sessions"
# How long the asking side waits for an answer.
ANSWER_S = 2.0
# A caller asks in one breath, and takes the answer at once.
CALL_S = 5.0
CLOSE_S = 1.0
# Calls at the same time; more than that are turned away, so that they do not fill the process.
MOST_CALLS = 32
_LONGEST_BYTES = 1 << 20
_PIECE_BYTES = 1 << 16
_FORMER = "queryard-????????"


class Control:
    """The listening side; it must not keep its session alive."""

    def __init__(self, folder: Path, session: str, held: Callable[[], Askable | None]) -> None:
        self._held = held
        self._process = os.getpid()
        self._closed = False
        self._calls: set[threading.Thread] = set()
        _remove_former_leftovers()
        # Names of sockets must be short, and only their user may look into this folder. It is
        # removed by the next session if this one is killed.
        self._place = TempSpace()
        self._note = folder / NOTES / f"{session}.json"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._thread: threading.Thread | None = None
        try:
            address = str(self._place.path / "s")
            self._socket.bind(address)
            self._socket.listen()
            private_folder(folder)
            private_folder(self._note.parent)
            told = {"pid": self._process, "socket": address, "machine": this_machine()}
            _write_note(self._note, json.dumps(told))
        except OSError:
            self.close()
            raise
        self._thread = threading.Thread(target=self._listen, name="queryard-control", daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while not self._closed:
            try:
                caller, _ = self._socket.accept()
            except OSError:
                # Closed, or the process has too many open files for now.
                if not self._closed:
                    time.sleep(0.1)
                continue
            self._calls = {call for call in self._calls if call.is_alive()}
            if len(self._calls) >= MOST_CALLS:
                _hang_up(caller, f"{MOST_CALLS} questions are being answered; ask again later")
                continue
            call = threading.Thread(
                target=_serve, args=(caller, self._held), name="queryard-control-call", daemon=True
            )
            try:
                call.start()
            except RuntimeError as error:
                _hang_up(caller, f"there is no thread to answer ({error}); ask again later")
                continue
            self._calls.add(call)

    def close(self) -> None:
        if os.getpid() != self._process:
            return  # a fork: all of it is the parent's
        self._closed = True
        # Closing alone does not wake a thread that waits for callers.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with contextlib.suppress(OSError):
            self._note.unlink(missing_ok=True)
        self._place.close()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(CLOSE_S)


def _write_note(note: Path, text: str) -> None:
    """Whole or not at all: another process may look for notes just now."""
    unfinished = note.with_name(f".{note.name}.part")
    handle = os.open(unfinished, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    unfinished.chmod(0o600)
    os.replace(unfinished, note)


def _serve(caller: socket.socket, held: Callable[[], Askable | None]) -> None:
    """Answer one call; a caller that is gone, or too slow, gets none."""
    with caller, contextlib.suppress(OSError):
        try:
            request = json.loads(_read_line(caller, CALL_S))
        except (ValueError, RecursionError) as error:
            _say(caller, {"error": f"the question is no line of JSON ({error})"})
            return
        _say(caller, reply_to(held(), request))


def _say(caller: socket.socket, reply: Reply) -> None:
    try:
        line = json.dumps(reply)
    except (TypeError, ValueError, RecursionError) as error:
        line = json.dumps({"error": f"the answer cannot be told ({error})"})
    caller.settimeout(CALL_S)
    caller.sendall(line.encode() + b"\n")


def _hang_up(caller: socket.socket, problem: str) -> None:
    with caller, contextlib.suppress(OSError):
        caller.setblocking(False)
        caller.sendall(json.dumps({"error": problem}).encode() + b"\n")


def _read_line(stream: socket.socket, within_s: float, longest: int | None = None) -> bytes:
    """A whole line, however slowly it comes; `TimeoutError` if it takes longer than allowed."""
    most_bytes = _LONGEST_BYTES if longest is None else longest
    until_s = time.monotonic() + within_s
    line = bytearray()
    while not line.endswith(b"\n"):
        left_s = until_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError(f"no whole line within {within_s:g} s")
        stream.settimeout(left_s)
        piece = stream.recv(_PIECE_BYTES)
        if not piece:
            raise ValueError("it ends in the middle" if line else "it is empty")
        line += piece
        if len(line) > most_bytes:
            raise ValueError(f"it is longer than {most_bytes:,} bytes")
    return bytes(line)


def control_of(folder: Path, session: str, held: Callable[[], Askable | None]) -> Control | None:
    """Listen, where that is possible; a session works as well without."""
    if not hasattr(socket, "AF_UNIX"):
        return None
    try:
        return Control(folder, session, held)
    except (OSError, QueryardError):
        return None


# --- the asking side -----------------------------------------------------------------------------


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
                line = _read_line(caller, within_s, longest=1 << 30)
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
    _remove_former_leftovers()


def _remove_former_leftovers() -> None:
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
