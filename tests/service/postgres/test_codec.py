"""Messages from bytes: those that real clients have sent, and those that no client should send."""

from __future__ import annotations

import json
import random
import struct
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.service.postgres import messages, replies
from queryard.service.postgres.errors import BadFrame, BadMessage, FatalError, PostgresError
from queryard.service.postgres.frames import Frame, FrameReader
from queryard.service.postgres.startup import (
    CancelRequest,
    EncryptionRequest,
    Startup,
    read_startup,
)
from service.fuzzing import fuzz

CLIENTS = ("adbc", "asyncpg", "connectorx", "psql", "psycopg")
HERE = Path(__file__).parent / "fixtures"
LIMIT = 1_000_000


def recorded(client: str) -> list[bytes]:
    return [bytes.fromhex(each) for each in json.loads((HERE / f"{client}.json").read_text())]


def read(data: bytes, cuts: list[int]) -> list[object]:
    """All messages of a connection whose bytes come in pieces."""
    reader, found, starting = FrameReader(LIMIT), [], True
    edges = [0, *sorted(cuts), len(data)]
    for start, end in pairwise(edges):
        reader.feed(data[start:end])
        while (frame := reader.next()) is not None:
            if starting:
                found.append(read_startup(frame.body))
                if isinstance(found[-1], Startup):
                    reader.started()
                    starting = False
            else:
                found.append(messages.read_message(frame))
    assert not reader.partial
    return found


@pytest.mark.parametrize("client", CLIENTS)
def test_what_clients_send_is_understood(client):
    for data in recorded(client):
        found = read(data, [])
        kinds = [type(message) for message in found]
        assert Startup in kinds
        assert kinds[-1] is messages.Terminate
        started = found[kinds.index(Startup)]
        assert started.parameters["user"] == "ann"


@pytest.mark.parametrize("client", ["psycopg", "asyncpg"])
def test_pieces_do_not_matter(client):
    for number, data in enumerate(recorded(client)):
        whole = read(data, [])
        assert read(data, list(range(1, len(data)))) == whole
        for seed in range(20):
            chance = random.Random(f"{number} {seed}")
            cuts = chance.sample(range(len(data)), min(len(data), chance.randrange(40)))
            assert read(data, cuts) == whole


def test_a_series_of_psycopg():
    kinds = [type(message).__name__ for message in read(recorded("psycopg")[0], [])]
    assert kinds[-6:].count("Terminate") == 1
    for kind in ("EncryptionRequest", "Secret", "Query", "Parse", "Bind", "Execute", "Sync"):
        assert kind in kinds


# --- limits --------------------------------------------------------------------------------------


def started() -> FrameReader:
    reader = FrameReader(LIMIT)
    reader.started()
    return reader


def test_a_message_that_is_too_long_is_refused_before_it_comes():
    reader = started()
    reader.feed(b"Q" + struct.pack("!i", LIMIT + 1))
    with pytest.raises(BadFrame, match="longer than the limit"):
        reader.next()
    reader = started()
    reader.feed(b"D" + struct.pack("!i", 40_000))  # no statement is in it
    with pytest.raises(BadFrame, match="longer"):
        reader.next()
    reader = FrameReader(LIMIT)
    reader.feed(struct.pack("!i", 10_001))
    with pytest.raises(BadFrame, match="startup"):
        reader.next()


@pytest.mark.parametrize(
    "data", [b"z\0\0\0\4", b"Q\0\0\0\3", b"Q\xff\xff\xff\xff", b"\0\0\0\x08\0\0\0\0"]
)
def test_what_is_no_message_is_refused(data):
    reader = started()
    reader.feed(data)
    with pytest.raises(BadFrame):
        reader.next()


@pytest.mark.parametrize(
    ("letter", "body"),
    [
        ("Q", b"SELECT 1"),
        ("Q", b"SELECT 1\0x"),
        ("Q", b"\xff\xfe\0"),
        ("P", b"\0SELECT 1\0\0\1"),
        ("B", b"\0\0\0\1\0\2\0\0\0\0"),
        ("B", b"\0\0\0\0\0\1\0\0\0\5ab"),
        ("B", b"\0\0\0\2\0\0\0\0\0\0\0\0"),
        ("D", b"Xname\0"),
        ("E", b"\0\0\0"),
        ("S", b"x"),
        ("C", b""),
    ],
)
def test_a_body_that_is_wrong_is_an_error_of_its_message_only(letter, body):
    with pytest.raises(BadMessage):
        messages.read_message(Frame(ord(letter), body))


# --- start-up ------------------------------------------------------------------------------------


def test_versions_are_negotiated():
    def asked(minor: int, more: bytes = b"") -> Startup:
        found = read_startup(struct.pack("!i", 3 << 16 | minor) + b"user\0ann\0" + more + b"\0")
        assert isinstance(found, Startup)
        return found

    assert not asked(0).needs_negotiation
    assert (asked(2).needs_negotiation, asked(2).agreed_minor) == (False, 2)
    newer = asked(9999, b"_pq_.grease\0x\0")
    assert (newer.needs_negotiation, newer.agreed_minor) == (True, 2)
    assert newer.unknown_options == ("_pq_.grease",)
    assert newer.parameters == {"user": "ann"}
    told = replies.negotiate(newer.agreed_minor, newer.unknown_options)
    assert told == b"v\0\0\0\x18\0\3\0\2\0\0\0\1_pq_.grease\0"
    with pytest.raises(FatalError, match=r"protocol 2\.0"):
        read_startup(struct.pack("!i", 2 << 16) + b"\0")


def test_requests_without_a_session():
    assert read_startup(struct.pack("!i", 80877103)) == EncryptionRequest("TLS")
    assert read_startup(struct.pack("!i", 80877104)) == EncryptionRequest("GSS")
    key = b"k" * 32
    assert read_startup(struct.pack("!iI", 80877102, 7) + key) == CancelRequest(7, key)
    with pytest.raises(BadFrame):
        read_startup(struct.pack("!iI", 80877102, 7))


@pytest.mark.parametrize("rest", [b"", b"user\0ann", b"user\0", b"user\0ann\0", b"\0ann\0\0"])
def test_a_start_up_packet_that_is_cut_off(rest):
    with pytest.raises(PostgresError):
        read_startup(struct.pack("!i", 3 << 16) + rest)


# --- a fuzzer ------------------------------------------------------------------------------------


def malformed(chance: random.Random, samples: list[bytes]) -> bytes:
    """Bytes like those of a client, with some of them wrong."""
    kind = chance.randrange(5)
    if kind == 0:
        return chance.randbytes(chance.randrange(40))
    if kind == 1:
        body = chance.randbytes(chance.randrange(30))
        length = len(body) + 4 + chance.choice([0, 0, 0, 1, -1, -5, 1 << 28, -(1 << 31) + 40])
        length = max(-(1 << 31), min(length, (1 << 31) - 1))
        return (
            chance.choice(b"QPBDECSHXFpdcf").to_bytes(1, "big") + struct.pack("!i", length) + body
        )
    data = bytearray(chance.choice(samples))
    for _ in range(chance.randrange(1, 6)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    if kind == 3:
        del data[chance.randrange(len(data)) :]
    if kind == 4:
        at = chance.randrange(len(data))
        data[at:at] = chance.randbytes(chance.randrange(9))
    return bytes(data)


def frames_of(data: bytes) -> list[bytes]:
    """The messages of a connection, each with its head."""
    reader, found, starting = FrameReader(LIMIT), [], True
    reader.feed(data)
    while (frame := reader.next()) is not None:
        head = b"" if starting else bytes([frame.kind])
        found.append(head + struct.pack("!i", len(frame.body) + 4) + frame.body)
        if starting and isinstance(read_startup(frame.body), Startup):
            reader.started()
            starting = False
    return [each for each in found if len(each) < 500]


@pytest.mark.parametrize("number", [20_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_malformed_messages_are_errors_and_nothing_else(number):
    """Errors are those of clients, nothing takes long, and nothing is kept of the messages."""
    samples = [
        frame for client in CLIENTS for data in recorded(client) for frame in frames_of(data)
    ]
    chance = random.Random(number)
    counts: Counter[str] = Counter()
    codes = set()

    def answer(data: bytes) -> None:
        reader = FrameReader(LIMIT)
        if chance.random() < 0.8:
            reader.started()
        try:
            reader.feed(data)
            while (frame := reader.next()) is not None:
                read_startup(frame.body) if frame.kind == 0 else messages.read_message(frame)
                counts["understood"] += 1
        except PostgresError as error:
            codes.add(error.sqlstate)
            replies.error(error)
            counts["refused"] += 1
        assert reader.waiting_bytes <= len(data)

    found = fuzz((malformed(chance, samples) for _ in range(number)), number, answer)
    print(found, dict(counts))
    found.check_codec()
    assert min(counts["understood"], counts["refused"]) > number / 20
    assert codes <= {"08P01", "0A000", "22021"}


@given(st.binary(max_size=60), st.sampled_from("QPBDECSHXFpdcf"))
def test_any_body_is_a_message_or_an_error(body, letter):
    with suppress(BadMessage):
        messages.read_message(Frame(ord(letter), body))
