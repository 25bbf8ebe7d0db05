"""The socket on which a session answers other processes of the same user.

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
import threading
import time
from collections.abc import Callable
from pathlib import Path

from queryard.core.errors import QueryardError
from queryard.engine.temp import TempSpace, remove_former_sockets
from queryard.history.places import private_folder
from queryard.history.presence import this_machine

from .router import Askable, Reply, reply_to

NOTES = "sessions"
# How long a caller may take to send its question, and to take the answer.
CALL_S = 5.0
CLOSE_S = 1.0
# Calls at the same time; further ones are refused, so that threads stay few.
MOST_CALLS = 32
_LONGEST_BYTES = 1 << 20
_PIECE_BYTES = 1 << 16


class Control:
    """The listening side; it must not keep its session alive."""

    def __init__(self, folder: Path, session: str, held: Callable[[], Askable | None]) -> None:
        self._held = held
        self._process = os.getpid()
        self._closed = False
        self._calls: set[threading.Thread] = set()
        remove_former_sockets()
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
    """Write the note atomically: another process may read notes just now."""
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
            request = json.loads(read_line(caller, CALL_S))
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


def read_line(stream: socket.socket, within_s: float, longest: int | None = None) -> bytes:
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
    """Listen, if possible; a session also works without."""
    if not hasattr(socket, "AF_UNIX"):
        return None
    try:
        return Control(folder, session, held)
    except (OSError, QueryardError):
        return None
