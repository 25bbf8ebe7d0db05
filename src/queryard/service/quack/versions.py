"""The versions of the protocol, each with its codec, and which of them is spoken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from .envelope import Head
from .errors import QuackError
from .requests import Hello, Request
from .v1.codec import CodecV1
from .wire import Reader


class Columns(Protocol):
    """The columns of one result, in one version."""

    def chunks(self, batch: Any) -> Iterable[Sequence[Any]]: ...
    def prepared(self, chunks: Sequence[Any], result: int, *, more: bool) -> list[Any]: ...


class Codec(Protocol):
    """One version: from bytes to requests, and from rows to bytes."""

    version: int
    chunk_rows: int

    def welcome(self, connection: str, server: str, platform: str) -> bytes: ...
    def read(self, head: Head, reader: Reader) -> Request: ...
    def columns(self, names: Sequence[str], types: Sequence[str], schema: Any) -> Columns: ...
    def knows(self, type_name: str) -> bool: ...
    def fetched(self, chunks: Sequence[Any], number: int | None) -> list[Any]: ...


CODECS: Mapping[int, Codec] = {1: CodecV1()}
NEWEST = max(CODECS)
_DUCKDBS = {1: "1.5"}


def agreed(hello: Hello) -> Codec:
    """The newest version that client and server know.

    >>> agreed(Hello("", "v2.0.0", "", 3, 3))
    Traceback (most recent call last):
    queryard.service.quack.errors.QuackError: the client speaks version 3 of Quack (DuckDB \
v2.0.0), and this server knows version 1 (DuckDB 1.5); connect with DuckDB 1.5, or over \
PostgreSQL's protocol or HTTP
    """
    for version in sorted(CODECS, reverse=True):
        if hello.least <= version <= hello.most:
            return CODECS[version]
    asked = str(hello.least) if hello.least == hello.most else f"{hello.least} to {hello.most}"
    own = " and ".join(f"version {version} (DuckDB {_DUCKDBS[version]})" for version in CODECS)
    client = f" (DuckDB {hello.duckdb})" if hello.duckdb else ""
    raise QuackError(
        f"the client speaks version {asked} of Quack{client}, and this server knows {own}; "
        "connect with DuckDB 1.5, or over PostgreSQL's protocol or HTTP"
    )
