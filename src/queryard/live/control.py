"""A session that answers other processes of the same user: who is there, why, and by which policy.

It listens on a socket of its own, and a note beside the data (in the user's cache where nothing may
be left there) says where. One line of JSON asks, one answers. Both are gone when the session
closes; what a killed one left is removed by who finds it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from queryard.core.errors import QueryardError

if TYPE_CHECKING:
    from .session import Session

NOTES = "sessions"
ANSWER_S = 30.0
# Who listens takes a call at once, and asks in one breath; a call is not waited for at the end.
CALL_S = 5.0
CLOSE_S = 1.0
_PREFIX = "queryard-"
_LONGEST_BYTES = 1 << 20


class Control:
    """The listening side; it must not keep its session alive."""

    def __init__(self, folder: Path, session: str, held: Callable[[], Session | None]) -> None:
        self._held = held
        self._process = os.getpid()
        # Names of sockets must be short, and only their owner may look into this folder.
        self._place = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._note = folder / NOTES / f"{session}.json"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._thread: threading.Thread | None = None
        try:
            self._socket.bind(str(self._place / "s"))
            self._socket.listen()
            self._note.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps({"pid": self._process, "socket": str(self._place / "s")})
            self._note.write_text(text, encoding="utf-8")
        except OSError:
            self.close()
            raise
        self._thread = threading.Thread(target=self._listen, name="queryard-control", daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while True:
            try:
                caller, _ = self._socket.accept()
            except OSError:
                return
            with caller, contextlib.suppress(OSError, ValueError):
                caller.settimeout(CALL_S)
                with caller.makefile("rwb") as stream:
                    answer = self._answer(json.loads(stream.readline(_LONGEST_BYTES)))
                    stream.write(json.dumps(answer).encode() + b"\n")

    def _answer(self, request: Any) -> dict[str, Any]:
        session = self._held()
        if session is None:
            return {"error": "the session is closed"}
        try:
            return {"answer": _ANSWERS[request["ask"]](session, request)}
        except QueryardError as error:
            return {"error": str(error)}
        except Exception as error:
            # Another version asks for something else, or the session ends just now.
            return {"error": f"the session cannot answer ({type(error).__name__}: {error})"}

    def close(self) -> None:
        if os.getpid() != self._process:
            return  # a fork: all of it is the parent's
        # Closing alone does not wake a thread that waits for callers.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with contextlib.suppress(OSError):
            self._note.unlink(missing_ok=True)
        shutil.rmtree(self._place, ignore_errors=True)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(CLOSE_S)


def _queries(session: Session, request: dict[str, Any]) -> Any:
    forecasts = session.forecasts()
    found = []
    for view in session.queries():
        forecast = forecasts.get(view.id)
        end_s = None if forecast is None else forecast.end_s
        found.append({**asdict(view), "now_s": session.now(), "forecast_end_s": end_s})
    return found


def _why(session: Session, request: dict[str, Any]) -> Any:
    outlook = session.why(request["query"])
    return {**asdict(outlook), "text": str(outlook)}


def _profile(session: Session, request: dict[str, Any]) -> Any:
    if request.get("profile") is not None:
        session.use_profile(request["profile"])
    return dict(session.profile)


_ANSWERS: dict[str, Callable[[Session, dict[str, Any]], Any]] = {
    "queries": _queries,
    "why": _why,
    "profile": _profile,
}


def control_of(folder: Path, session: str, held: Callable[[], Session | None]) -> Control | None:
    """Listen, where that is possible; a session works as well without."""
    if not hasattr(socket, "AF_UNIX"):
        return None
    try:
        return Control(folder, session, held)
    except OSError:
        return None


# --- the asking side -----------------------------------------------------------------------------


class Remote:
    """A session of another process."""

    def __init__(self, session: str, pid: int, address: str) -> None:
        self.session = session
        self.pid = pid
        self._address = address

    def ask(self, what: str, **details: Any) -> Any:
        """Its answer; raises what it says is wrong, and OSError if it is gone."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
            caller.settimeout(ANSWER_S)
            caller.connect(self._address)
            with caller.makefile("rwb") as stream:
                stream.write(json.dumps({"ask": what, **details}).encode() + b"\n")
                stream.flush()
                line = stream.readline()
        if not line:
            raise ConnectionResetError(f"session {self.session} gave no answer")
        reply = json.loads(line)
        if "error" in reply:
            raise QueryardError(reply["error"])
        return reply["answer"]


def remotes(folder: Path) -> Iterator[Remote]:
    """The sessions that are open on some data now; `folder` is its `.queryard`."""
    for note in sorted((folder / NOTES).glob("*.json")):
        try:
            told = json.loads(note.read_text(encoding="utf-8"))
            remote = Remote(note.stem, int(told["pid"]), str(told["socket"]))
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
                caller.settimeout(CALL_S)
                caller.connect(told["socket"])
        except (FileNotFoundError, ConnectionRefusedError):
            # Its process was killed.
            with contextlib.suppress(OSError):
                note.unlink()
                _remove(Path(told["socket"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue
        else:
            yield remote


def _remove(address: Path) -> None:
    """A socket nobody listens to, and its folder if it is one of ours and holds nothing else."""
    if address.is_socket() and address.parent.name.startswith(_PREFIX):
        address.unlink()
        address.parent.rmdir()
