"""What-ifs of a server: one at a time, in a process of its own, a few waiting.

A what-if that fails, or whose process is killed, is an error of that what-if and of nothing else.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from queryard.core.model import Tenant

from ..limits import TooMany
from ..logs import log
from ..problems import UnknownName
from .whatif_asked import read_job
from .whatif_job import Job

State = Literal["waiting", "running", "done", "failed"]
# How many may wait, and how many that are over are kept.
MOST_WAITING = 4
MOST_KEPT = 20
LIMIT_S = 300.0
CLOSE_S = 5.0
# What a worker runs; the argument is the folder of the package.
_BOOT = """
import sys
sys.path.append(sys.argv[1])
from queryard.service.controlling.whatif_worker import serve
serve()
"""


class WhatIf:
    """One what-if; `WhatIfs` changes it under its lock."""

    def __init__(self, by: str, job: Job) -> None:
        self.id = uuid.uuid4().hex[:12]
        self.by = by
        self.at = time.time()
        self.job = job
        self.state: State = "waiting"
        self.progress = 0.0
        self.found: Mapping[str, Any] = {}
        self.error: str | None = None
        self.process: subprocess.Popen[str] | None = None
        # Why its process was ended, if the server did.
        self.stopped = ""

    def told(self, whole: bool = True) -> dict[str, Any]:
        """As plain data; without the rows and figures if not whole."""
        found = {
            "id": self.id,
            "by": self.by,
            "at": self.at,
            "since": self.job.since,
            "until": self.job.until,
            "policies": list(self.job.policies),
            "slots": self.job.slots,
            "state": self.state,
            "progress": self.progress,
            "error": self.error,
        }
        return found if not whole else {**_NOTHING, **self.found, **found}


_NOTHING: Mapping[str, Any] = {
    "title": "",
    "rows": [],
    "table": "",
    "verdict": "",
    "notes": [],
    "estimates": "",
    "figures": [],
}


class WhatIfs:
    """The what-ifs of one server; calls come from any thread."""

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self._limit_s = limit_s
        self._changed = threading.Condition()
        self._all: OrderedDict[str, WhatIf] = OrderedDict()
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(
        self, by: str, given: Mapping[str, Any], history: Path | None, tenants: Sequence[Tenant]
    ) -> dict[str, Any]:
        """Take a what-if; raises what is wrong with it, or that too many wait."""
        if history is None:
            raise UnknownName("the server keeps no history, so there is nothing to compare on")
        made = WhatIf(by, read_job(given, history, tenants))
        with self._changed:
            waiting = sum(each.state == "waiting" for each in self._all.values())
            if waiting >= MOST_WAITING or self._closed:
                raise TooMany(
                    f"{waiting} what-ifs are waiting, and {MOST_WAITING} may; try again when one "
                    "is done, or delete one",
                    30.0,
                )
            self._all[made.id] = made
            self._forget_oldest()
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="queryard-whatif", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()
        return made.told(whole=False)

    def _forget_oldest(self) -> None:
        over = [each.id for each in self._all.values() if each.state in ("done", "failed")]
        for name in over[: max(0, len(over) - MOST_KEPT)]:
            del self._all[name]

    def show(self, name: str) -> dict[str, Any]:
        """One what-if with all that was found."""
        with self._changed:
            return self._find(name).told()

    def list(self) -> list[dict[str, Any]]:
        """All that are known, the latest first, without what was found."""
        with self._changed:
            return [each.told(whole=False) for each in reversed(self._all.values())]

    def delete(self, name: str) -> None:
        """Forget a what-if; if it runs, its process is killed."""
        with self._changed:
            found = self._find(name)
            del self._all[name]
            self._stop(found, "it was deleted")

    def _find(self, name: str) -> WhatIf:
        found = self._all.get(name)
        if found is None:
            raise UnknownName(f"unknown what-if {name!r}: it was deleted, or is kept no more")
        return found

    def _stop(self, one: WhatIf, reason: str) -> None:
        one.stopped = reason
        if one.process is not None:
            # The worker may have ended by itself.
            with contextlib.suppress(OSError):
                one.process.kill()

    def close(self) -> None:
        """Kill what runs, and take no more."""
        with self._changed:
            self._closed = True
            for each in self._all.values():
                self._stop(each, "the server was stopped")
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(CLOSE_S)

    # --- on the thread that runs them ------------------------------------------------------------

    def _next(self) -> WhatIf | None:
        return next((each for each in self._all.values() if each.state == "waiting"), None)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._next() is not None)
                one = self._next()
                if self._closed or one is None:
                    return
                one.state = "running"
            self._compute(one)
            log("what-if over", id=one.id, by=one.by, state=one.state, error=one.error)

    def _compute(self, one: WhatIf) -> None:
        message: Mapping[str, Any] = {}
        try:
            process = self._start(one)
            timer = threading.Timer(self._limit_s, self._time_out, (one,))
            timer.daemon = True
            timer.start()
            try:
                message = self._listen(one, process)
            finally:
                timer.cancel()
                process.kill()
                code = process.wait()
                for stream in (process.stdin, process.stdout):
                    if stream is not None:
                        with contextlib.suppress(OSError):
                            stream.close()
            ended = _how_it_ended(code)
        except (OSError, ValueError) as error:
            ended = f"its process cannot be used ({error})"
        with self._changed:
            one.process = None
            if "found" in message and not one.stopped:
                one.state, one.progress, one.found = "done", 1.0, message["found"]
            else:
                one.state = "failed"
                one.error = one.stopped or message.get("error") or ended

    def _start(self, one: WhatIf) -> subprocess.Popen[str]:
        package = Path(__file__).resolve().parents[3]
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _BOOT, str(package)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        with self._changed:
            one.process = process
            if one.stopped:  # meanwhile
                process.kill()
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            # Its input stays open: the worker ends when the server does.
            process.stdin.write(json.dumps(asdict(one.job)) + "\n")
            process.stdin.flush()
        return process

    def _listen(self, one: WhatIf, process: subprocess.Popen[str]) -> Mapping[str, Any]:
        """What the worker says last; nothing if it ended before."""
        assert process.stdout is not None
        for line in process.stdout:
            message: Mapping[str, Any] = json.loads(line)
            if "progress" not in message:
                return message
            with self._changed:
                one.progress = float(message["progress"])
        return {}

    def _time_out(self, one: WhatIf) -> None:
        with self._changed:
            self._stop(
                one,
                f"it took longer than {self._limit_s:g} s; choose a shorter window or fewer "
                "policies",
            )


def _how_it_ended(code: int) -> str:
    """In words, for a worker that said nothing.

    >>> _how_it_ended(-9)
    'its process was ended by SIGKILL; perhaps there was not enough memory'
    """
    if code < 0:
        with contextlib.suppress(ValueError):
            name = signal.Signals(-code).name
            return f"its process was ended by {name}; perhaps there was not enough memory"
    return f"its process ended without an answer (code {code})"
