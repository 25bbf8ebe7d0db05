"""`queryard token`: the tokens by which clients of a server are known."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from queryard.core.errors import QueryardError

from .data_options import data_option
from .server_place import Config, Tokens, needing_server

if TYPE_CHECKING:
    from queryard.service.principal import Role
    from queryard.service.tokens import TokenInfo, TokenStore

token = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Make, list and revoke the tokens of a server's clients.",
)
Data = Annotated[str | None, data_option("The data that is served.")]
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="The token's name, which is also the PostgreSQL user.",
        show_default=False,
    ),
]


@token.command()
def add(
    name: Name,
    tenant: Annotated[
        str, typer.Option(metavar="TENANT", help="The tenant for which its queries run.")
    ] = "default",
    admin: Annotated[
        bool,
        typer.Option("--admin", help="The same as --role admin."),
    ] = False,
    role: Annotated[
        str | None,
        typer.Option(
            metavar="user|admin|metrics",
            help="What it may do: put queries; see and cancel those of all tenants, too; or read "
            "/metrics only, as Prometheus does. Default: user.",
            show_default=False,
        ),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN",
            help="A date such as 2027-01-31, or a time from now such as '30 d'.",
            show_default=False,
        ),
    ] = None,
    data: Data = None,
    config: Config = None,
    tokens: Tokens = None,
) -> None:
    """Make a token, and print its secret: it is kept nowhere, and shown this once.

    A server that runs takes it at once.

    Examples:

    - `queryard token add ann --tenant sales --data data/`
    - `queryard token add grafana --tenant dashboards --expires '90 d' --data data/`
    - `queryard token add prometheus --role metrics --data data/`
    """
    if admin and role not in (None, "admin"):
        raise QueryardError(f"--admin and --role {role}: choose one of them")
    store = _store(data, config, tokens)
    secret = store.add(name, tenant, _role(role or ("admin" if admin else "user")), _when(expires))
    typer.echo(secret)
    may = "may read /metrics" if role == "metrics" else f"acts for the tenant {tenant!r}"
    typer.echo(f"The token {name!r} {may}. Its secret is shown this once.", err=True)


@token.command("list")
def list_tokens(
    data: Data = None,
    config: Config = None,
    tokens: Tokens = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List all tokens, without their secrets."""
    found = _store(data, config, tokens).list()
    if as_json:
        typer.echo(json.dumps([_row(info) for info in found], indent=1))
        return
    console = Console(highlight=False)
    if not found:
        console.print("There is no token; make one with `queryard token add NAME`.")
        return
    table = Table(box=None, header_style="bold")
    for column in ("name", "tenant", "role", "made", "expires"):
        table.add_column(column, no_wrap=True)
    for info in found:
        row = _row(info)
        expires = "has expired" if info.expired else (row["expires_at"] or "never")[:16]
        table.add_row(
            Text(info.name), Text(info.tenant), info.role, str(row["created_at"])[:16], expires
        )
    console.print(table)


@token.command()
def revoke(name: Name, data: Data = None, config: Config = None, tokens: Tokens = None) -> None:
    """Forget a token; a server that runs refuses it at once."""
    _store(data, config, tokens).revoke(name)
    typer.echo(f"The token {name!r} is revoked.")


def _role(given: str) -> Role:
    from queryard.core.errors import unknown_name

    for known in ("user", "admin", "metrics"):
        if given == known:
            return known
    raise QueryardError(unknown_name("--role", given, ("user", "admin", "metrics")))


def _store(data: str | None, config: Path | None, tokens: Path | None) -> TokenStore:
    """The tokens of the server that the options mean."""
    with needing_server():
        from queryard.service.sources import Sources
        from queryard.service.tokens import TokenStore
    if tokens is not None:
        return TokenStore(tokens)
    where = data if data is not None or config is not None else "."
    return TokenStore(Sources(where, config).read().service.tokens)


def _row(info: TokenInfo) -> dict[str, str | None]:
    return {
        "name": info.name,
        "tenant": info.tenant,
        "role": info.role,
        "created_at": info.created_at.isoformat(timespec="seconds"),
        "expires_at": None
        if info.expires_at is None
        else info.expires_at.isoformat(timespec="seconds"),
    }


def _when(expires: str | None) -> datetime | timedelta | None:
    """A date, a time of a day, or an amount of time from now."""
    from queryard.core.amounts import InvalidAmount, some_seconds

    if expires is None:
        return None
    try:
        return datetime.fromisoformat(expires).astimezone()
    except ValueError:
        pass
    try:
        return timedelta(seconds=some_seconds(expires, "--expires"))
    except InvalidAmount:
        raise QueryardError(
            f"--expires {expires}: give a date such as 2027-01-31, or a time such as '30 d'"
        ) from None
