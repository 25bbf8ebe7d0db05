"""`queryard serve`: one Queryard for a team."""

from __future__ import annotations

import logging
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from queryard.core.errors import QueryardError
from queryard.core.readable import several
from queryard.version import __version__

from .data_options import (
    Autoscaler,
    Backend,
    ClusterAddress,
    ClusterNodes,
    Memory,
    Namespace,
    Slots,
    backend_table,
)
from .demo import Demo
from .server_place import Config, Tokens, needing_server

if TYPE_CHECKING:
    from queryard.live.session import Session
    from queryard.service.config import Address
    from queryard.service.serving import Addresses

_LISTEN = "Where it listens"
_STOP = "How it runs"
FIRST_TOKEN = "admin"


def serve(
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="A folder of data files, a DuckDB database or a catalog (.toml); with --demo, "
            "where to put its data.",
            show_default=False,
        ),
    ] = None,
    config: Config = None,
    http: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Where HTTP listens: host:port, a port, or off. Default: 127.0.0.1:8080.",
            rich_help_panel=_LISTEN,
            show_default=False,
        ),
    ] = None,
    postgres: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Where PostgreSQL's protocol is spoken: host:port, a port, or off. "
            "Default: 127.0.0.1:5433.",
            rich_help_panel=_LISTEN,
            show_default=False,
        ),
    ] = None,
    quack: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Where DuckDB's own protocol is spoken: http (at the address of HTTP), host:port, "
            "a port, or off. Default: http.",
            rich_help_panel=_LISTEN,
            show_default=False,
        ),
    ] = None,
    tls_cert: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The certificate for TLS, with those above it (PEM).",
            rich_help_panel=_LISTEN,
            show_default=False,
        ),
    ] = None,
    tls_key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The private key of the certificate (PEM).",
            rich_help_panel=_LISTEN,
            show_default=False,
        ),
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure",
            help="Let other machines connect without TLS: tokens and rows can be read on the way.",
            rich_help_panel=_LISTEN,
        ),
    ] = False,
    tokens: Tokens = None,
    grace: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="How long running queries may go on once the server is to stop. Default: 30 s.",
            rich_help_panel=_STOP,
            show_default=False,
        ),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(
            metavar="text|json",
            help="The form of the log on stderr. Default: text.",
            rich_help_panel=_STOP,
            show_default=False,
        ),
    ] = None,
    slots: Slots = None,
    memory: Memory = None,
    backend: Backend = None,
    address: ClusterAddress = None,
    nodes: ClusterNodes = None,
    autoscaler: Autoscaler = False,
    namespace: Namespace = None,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo",
            help="Serve TPC-H data, made on first use (180 MB, in the user's cache), to some "
            "tenants that ask without end: something to look at.",
            rich_help_panel=_STOP,
        ),
    ] = False,
) -> None:
    """Serve data to a team, over HTTP, PostgreSQL's protocol and DuckDB's own.

    Clients show a token; the first one is made and shown here, `queryard token add` makes others.
    Every statement goes through the scheduler, as a query of its token's tenant. A browser shows
    what happens at the address of HTTP (docs/page.md).

    SIGTERM (or Ctrl-C) stops the server once running queries have ended, SIGHUP reloads tables,
    tenants, tokens and the policy. docs/service.md has all settings.

    Examples:

    - `queryard serve data/`
    - `queryard serve --demo`
    - `queryard serve --config yard.toml --http 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem`
    - `queryard serve shop.duckdb --http off --postgres 5432`
    """
    with needing_server():
        from queryard.service import process
        from queryard.service.logs import log as write_log
        from queryard.service.logs import set_up
        from queryard.service.lost import lost_queries
        from queryard.service.sources import Sources, tell_of_grants
        from queryard.service.tokens import TokenStore
    shown = Demo.prepared(data, config, http, tls_cert) if demo else None
    if shown is not None:
        data, tokens = str(shown.catalog), tokens or shown.tokens
        slots, grace = slots or shown.slots, grace or shown.grace
    listeners = {"http": http, "postgres": postgres, "quack": quack}
    options = _service_options(listeners, tls_cert, tls_key, insecure, tokens, grace, log)
    session_options = {
        "slots": slots,
        "memory": memory,
        **backend_table(backend, address, nodes, autoscaler, namespace),
    }
    sources = Sources(
        data,
        config,
        options,
        {key: value for key, value in session_options.items() if value is not None},
    )
    settings = sources.read()
    set_up(settings.service.log)
    lost = lost_queries(sources.place)
    store = TokenStore(settings.service.tokens)
    is_first = not store.list()

    with sources.open(settings) as session:
        for query in lost:
            write_log("query lost", logging.WARNING, query=query.query, tenant=query.tenant)
        tell_of_grants(session.catalog, settings.grants)
        server = process.Server(session, settings.service, store, sources)

        def announce(addresses: Addresses) -> None:
            # Made now, since a server that does not start would not show it.
            secret = store.add(FIRST_TOKEN, role="admin") if is_first else None
            more = _more_tokens(data, config, tokens)
            tls = settings.service.tls
            cert = None if tls is None or not addresses.tls else tls.cert
            _announce(str(sources.place), session, addresses, secret, more, cert)
            if shown is not None:
                shown.begin(addresses, store)

        try:
            process.run(server.run(announce))
        finally:
            if shown is not None:
                shown.end()


def _service_options(
    listeners: Mapping[str, str | None],
    cert: Path | None,
    key: Path | None,
    insecure: bool,
    tokens: Path | None,
    grace: str | None,
    log: str | None,
) -> dict[str, Any]:
    """Settings of the server that were given as options."""
    from queryard.live.amounts import as_age
    from queryard.service.config import HTTP_PORT, POSTGRES_PORT, QUACK_PORT, Address, Tls

    found: dict[str, Any] = {}
    ports = {"http": HTTP_PORT, "postgres": POSTGRES_PORT, "quack": QUACK_PORT}
    for name, given in listeners.items():
        if given == "off":
            found[name] = None
        elif name == "quack" and given == "http":
            found[name] = given
        elif given is not None:
            found[name] = Address.parse(given, f"--{name}", ports[name])
    if (cert is None) != (key is None):
        given, missing = ("--tls-cert", "--tls-key") if key is None else ("--tls-key", "--tls-cert")
        raise QueryardError(f"{given}: TLS needs {missing} as well")
    if cert is not None and key is not None:
        found["tls"] = Tls(cert, key)
    if insecure:
        found["insecure"] = True
    if tokens is not None:
        found["tokens"] = tokens
    if grace is not None:
        found["grace_s"] = as_age(grace, "--grace")
    if log is not None:
        if log not in ("text", "json"):
            raise QueryardError(f"--log {log}: choose text or json")
        found["log"] = log
    return found


def _more_tokens(data: str | None, config: Path | None, tokens: Path | None) -> str:
    """The command that makes a token for this server."""
    places = (("--data", data), ("--config", config), ("--tokens", tokens))
    given = [f" {option} {shlex.quote(str(place))}" for option, place in places if place]
    return f"queryard token add NAME --tenant TENANT{''.join(given)}"


def _announce(
    place: str,
    session: Session,
    addresses: Addresses,
    secret: str | None,
    more: str,
    cert: Path | None,
) -> None:
    """Where the server is, and what to try next."""
    from queryard.service.serving import reachable

    tables = several(len(session.tables()), "table")
    slots = several(session.slots, "slot")
    memory = f"{session.memory_bytes / 1e9:.1f} GB of memory"
    lines = [f"Queryard {__version__} serves {place}: {tables}, {slots}, {memory}"]
    url, postgres = addresses.url, addresses.postgres
    if url is not None:
        lines.append(f"  HTTP        {url}")
        # After a hash, so that the token is not sent, nor written into a log, with the address.
        lines.append(f"  page        {url}/{'' if secret is None else f'#token={secret}'}")
    if postgres is not None:
        lines.append(f"  PostgreSQL  {postgres}")
    if addresses.quack is not None:
        lines.append(f"  Quack       {addresses.quack} (DuckDB 1.5)")
    if secret is not None:
        lines += [
            f"  token       {secret}",
            f"              of {FIRST_TOKEN!r}, an admin; it is shown this once",
        ]
    if cert is not None:
        lines += [
            f"  TLS         by {cert}; clients trust it by that file if it has signed itself or",
            "              holds the authority's certificate as well, else by the authority's",
        ]
    user = FIRST_TOKEN if secret is not None else "NAME"
    lines += ["", "Try:", f"  export QUERYARD_TOKEN={secret or 'qy_…'}"]
    if cert is not None:
        lines.append(f"  export QUERYARD_CA={shlex.quote(str(cert))} PGSSLROOTCERT=$QUERYARD_CA")
    if url is not None:
        ca = "" if cert is None else f" --cacert {shlex.quote(str(cert))}"
        lines += [
            f"  curl{ca} '{url}/v1/queries?wait=10' "
            """-H "Authorization: Bearer $QUERYARD_TOKEN" """
            """-H 'Content-Type: application/json' -d '{"sql": "SELECT 42"}'""",
            f'  queryard --server {url} sql "SELECT 42"',
            f"  python -c \"import queryard; queryard.connect('{url}').sql('SELECT 42').show()\"",
        ]
    if postgres is not None:
        where = reachable(postgres)
        host = where.host
        mode = "" if cert is None else "PGSSLMODE=verify-full "
        lines.append(
            f"  {mode}PGPASSWORD=$QUERYARD_TOKEN psql -h {host} -p {where.port} -U {user} queryard"
        )
    if addresses.quack is not None:
        attach = _attach(reachable(addresses.quack), addresses.tls)
        lines.append(f'  duckdb -c "{attach}"')
    lines += ["", f"More tokens: {more}", ""]
    typer.echo("\n".join(lines))
    sys.stdout.flush()


def _attach(where: Address, tls: bool) -> str:
    """What a client of DuckDB 1.5 is told to do."""
    is_plain = where.host in ("127.0.0.1", "localhost", "::1")
    # The client takes TLS for granted, unless the server is on its own machine.
    ssl = f", DISABLE_SSL {str(not tls).lower()}" if tls == is_plain else ""
    return (
        f"INSTALL quack; LOAD quack; ATTACH 'quack:{where}' AS yard "
        f"(TOKEN '$QUERYARD_TOKEN'{ssl}); FROM yard.query('SELECT 42')"
    )
