"""The command line called as a person calls it, and data to call it on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from queryard.cli import main

SOURCES = Path(__file__).parents[2] / "src"
PATIENCE_S = 180.0
"""How long a command may take to answer, on a machine that is shared and slow."""


@dataclass
class Ended:
    code: int
    out: str
    err: str


@pytest.fixture
def call(capfdbinary: pytest.CaptureFixture[bytes]):
    """Call a command in this process."""

    def run(*args: object) -> Ended:
        with pytest.raises(SystemExit) as left:
            main([str(arg) for arg in args])
        captured = capfdbinary.readouterr()
        return Ended(int(left.value.code or 0), captured.out.decode(), captured.err.decode())

    return run


@pytest.fixture
def start():
    """Start a command as a process of its own, without a terminal."""
    started: list[subprocess.Popen[bytes]] = []

    def run(*args: object, **options: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "queryard.cli", *map(str, args)]
        environment = {**os.environ, "PYTHONPATH": str(SOURCES), "PYTHONFAULTHANDLER": "1"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(command, env=environment, **{**pipes, **options})  # type: ignore[call-overload]
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            # Not killed: its last words say where each of its threads was.
            process.send_signal(signal.SIGABRT)
        _, last_words = process.communicate(timeout=PATIENCE_S)
        print((last_words or b"").decode(errors="replace"))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`trips` (Parquet, 1,000 rows), `cities` (CSV, 3 rows) and a broken table."""
    made = tmp_path_factory.mktemp("place")
    trips = pa.table(
        {
            "id": list(range(1000)),
            "city": [["Rome", "Oslo", None][i % 3] for i in range(1000)],
            "price": pa.array([i / 4 for i in range(1000)], pa.float64()),
        }
    )
    pq.write_table(trips, made / "trips.parquet", row_group_size=250)
    (made / "cities.csv").write_text('name,motto\nRome,"eternal, they say"\nOslo,""\nBern,\n')
    return made
