"""The first packet of a connection: what the client asks for before it says anything else."""

from __future__ import annotations

import hmac
import struct
from dataclasses import dataclass, field

from .errors import BadFrame, FatalError

_CANCEL, _TLS, _GSS = 80877102, 80877103, 80877104
# Protocol 3.2 differs from 3.0 by longer keys of cancel requests.
NEWEST_MINOR = 2
_MOST_KEY_BYTES = 256


@dataclass(frozen=True, slots=True)
class EncryptionRequest:
    """The client would speak in TLS, or in GSSAPI's way; one byte answers it."""

    method: str  # "TLS" or "GSS"


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """The client wants the running query of another connection stopped."""

    process: int
    key: bytes


@dataclass(frozen=True, slots=True)
class Startup:
    """A session is asked for: the version of the protocol, and settings by name."""

    minor: int
    parameters: dict[str, str] = field(default_factory=dict)
    # Options of the protocol that this server does not know, as the client spelt them.
    unknown_options: tuple[str, ...] = ()

    @property
    def needs_negotiation(self) -> bool:
        return self.minor > NEWEST_MINOR or bool(self.unknown_options)

    @property
    def agreed_minor(self) -> int:
        """3.1 was never released: it is spoken as 3.0."""
        return NEWEST_MINOR if self.minor >= NEWEST_MINOR else 0


def read_startup(body: bytes) -> Startup | CancelRequest | EncryptionRequest:
    """What a start-up packet asks for.

    >>> read_startup(struct.pack("!i", 196608) + b"user\\0ann\\0\\0")
    Startup(minor=0, parameters={'user': 'ann'}, unknown_options=())
    """
    (code,) = struct.unpack_from("!i", body)
    if code in (_TLS, _GSS):
        return EncryptionRequest("TLS" if code == _TLS else "GSS")
    if code == _CANCEL:
        if not 8 < len(body) <= 8 + _MOST_KEY_BYTES:
            raise BadFrame("invalid length of cancel request packet")
        return CancelRequest(struct.unpack_from("!I", body, 4)[0], body[8:])
    major, minor = code >> 16, code & 0xFFFF
    if major != 3:
        raise FatalError(
            "0A000",
            f"unsupported frontend protocol {major}.{minor}: "
            f"server supports 3.0 to 3.{NEWEST_MINOR}",
        )
    return _session(minor, body[4:])


def _session(minor: int, text: bytes) -> Startup:
    if not text.endswith(b"\0"):
        raise BadFrame("invalid startup packet layout: expected terminator as last byte")
    parts = text[:-1].split(b"\0")
    # The pairs end with an empty name; each value ends with a byte of its own.
    if parts[-1] != b"" or len(parts) % 2 == 0:
        raise BadFrame("invalid startup packet layout: a name without a value")
    try:
        words = [part.decode() for part in parts[:-1]]
    except UnicodeDecodeError:
        raise FatalError("22021", "a start-up setting is no valid UTF-8") from None
    pairs = dict(zip(words[::2], words[1::2], strict=True))
    if "" in pairs:
        raise BadFrame("invalid startup packet layout: a value without a name")
    unknown = tuple(name for name in pairs if name.startswith("_pq_."))
    return Startup(minor, {k: v for k, v in pairs.items() if k not in unknown}, unknown)


def same_key(one: bytes, other: bytes) -> bool:
    """Whether two keys of cancel requests are equal, in a time that tells nothing of them."""
    return hmac.compare_digest(one, other)
