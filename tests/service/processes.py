"""`queryard serve` as a process of its own, on free ports, for the time of a test."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LIVES_S = 60.0


class Process:
    """A server that has said where it is."""

    def __init__(self, arguments: list[str], folder: Path, lives_s: float = LIVES_S) -> None:
        source = Path(__file__).parents[2] / "src"
        environment = {**os.environ, "PYTHONPATH": str(source), "XDG_CACHE_HOME": str(folder)}
        self._log = folder / f"log-{time.monotonic_ns()}.txt"
        with self._log.open("w") as log:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "queryard.cli", "serve", *arguments, "--log", "json"],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
            )
        # A process that hangs ends all the same.
        self._watch = threading.Timer(lives_s, self.popen.kill)
        self._watch.daemon = True
        self._watch.start()
        self.told = self._start()

    def _start(self) -> str:
        assert self.popen.stdout is not None
        lines = []
        for line in self.popen.stdout:
            lines.append(line)
            if line.startswith("More tokens"):
                return "".join(lines)
        self.popen.wait()
        raise AssertionError(f"it did not start: {''.join(lines)}{self.log()}")

    @property
    def url(self) -> str:
        return self.find(r"HTTP +(\S+)")

    @property
    def token(self) -> str:
        return self.find(r"token +(qy_\S+)")

    def find(self, pattern: str) -> str:
        """What it has said where it is."""
        found = re.search(pattern, self.told)
        assert found is not None, self.told
        return found[1]

    def events(self) -> list[dict[str, Any]]:
        """The log so far."""
        return [json.loads(line) for line in self.log().splitlines()]

    def log(self) -> str:
        """The log so far, as text."""
        return self._log.read_text()

    def wait_for(self, event: str, times: int = 1) -> dict[str, Any]:
        """An event of the log, once it has come so many times."""
        until_s = time.monotonic() + 20
        while time.monotonic() < until_s:
            found = [each for each in self.events() if each["event"] == event]
            if len(found) >= times:
                return found[-1]
            time.sleep(0.02)
        raise AssertionError(f"{event!r} did not come: {self.events()}")

    def send(self, number: int) -> None:
        self.popen.send_signal(number)

    def end(self) -> int:
        """Wait for its end; the exit code."""
        code = self.popen.wait(30)
        self._watch.cancel()
        if self.popen.stdout is not None:
            self.popen.stdout.close()
        return code

    def kill(self) -> None:
        if self.popen.poll() is None:
            self.send(signal.SIGKILL)
        self.end()


@contextmanager
def a_process(folder: Path, *arguments: str | Path, lives_s: float = LIVES_S) -> Iterator[Process]:
    """A server with these arguments, killed at the end if it still runs."""
    usual = ["--http", "0", "--slots", "2", "--memory", "512MB"]
    made = Process([*usual, *map(str, arguments)], folder, lives_s)
    try:
        yield made
    finally:
        made.kill()
