"""Messages as a real client and a real server of DuckDB 1.5.5 have sent them, and wrong ones."""

from __future__ import annotations

import datetime as dt
import decimal
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.service.quack.envelope import SUCCESS, error, read_head, read_hello
from queryard.service.quack.errors import Malformed, QuackError
from queryard.service.quack.requests import Append, Disconnect, Fetch, Hello, Prepare
from queryard.service.quack.v1.chunks import ChunkEncoder
from queryard.service.quack.v1.codec import CodecV1
from queryard.service.quack.v1.messages import fetched, prepared, welcome
from queryard.service.quack.versions import NEWEST, agreed
from queryard.service.quack.wire import Reader, huge, signed, unsigned
from service.fuzzing import fuzz
from tests.service.quack.plain_client import hello, prepare, read_reply

CAPTURES = Path(__file__).with_name("captures")


def captured(name: str) -> bytes:
    return (CAPTURES / name).read_bytes()


def request(name: str):
    reader = Reader(captured(name))
    return CodecV1().read(read_head(reader), reader)


# --- requests ------------------------------------------------------------------------------------


def test_the_hello_of_a_client():
    reader = Reader(captured("connect.req"))
    assert read_head(reader).connection == ""
    assert read_hello(reader, NEWEST) == Hello("secret-token", "v1.5.5", "linux_amd64", 1, 1)


def test_requests_of_a_client():
    assert request("prepare.req") == Prepare("SELECT 42 AS answer, 'hi' AS s")
    assert request("disconnect.req") == Disconnect()
    assert isinstance(request("fetch.req"), Fetch)
    reader = Reader(captured("prepare.req"))
    assert read_head(reader).connection == "8301DB45E465DF67E5E7D85F48942E75"


def test_rows_that_a_client_inserts():
    found = request("append_lists.req")
    assert isinstance(found, Append)
    assert (found.schema, found.table) == ("main", "ins")
    assert found.rows.to_pylist() == [
        {"c0": 1, "c1": "a", "c2": [1, 2]},
        {"c0": 2, "c1": None, "c2": None},
    ]
    many = request("append_many.req").rows
    assert many.num_rows == 904
    assert many.slice(903).to_pylist() == [{"c0": 4999, "c1": "x4999", "c2": [4999]}]
    assert request("append_sequence.req").rows.column(0).to_pylist() == list(range(10))
    decimals = request("append_decimal.req").rows
    assert decimals.to_pylist() == [{"c0": 100, "c1": "t", "c2": decimal.Decimal("1.00")}]


@pytest.mark.parametrize(
    "more", [b"", b"\x06\x00\x02id\x07\x00\x3c", b"\x06\x00\x02id\x08\x00\x07"]
)
def test_a_client_of_a_later_version_is_told_which_one_is_known(more):
    """Whatever else it says: a version that is to come may say more."""
    reader = Reader(hello("qy_x", 3, 3, more))
    read_head(reader)
    asked = read_hello(reader, NEWEST)
    with pytest.raises(QuackError, match=r"version 3 of Quack .* knows version 1 \(DuckDB 1.5\)"):
        agreed(asked)
    assert agreed(Hello("", "", "", 1, 3)).version == 1


# --- replies -------------------------------------------------------------------------------------


def test_replies_are_those_of_the_real_server():
    connection = "8301DB45E465DF67E5E7D85F48942E75"
    assert welcome(connection, "v1.5.5", "linux_amd64") == captured("connect.res")
    assert captured("disconnect.res") == SUCCESS
    assert error("Authentication failed") == captured("refused.res")
    assert b"".join(fetched([], None)) == captured("fetched_none.res")


@pytest.mark.parametrize(
    "name",
    [
        *("prepare", "integers", "decimals", "moments", "uuids", "enums", "geometries"),
        *("arrays", "structs", "aliases"),
    ],
)
def test_rows_are_written_as_the_real_server_writes_them(name):
    """Byte for byte: types, names and values."""
    data = captured(f"{name}.res")
    reply = read_reply(data)
    encoder = ChunkEncoder(reply.types)
    chunks = [chunk for batch in reply.batches for chunk in encoder.chunks(batch)]
    made = prepared(reply.types, reply.names, chunks, reply.result, more=reply.more)
    assert b"".join(made) == data


@pytest.mark.parametrize("name", ["texts", "lists", "maps", "unions"])
def test_rows_with_null_are_those_of_the_real_server(name):
    """What stands in the place of NULL means nothing, and is another here."""
    reply = read_reply(captured(f"{name}.res"))
    encoder = ChunkEncoder(reply.types)
    chunks = [chunk for batch in reply.batches for chunk in encoder.chunks(batch)]
    made = prepared(reply.types, reply.names, chunks, reply.result, more=False)
    again = read_reply(b"".join(made))
    assert (again.types, again.rows) == (reply.types, reply.rows)


def test_values_of_the_real_server():
    moments = read_reply(captured("moments.res")).batches[0]
    assert moments.column(0).to_pylist() == [dt.date(2024, 2, 29)]
    assert moments.column(2).to_pylist() == [dt.datetime(2024, 1, 2, 3, 4, 5, 678901)]
    assert read_reply(captured("integers.res")).rows[0][:4] == (1, -2, 3, -4)
    assert read_reply(captured("texts.res")).rows[:2] == [("abc", b"x", b"\x05\xfd"), (None,) * 3]
    assert read_reply(captured("lists.res")).rows == [([1, 2, 3],), (None,), ([],), ([None, 5],)]
    assert read_reply(captured("maps.res")).rows == [([("a", 1), ("b", None)],)]
    assert read_reply(captured("enums.res")).rows == [("b",)]
    assert read_reply(captured("unions.res")).rows == [("x",), (5,)]


def test_a_variant_is_written_as_the_real_server_writes_it():
    """From Parquet's form, in which variants come, to DuckDB's."""
    duckdb = pytest.importorskip("duckdb")
    words = (
        "true::VARIANT, 1.5::DECIMAL(9,2)::VARIANT, 'x'::VARIANT, NULL::VARIANT, "
        "(DATE '2020-01-02')::VARIANT, 2.5::DOUBLE::VARIANT, "
        "'00000000-0000-0000-0000-000000000001'::UUID::VARIANT, 7::BIGINT::VARIANT, "
        "'ab'::BLOB::VARIANT, 1.25::DECIMAL(18,2)::VARIANT, "
        "(TIMESTAMP '2020-01-02 03:04:05')::VARIANT"
    )
    with duckdb.connect() as connection:
        table = connection.sql(f"SELECT {{'a': 1, 'b': [{words}]}}::VARIANT v").to_arrow_table()
    columns = CodecV1().columns(["v"], ["VARIANT"], table.schema)
    chunks = [chunk for batch in table.to_batches() for chunk in columns.chunks(batch)]
    data = captured("variants.res")
    reader = Reader(data[data.rindex(b"\x05\x00") + 2 :])
    made = b"".join(columns.prepared(chunks, reader.huge(), more=False))
    # The places of NULL among the keys are another matter.
    assert made[: made.index(b"children")] == data[: data.index(b"children")]
    assert len(made) == len(data)
    assert made[made.rindex(b"\x0b\x02") :] == data[data.rindex(b"\x0b\x02") :]


# --- numbers -------------------------------------------------------------------------------------


@given(st.integers(0, 2**64 - 1), st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**128 - 1))
def test_numbers_are_read_as_they_were_written(plain, with_sign, large):
    reader = Reader(unsigned(plain) + signed(with_sign) + huge(large))
    assert (reader.unsigned(), reader.signed(), reader.huge()) == (plain, with_sign, large)
    reader.done()


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 11, b"\xff" * 9 + b"\x7f"])
def test_numbers_that_do_not_end_or_are_too_large(data):
    with pytest.raises(Malformed):
        Reader(data).unsigned()


# --- a fuzzer ------------------------------------------------------------------------------------

REQUESTS = sorted(path.name for path in CAPTURES.glob("*.req") if path.stat().st_size < 2000)


def malformed(chance: random.Random, samples: list[bytes]) -> bytes:
    """Bytes like those of a client, with some of them wrong."""
    data = bytearray(chance.choice(samples))
    kind = chance.randrange(6)
    if kind == 0:
        return chance.randbytes(chance.randrange(60))
    for _ in range(chance.randrange(1, 4)):
        data[chance.randrange(len(data))] = chance.choice([chance.randrange(256), 0, 1, 127, 255])
    if kind == 1:
        del data[chance.randrange(len(data)) :]
    elif kind == 2:
        at = chance.randrange(len(data))
        data[at:at] = chance.randbytes(chance.randrange(9))
    elif kind == 3:
        at = chance.randrange(len(data))
        data[at:at] = b"\xff" * 9 + b"\x01"
    elif kind == 4:
        start, end = sorted(chance.randrange(len(data)) for _ in range(2))
        data[start:start] = data[start:end]
    return bytes(data)


def understand(data: bytes) -> object:
    """What a server makes of a message."""
    reader = Reader(data)
    head = read_head(reader)
    return read_hello(reader, NEWEST) if head.kind == 1 else CodecV1().read(head, reader)


def samples() -> list[bytes]:
    """Requests, and the rows of replies as if a client had sent them."""
    found = [captured(name) for name in REQUESTS]
    append = captured("append_sequence.req")
    start = append.index(b"\x2c\x01")
    for name in ("lists", "maps", "unions", "arrays", "structs", "enums", "texts", "decimals"):
        data = captured(f"{name}.res")
        chunk = data[data.index(b"\x2c\x01") : data.rindex(b"\x05\x00")]
        found.append(append[:start] + chunk + b"\xff\xff")
    return found


def test_the_fuzzer_begins_with_messages_that_are_right():
    for data in samples():
        understand(data)


@pytest.mark.parametrize("number", [10_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_malformed_messages_are_errors_and_nothing_else(number):
    """Errors are those of clients, nothing takes long, and nothing is kept of the messages."""
    chance = random.Random(number)
    right = samples()
    for data in right:
        understand(data)  # what is imported once is not the time of a message
    before = pa.total_allocated_bytes()
    counts: Counter[str] = Counter()

    def answer(data: bytes) -> None:
        try:
            message = understand(data)
        except QuackError as problem:
            error(str(problem))
            counts["refused"] += 1
            return
        if isinstance(message, Append):
            message.rows.validate(full=True)
        counts["understood"] += 1

    found = fuzz((malformed(chance, right) for _ in range(number)), number, answer)
    print(found, dict(counts))
    found.check_codec()
    assert min(counts["understood"], counts["refused"]) > number / 50
    assert pa.total_allocated_bytes() - before < 1 << 20


def test_a_few_bytes_do_not_make_many_rows():
    data = bytearray(captured("append_sequence.req"))
    at = data.index(b"\x64\x00\x0a")
    data[at : at + 3] = b"\x64\x00" + unsigned(2**40)
    with pytest.raises(Malformed, match="2048 are the most"):
        understand(bytes(data))


def test_a_message_that_is_cut_off_anywhere_is_malformed():
    for data in samples():
        for size in range(len(data)):
            with pytest.raises(QuackError):
                understand(data[:size])


def test_what_is_asked_is_what_is_read():
    reader = Reader(prepare("ABC", "SELECT 'ü'"))
    assert CodecV1().read(read_head(reader), reader) == Prepare("SELECT 'ü'")
