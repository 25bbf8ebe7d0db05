"""Which server, and with which token: as given, from the environment, or from a file.

The file is the user's own: one that others may read is refused.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import NamedTuple

from queryard.core.errors import QueryardError, unknown_name

SERVER = "QUERYARD_SERVER"
TOKEN = "QUERYARD_TOKEN"
CA = "QUERYARD_CA"
FILE = "QUERYARD_SERVER_FILE"
_KEYS = ("server", "token", "ca")


class Credentials(NamedTuple):
    """The address of a server, a token, and the file of certificates to trust (None: the usual)."""

    server: str
    token: str
    ca: str | None = None


def file_of_server() -> Path:
    """Where a user keeps the address of a server and a token."""
    given = os.environ.get(FILE)
    if given:
        return Path(given).expanduser()
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "queryard" / "server.toml"


def read_file(file: Path) -> dict[str, str]:
    """What the file says; nothing if there is none."""
    try:
        found = file.stat()
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise QueryardError(f"{file}: cannot be read ({error.strerror or error})") from error
    if os.name == "posix" and found.st_mode & 0o077:
        raise QueryardError(
            f"{file}: others may read the token in it (mode {found.st_mode & 0o777:03o}); run "
            f"chmod 600 {file}"
        )
    try:
        told = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise QueryardError(f"{file}: not valid TOML: {error}") from error
    for key, value in told.items():
        if key not in _KEYS:
            raise QueryardError(f"{file}: {unknown_name('key', key, _KEYS)}")
        if not isinstance(value, str):
            raise QueryardError(f"{file}: {key} must be a text, got {value!r}")
    return told


def server_named(given: str | None = None) -> str | None:
    """The address of the server that is meant by default; None if there is none.

    A token in the file belongs to the server in the file.
    """
    return given or os.environ.get(SERVER) or read_file(file_of_server()).get("server")


def credentials(server: str | None, token: str | None = None, ca: str | None = None) -> Credentials:
    """What is given counts first, then the environment, then the file."""
    file = file_of_server()
    kept: dict[str, str] | None = None
    if server is None and not (server := os.environ.get(SERVER)):
        kept = read_file(file)
        server = kept.get("server")
    if not server:
        raise QueryardError(
            f"no server is named; give its address, set {SERVER}, or write it into {file}"
        )
    token = token or os.environ.get(TOKEN)
    ca = ca or os.environ.get(CA) or None
    if not token or ca is None:
        kept = read_file(file) if kept is None else kept
        # A token must not be shown to another server than it was made for.
        if kept.get("server", server).rstrip("/") == server.rstrip("/"):
            token = token or kept.get("token")
            ca = kept.get("ca") if ca is None else ca
    if not token:
        raise QueryardError(
            f"{server}: a token is needed, which `queryard token add` makes on the server; give it "
            f"as token=…, set {TOKEN}, or write it into {file} (mode 0600)"
        )
    return Credentials(server, token, ca)
