"""Settings of a server: addresses, TLS, limits, and what each tenant may reach.

They stand in the table `[service]` of a catalog file, and in `[tenants.NAME]`;
`service.config_file` reads them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from queryard.core.errors import QueryardError
from queryard.engine.sealing.access import Access

HTTP_PORT = 8080
POSTGRES_PORT = 5433
QUACK_PORT = 9494
LogFormat = Literal["text", "json"]


@dataclass(frozen=True, slots=True)
class Address:
    """Where a listener listens; port 0 is any free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: object, what: str, usual_port: int) -> Address:
        """An address from "host:port", "host", or a port alone (on this machine only).

        >>> Address.parse("0.0.0.0:80", "http", HTTP_PORT), Address.parse(9000, "http", HTTP_PORT)
        (Address(host='0.0.0.0', port=80), Address(host='127.0.0.1', port=9000))
        >>> str(Address.parse("[::1]:5433", "postgres", POSTGRES_PORT))
        '[::1]:5433'
        """
        expected = f'{what}: must be an address such as "127.0.0.1:{usual_port}", got {text!r}'
        if isinstance(text, int) and not isinstance(text, bool):
            text = str(text)
        if not isinstance(text, str) or not text.strip():
            raise QueryardError(expected)
        text = text.strip()
        if text.isdigit():
            host, port = "", text
        elif text.startswith("["):
            host, closing, rest = text[1:].partition("]")
            port = rest.removeprefix(":")
            if not closing or (rest and not rest.startswith(":")):
                raise QueryardError(expected)
        elif text.count(":") > 1:
            host, port = text, ""
        else:
            host, _, port = text.partition(":")
        if port and not (port.isdigit() and port.isascii() and int(port) < 65536):
            raise QueryardError(f"{what}: a port is a number from 0 to 65535, got {port!r}")
        return cls(host or "127.0.0.1", int(port) if port else usual_port)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it.

        >>> Address("localhost", 0).is_loopback, Address("0.0.0.0", 0).is_loopback
        (True, False)
        """
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Tls:
    """The files of a certificate (with those above it) and of its key, as PEM."""

    cert: Path
    key: Path


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """What a server gives to one token, and holds altogether. Beyond it there are clear errors."""

    request_bytes: int = 16_000_000
    """The largest request: the text of a statement with its parameters."""
    statements_per_s: float = 200.0
    """Statements per second of a token; as many may come at once after a pause."""
    open_results: int = 100
    """Queries of a token that run, or have rows that are not read yet."""
    connections: int = 500
    """Connections of all clients together."""
    connections_per_token: int = 100
    result_bytes: int = 1_000_000_000
    """Rows held for a token, in memory and on disk, read or not; beyond it its queries pause."""
    prepared: int = 1000
    """Prepared statements of a PostgreSQL connection, and as many portals; their texts together may
    be as large as a request."""
    copy_bytes: int = 4_000_000_000
    """Rows that one COPY … FROM STDIN may bring."""
    result_ttl_s: float = 600.0
    """How long the rows of an ended query are kept for a client that does not read them."""
    idle_s: float = 3600.0
    """How long a connection may do nothing."""
    stall_s: float = 30.0
    """How long a client may stop within a message, or not take what is sent to it."""
    lock_s: float = 120.0
    """How long a statement waits for a database that transactions of others use."""
    transaction_s: float = 60.0
    """How long a transaction that has written may wait for its client."""
    login_s: float = 10.0
    """How long a client may take to show its token."""


@dataclass(frozen=True, slots=True)
class ServiceConfig:
    """All settings of a server that are not those of a session."""

    http: Address | None = Address("127.0.0.1", HTTP_PORT)
    postgres: Address | None = Address("127.0.0.1", POSTGRES_PORT)
    quack: Address | Literal["http"] | None = "http"
    """Where Quack is spoken: at an address of its own, or at that of HTTP under its path."""
    tls: Tls | None = None
    insecure: bool = False
    """Whether addresses that other machines reach are allowed without TLS."""
    grace_s: float = 30.0
    """How long running queries may go on once the server is asked to stop."""
    tokens: Path = Path("tokens.json")
    redact: bool = False
    """Whether literals are left out of texts in the history and in logs."""
    log: LogFormat = "text"
    limits: ServiceLimits = ServiceLimits()
    grants: Mapping[str, Access] = field(default_factory=dict)
    """By tenant, with the grants of the tenants above it where it has none of its own."""

    def access(self, tenant: str) -> Access:
        """What a tenant may reach: as granted to it, else to the nearest tenant above it.

        Tenants that are not named reach all tables and write nothing.

        >>> config = ServiceConfig(grants={"sales": Access(frozenset({"sales.*"}), sealed=True)})
        >>> config.access("sales/emea").tables, config.access("web").tables
        (frozenset({'sales.*'}), None)
        """
        while tenant:
            if tenant in self.grants:
                return self.grants[tenant]
            tenant = tenant.rpartition("/")[0]
        return Access(sealed=True)

    def check(self) -> None:
        """Raise if the server would be open to other machines without TLS, or reachable by none."""
        own_quack = self.quack if isinstance(self.quack, Address) else None
        if self.http is None and self.postgres is None and own_quack is None:
            raise QueryardError(
                "service: all listeners are off; give http, postgres or quack an address"
            )
        if self.tls is not None or self.insecure:
            return
        listeners = (("http", self.http), ("postgres", self.postgres), ("quack", own_quack))
        for what, address in listeners:
            if address is not None and not address.is_loopback:
                raise QueryardError(
                    f"{what}: {address} can be reached from other machines, and tokens and rows "
                    "would cross the network unencrypted; give a certificate (--tls-cert, "
                    "--tls-key), listen on 127.0.0.1, or allow it with --insecure"
                )
