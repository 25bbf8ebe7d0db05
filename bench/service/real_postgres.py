"""A real PostgreSQL server on this machine, as a peer; it ends with the context."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .setting import free_port

PLACES = (Path("/usr/lib/postgresql"), Path("/opt/homebrew/opt/postgresql"))
# PostgreSQL does not start as root.
OTHER_USER = "postgres"


def programs() -> Path | None:
    """The folder of PostgreSQL's programs; None if it is not installed."""
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    folders = [folder for place in PLACES for folder in sorted(place.glob("*/bin"))]
    return folders[-1] if folders else None


@contextlib.contextmanager
def postgres() -> Iterator[str | None]:
    """How to connect to an empty database; None where there is no PostgreSQL."""
    folder = programs()
    user = _user()
    if folder is None or user is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="queryard-bench-postgres-") as name:
        place = Path(name)
        if os.geteuid() == 0:
            os.chown(place, user, -1)
        data, port = place / "data", free_port()
        run = ["initdb", "-D", str(data), "-U", "bench", "-A", "trust", "--no-sync"]
        _run(folder, run, user)
        told = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={place}"
        told += " -c shared_buffers=512MB -c fsync=off"
        start = ["pg_ctl", "-D", str(data), "-w", "-l", str(place / "log"), "-o", told, "start"]
        _run(folder, start, user)
        try:
            yield f"host=127.0.0.1 port={port} user=bench dbname=postgres"
        finally:
            _run(folder, ["pg_ctl", "-D", str(data), "-m", "immediate", "stop"], user)


def _user() -> int | None:
    """The user it runs as; None if there is none that it would start for."""
    if os.geteuid() != 0:
        return os.geteuid()
    with contextlib.suppress(KeyError):
        return pwd.getpwnam(OTHER_USER).pw_uid
    return None


def _run(folder: Path, command: list[str], user: int) -> None:
    subprocess.run(
        [str(folder / command[0]), *command[1:]],
        check=True,
        stdout=subprocess.DEVNULL,
        user=user if os.geteuid() == 0 else None,
        cwd="/",
    )
