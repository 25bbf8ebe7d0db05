"""Tokens of clients: secrets that are shown once, and kept as a hash and a SCRAM verifier.

The file is a user's own (mode 0600), is replaced as a whole, and is read again when it changes: a
token that another process adds or revokes counts at the next request. A lock beside it keeps two
processes that write from undoing each other's work.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import os
import re
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

from queryard.core.errors import QueryardError, unknown_name
from queryard.history.places import private_folder
from queryard.live.request import checked_tenant

from .principal import Principal, Role

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows: two processes that write at once are not kept apart
    fcntl = None

PREFIX = "qy_"
SECRET_BYTES = 32
SALT_BYTES = 16
# The usual count of PostgreSQL. The secret is random, so a higher one would protect nothing more.
ITERATIONS = 4096
VERSION = 1
# PostgreSQL cuts names of users after 63 bytes.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,62}")


class TokenError(QueryardError):
    """A file of tokens that cannot be used, or a token that cannot be made."""


@dataclass(frozen=True, slots=True)
class Verifier:
    """What SCRAM-SHA-256 needs to check a password, without the password."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    @classmethod
    def of(cls, secret: str, salt: bytes | None = None, iterations: int = ITERATIONS) -> Verifier:
        """The verifier of a secret, after RFC 5802.

        >>> made = Verifier.of("pencil", base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))
        >>> base64.b64encode(made.stored_key)
        b'WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY='
        """
        salt = secrets.token_bytes(SALT_BYTES) if salt is None else salt
        salted = hashlib.pbkdf2_hmac("sha256", secret.encode(), salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        server_key = hmac.digest(salted, b"Server Key", "sha256")
        return cls(salt, iterations, hashlib.sha256(client_key).digest(), server_key)


@dataclass(frozen=True, slots=True)
class TokenInfo:
    """A token as it is listed; its secret is not kept anywhere.

    `id` is another one when a token of the same name is made again.
    """

    name: str
    tenant: str
    role: Role
    id: str
    created_at: datetime
    expires_at: datetime | None = None

    @property
    def expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= datetime.now(UTC)

    @property
    def principal(self) -> Principal:
        return Principal(self.name, self.tenant, self.role, self.id)


@dataclass(frozen=True, slots=True)
class _Token:
    info: TokenInfo
    digest: bytes
    verifier: Verifier


class TokenStore:
    """The tokens in a file; calls come from any thread. A file that is not there has none."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._state: tuple[int, ...] | None = None
        self._by_name: Mapping[str, _Token] = {}
        self._by_digest: Mapping[bytes, _Token] = {}

    # --- asking ----------------------------------------------------------------------------------

    def check(self, secret: str) -> Principal | None:
        """The client that a secret belongs to; None for one that is unknown or has expired."""
        self._look()
        digest = _digest(secret)
        # How long the lookup takes depends on a hash that a caller cannot choose byte by byte.
        token = self._by_digest.get(digest)
        if token is None or not hmac.compare_digest(token.digest, digest) or token.info.expired:
            return None
        return token.info.principal

    def principal(self, name: str) -> Principal | None:
        """The client of a token that is still valid."""
        token = self._valid(name)
        return None if token is None else token.info.principal

    def holds(self, principal: Principal) -> bool:
        """Whether the token of a client is still valid, and still the same."""
        return self.principal(principal.name) == principal

    def info(self, name: str) -> TokenInfo | None:
        """A token that is still valid, by its name."""
        token = self._valid(name)
        return None if token is None else token.info

    def verifier(self, name: str) -> Verifier | None:
        """What checks a password for a token that is still valid."""
        token = self._valid(name)
        return None if token is None else token.verifier

    def _valid(self, name: str) -> _Token | None:
        self._look()
        token = self._by_name.get(name)
        return None if token is None or token.info.expired else token

    def list(self) -> list[TokenInfo]:
        """All tokens by name, expired ones included."""
        self._look()
        return [token.info for _, token in sorted(self._by_name.items())]

    # --- changing --------------------------------------------------------------------------------

    def add(
        self,
        name: str,
        tenant: str = "default",
        role: Role = "user",
        expires: datetime | timedelta | None = None,
    ) -> str:
        """Make a token, and give its secret, which is shown here only."""
        if not _NAME.fullmatch(name):
            raise TokenError(
                f"token: a name has up to 63 letters, digits and _ . @ + -, got {name!r}"
            )
        checked_tenant(tenant)
        if role not in get_args(Role):
            raise TokenError(unknown_name("role", role, get_args(Role)))
        now = datetime.now(UTC)
        if isinstance(expires, timedelta):
            expires = now + expires
        if expires is not None:
            expires = expires.astimezone(UTC)
            if expires <= now:
                raise TokenError(f"expires: {expires:%Y-%m-%d %H:%M} has passed; give a later time")
        secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
        info = TokenInfo(name, tenant, role, secrets.token_hex(6), now, expires)
        token = _Token(info, _digest(secret), Verifier.of(secret))
        with self._changing() as tokens:
            if name in tokens:
                raise TokenError(
                    f"token: {name!r} exists already; choose another name, or revoke it first"
                )
            tokens[name] = token
        return secret

    def revoke(self, name: str) -> None:
        """Forget a token; the next request with it is refused."""
        with self._changing() as tokens:
            if name not in tokens:
                raise TokenError(unknown_name("token", name, tokens))
            del tokens[name]

    def reload(self) -> None:
        """Read the file again, though it looks unchanged."""
        with self._lock:
            self._state = None
        self._look()

    # --- the file --------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _changing(self) -> Iterator[dict[str, _Token]]:
        """The tokens as they are now, to be changed; they are written at the end."""
        try:
            private_folder(self.path.parent)
            handle = os.open(
                self.path.with_name(f"{self.path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600
            )
        except OSError as error:
            raise TokenError(
                f"{self.path}: tokens cannot be kept here ({error.strerror or error})"
            ) from error
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX)
            self.reload()
            tokens = dict(self._by_name)
            yield tokens
            self._write(tokens)
            self.reload()
        finally:
            os.close(handle)

    def _write(self, tokens: Mapping[str, _Token]) -> None:
        data = {"version": VERSION, "tokens": [_encode(token) for token in tokens.values()]}
        new = self.path.with_name(f"{self.path.name}.{os.getpid()}-{time.monotonic_ns()}")
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(data, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, self.path)
        except BaseException:
            new.unlink(missing_ok=True)
            raise

    def _look(self) -> None:
        """Read the file if it is another one than before: every write makes a new one."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            self._by_name, self._by_digest, self._state = {}, {}, None
            return
        state = (found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode)
        if state == self._state:
            return
        with self._lock:
            if os.name == "posix" and found.st_mode & 0o077:
                raise TokenError(
                    f"{self.path}: others than its owner may read or change it (mode "
                    f"{found.st_mode & 0o777:03o}); run chmod 600 {self.path}"
                )
            tokens = _read(self.path)
            self._by_name = {token.info.name: token for token in tokens}
            self._by_digest = {token.digest: token for token in tokens}
            self._state = state


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


def _read(path: Path) -> list[_Token]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["version"] != VERSION:
            raise TokenError(
                f"{path}: is of version {data['version']}, and this Queryard reads {VERSION}"
            )
        return [_decode(token) for token in data["tokens"]]
    except OSError as error:
        raise TokenError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (ValueError, KeyError, TypeError) as error:
        raise TokenError(
            f"{path}: is no file of tokens ({error!r}); move it away, and make tokens anew"
        ) from error


def _encode(token: _Token) -> dict[str, Any]:
    info = asdict(token.info)
    for key in ("created_at", "expires_at"):
        info[key] = None if info[key] is None else info[key].isoformat()
    verifier = {
        key: value if isinstance(value, int) else base64.b64encode(value).decode()
        for key, value in asdict(token.verifier).items()
    }
    return {**info, "sha256": token.digest.hex(), "scram": verifier}


def _decode(data: Mapping[str, Any]) -> _Token:
    expires = data["expires_at"]
    role = data["role"]
    if role not in get_args(Role):
        raise ValueError(unknown_name("role", role, get_args(Role)))
    info = TokenInfo(
        str(data["name"]),
        checked_tenant(data["tenant"]),
        role,
        str(data["id"]),
        datetime.fromisoformat(data["created_at"]),
        None if expires is None else datetime.fromisoformat(expires),
    )
    scram = data["scram"]
    salt, stored, server = (
        base64.b64decode(scram[key]) for key in ("salt", "stored_key", "server_key")
    )
    verifier = Verifier(salt, int(scram["iterations"]), stored, server)
    return _Token(info, bytes.fromhex(data["sha256"]), verifier)
