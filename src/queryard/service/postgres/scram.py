"""SCRAM-SHA-256 (RFC 5802, 7677), the server's side; no I/O.

libpq leaves the user's name in SCRAM's own messages empty: the name is that of the start-up packet.
A user that does not exist has a verifier as well, made of the name and a secret of this process:
the exchange looks the same and fails at its end, so names cannot be probed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from typing import Protocol

from .errors import FatalError

MECHANISM = "SCRAM-SHA-256"
_ITERATIONS = 4096
_SALT_BYTES = 16
_DOUBT = secrets.token_bytes(32)


class Verifier(Protocol):
    """What is kept instead of a password."""

    @property
    def salt(self) -> bytes: ...
    @property
    def iterations(self) -> int: ...
    @property
    def stored_key(self) -> bytes: ...
    @property
    def server_key(self) -> bytes: ...


class _Mock:
    """The verifier of a user that does not exist: always the same one, and no password fits."""

    def __init__(self, user: str, iterations: int) -> None:
        self.salt = _hmac(_DOUBT, b"salt" + user.encode())[:_SALT_BYTES]
        self.iterations = iterations
        self.stored_key = secrets.token_bytes(32)
        self.server_key = secrets.token_bytes(32)


def mock_verifier(user: str, iterations: int = _ITERATIONS) -> Verifier:
    """A verifier for a user that does not exist.

    >>> mock_verifier("eve").salt == mock_verifier("eve").salt != mock_verifier("ann").salt
    True
    """
    return _Mock(user, iterations)


class Exchange:
    """One login: the client's first words, a challenge, the proof, the server's own proof."""

    def __init__(self, verifier: Verifier, nonce: str = "") -> None:
        self._verifier = verifier
        self._nonce = nonce or secrets.token_urlsafe(18)
        self._heading = ""
        self._spoken = ""

    def challenge(self, words: str) -> str:
        """Answer the client's first words."""
        # A binding flag, a name to act as, and then the message that both sides will sign.
        parts = words.split(",", 2)
        if len(parts) != 3:
            raise _malformed("it has no heading")
        flag, acting, bare = parts
        if flag.startswith("p="):
            raise FatalError("28000", "SCRAM: channel binding was not offered")
        if flag not in ("n", "y"):
            raise _malformed(f"unexpected channel-binding flag {flag[:1]!r}")
        if acting:
            raise FatalError("0A000", "SCRAM: to log in as another user is not possible")
        attributes = bare.split(",")
        if attributes[0][:2] == "m=":
            raise FatalError("0A000", "SCRAM: the client asks for an unknown extension")
        if len(attributes) < 2 or attributes[0][:2] != "n=" or attributes[1][:2] != "r=":
            raise _malformed("a name and a nonce were expected")
        client = attributes[1][2:]
        if not client or not all("!" <= sign <= "~" for sign in client):
            raise _malformed("the nonce is not printable")
        self._heading = f"{flag},,"
        self._nonce = client + self._nonce
        salt = base64.b64encode(self._verifier.salt).decode()
        answer = f"r={self._nonce},s={salt},i={self._verifier.iterations}"
        self._spoken = f"{bare},{answer}"
        return answer

    def verify(self, words: str) -> str | None:
        """Answer the client's proof with the server's; None if the proof is wrong."""
        unsigned, _, proof_text = words.rpartition(",p=")
        attributes = unsigned.split(",")
        if len(attributes) < 2 or attributes[0][:2] != "c=" or attributes[1][:2] != "r=":
            raise _malformed("a binding, a nonce and a proof were expected")
        if _decoded(attributes[0][2:]) != self._heading.encode():
            raise _malformed("the heading is not that of the first message")
        if not hmac.compare_digest(attributes[1][2:].encode(), self._nonce.encode()):
            raise _malformed("the nonce does not match")
        proof = _decoded(proof_text)
        if len(proof) != 32:
            raise _malformed("the proof does not have 32 bytes")
        signed = f"{self._spoken},{unsigned}".encode()
        mask = _hmac(self._verifier.stored_key, signed)
        key = bytes(a ^ b for a, b in zip(proof, mask, strict=True))
        if not hmac.compare_digest(hashlib.sha256(key).digest(), self._verifier.stored_key):
            return None
        signature = _hmac(self._verifier.server_key, signed)
        return f"v={base64.b64encode(signature).decode()}"


def first_words(body: bytes) -> str:
    """The client's first words: the method's name, a length, and the words."""
    name, end, rest = body.partition(b"\0")
    if not end or len(rest) < 4:
        raise _malformed("the first message has no end")
    if name != MECHANISM.encode():
        raise FatalError("28000", f"the client chose a method that was not offered: {name!r}")
    length = int.from_bytes(rest[:4], "big", signed=True)
    if length != len(rest) - 4:
        raise _malformed("its length is wrong")
    return text_of(rest[4:])


def text_of(body: bytes) -> str:
    """SCRAM's words as a text."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise _malformed("it is no valid UTF-8") from None


def _hmac(key: bytes, words: bytes) -> bytes:
    return hmac.digest(key, words, "sha256")


def _decoded(words: str) -> bytes:
    try:
        return base64.b64decode(words, validate=True)
    except (binascii.Error, ValueError):
        raise _malformed("a part is no base64") from None


def _malformed(problem: str) -> FatalError:
    return FatalError("08P01", f"malformed SCRAM message: {problem}")
