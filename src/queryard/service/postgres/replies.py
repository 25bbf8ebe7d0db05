"""What the server says, as bytes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from .errors import PostgresError

_HEAD = struct.Struct("!ci")
_FIELD = struct.Struct("!IhIhih")


def message(letter: bytes, body: bytes = b"") -> bytes:
    """A letter, the length, the body.

    >>> message(b"Z", b"I")
    b'Z\\x00\\x00\\x00\\x05I'
    """
    return _HEAD.pack(letter, len(body) + 4) + body


def text(value: str) -> bytes:
    """A text with the byte that ends it; it has none inside."""
    return value.encode("utf-8", "replace").replace(b"\0", b"") + b"\0"


# --- starting ------------------------------------------------------------------------------------

TLS_ACCEPTED, ENCRYPTION_REFUSED = b"S", b"N"
AUTHENTICATED = message(b"R", struct.pack("!i", 0))


def ask_for_scram(mechanisms: Sequence[str]) -> bytes:
    return message(b"R", struct.pack("!i", 10) + b"".join(map(text, mechanisms)) + b"\0")


def scram_goes_on(words: str) -> bytes:
    return message(b"R", struct.pack("!i", 11) + words.encode())


def scram_ends(words: str) -> bytes:
    return message(b"R", struct.pack("!i", 12) + words.encode())


def setting(name: str, value: str) -> bytes:
    return message(b"S", text(name) + text(value))


def cancel_key(process: int, key: bytes) -> bytes:
    return message(b"K", struct.pack("!I", process) + key)


def negotiate(minor: int, unknown: Sequence[str]) -> bytes:
    head = struct.pack("!ii", (3 << 16) | minor, len(unknown))
    return message(b"v", head + b"".join(map(text, unknown)))


# --- the simple and the extended protocol --------------------------------------------------------

PARSED, BOUND, CLOSED = message(b"1"), message(b"2"), message(b"3")
NO_DATA, EMPTY_QUERY, SUSPENDED = message(b"n"), message(b"I"), message(b"s")
COPY_DONE = message(b"c")


def ready(status: bytes) -> bytes:
    """The server waits: I idle, T in a transaction block, E in one that has failed."""
    return message(b"Z", status)


def complete(tag: str) -> bytes:
    return message(b"C", text(tag))


@dataclass(frozen=True, slots=True)
class Field:
    """A column as a client sees it."""

    name: str
    oid: int
    size: int
    modifier: int = -1
    format: int = 0


def row_description(fields: Sequence[Field]) -> bytes:
    parts = [
        text(field.name) + _FIELD.pack(0, 0, field.oid, field.size, field.modifier, field.format)
        for field in fields
    ]
    return message(b"T", struct.pack("!H", len(fields)) + b"".join(parts))


def parameter_description(oids: Sequence[int]) -> bytes:
    return message(b"t", struct.pack(f"!H{len(oids)}I", len(oids), *oids))


def copy_out(columns: int, binary: bool) -> bytes:
    formats = [int(binary)] * columns
    return message(b"H", struct.pack(f"!bH{columns}h", int(binary), columns, *formats))


def copy_in(columns: int, binary: bool) -> bytes:
    formats = [int(binary)] * columns
    return message(b"G", struct.pack(f"!bH{columns}h", int(binary), columns, *formats))


def copy_data(data: bytes) -> bytes:
    return message(b"d", data)


def error(problem: PostgresError) -> bytes:
    severity = "FATAL" if problem.fatal else "ERROR"
    fields = _fields(severity, problem.sqlstate, str(problem))
    for letter, more in ((b"D", problem.detail), (b"H", problem.hint), (b"W", problem.where)):
        if more:
            fields += letter + text(more)
    return message(b"E", fields + b"\0")


def notice(words: str, sqlstate: str = "00000", severity: str = "NOTICE") -> bytes:
    return message(b"N", _fields(severity, sqlstate, words) + b"\0")


def _fields(severity: str, sqlstate: str, words: str) -> bytes:
    kinds = ((b"S", severity), (b"V", severity), (b"C", sqlstate), (b"M", words))
    return b"".join(letter + text(value) for letter, value in kinds)
