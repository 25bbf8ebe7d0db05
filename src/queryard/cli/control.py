"""`queryard control`: what an admin changes of a server while it runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from queryard.core import readable
from queryard.core.errors import QueryardError
from queryard.policies import load_profiles

from .open_sessions import Data, OwnProfiles, none_open, open_sessions
from .server_option import server_for

control = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="See and change a server while it runs: policy, tenants, pause, drain; and undo. With "
    "`--server` and an admin's token, or on the machine of the server by its data.",
)
Reason = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Why, for the record.", show_default=False)
]
Name = Annotated[str, typer.Argument(metavar="TENANT", help="Its name, as sales/emea.")]
_Asked = dict[str, Any]
# Stands for a share as it would be without changes.
_DEFAULT = "default"


def _ask(data: str | None, request: _Asked) -> Any:
    """What the controls answer: those of a server, or of the one that serves the data here."""
    server = server_for(data)
    if server is None:
        return _ask_here(data, request)
    from queryard.remote.controls import connect_controls

    with connect_controls(server) as controls:
        match request["do"]:
            case "change":
                return controls.change(**request["body"])
            case "undo":
                return controls.undo(request["id"], request["reason"])
        return controls.show(request["limit"])


def _ask_here(data: str | None, request: _Asked) -> Any:
    """The same of a server on this machine that serves the data, by its user."""
    problems = []
    served = []
    for remote in open_sessions(data):
        try:
            remote.ask("control", do="show", limit=1)
            served.append(remote)
        except OSError:
            pass  # it was closed meanwhile
        except QueryardError as error:
            problems.append(f"{remote}: {error}")
    if len(served) > 1:
        listed = ", ".join(map(str, served))
        raise QueryardError(f"{listed} serve the data; name one by its address with --server")
    if not served:
        raise QueryardError("\n".join(problems)) if problems else none_open(data)
    return served[0].ask("control", **request)


def _change(data: str | None, change: str, reason: str | None = None, **arguments: Any) -> None:
    """Ask for a change; arguments that are None are left out, `_DEFAULT` is sent as null."""
    given = {"reason": reason, **arguments}
    body = {"change": change} | {
        key: None if value is _DEFAULT else value
        for key, value in given.items()
        if value is not None
    }
    _tell(_ask(data, {"do": "change", "body": body}))


def _tell(change: _Asked) -> None:
    typer.echo(readable.printable(f"change {change['id']}: {change['text']}"))


@control.command()
def show(
    data: Data = None,
    last: Annotated[int, typer.Option(metavar="N", help="The last so many changes.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Show the policy, the tenants, whether queries start, and the last changes.

    Examples:

    - `queryard --server http://host:8080 control show`
    - `queryard control show --data data/ --json`
    """
    found = _ask(data, {"do": "show", "limit": last})
    if as_json:
        typer.echo(json.dumps(found, indent=1))
        return
    console = Console(highlight=False)
    profile = found["profile"]
    console.print(Text(f"policy   {profile if isinstance(profile, str) else json.dumps(profile)}"))
    console.print(Text(readable.printable(f"state    {_state(found)}")))
    console.print(_table(found["tenants"], _TENANT))
    if found["changes"]:
        console.print(_table(found["changes"], _CHANGE))


def _state(found: _Asked) -> str:
    word = found["draining"] or found["paused"]
    if word is None:
        return str(found["state"])
    reason = f": {word['reason']}" if word["reason"] else ""
    return f"{found['state']}, by {word['by']} since {_when(word['at'])}{reason}"


def _when(at: float) -> str:
    return f"{datetime.fromtimestamp(at):%Y-%m-%d %H:%M:%S}"


def _limits(tenant: _Asked) -> str:
    limits = tenant["limits"]
    told = []
    if limits["waiting"] is not None:
        told.append(f"{readable.several(limits['waiting'], 'query')} waiting")
    if limits["wait_s"] is not None:
        told.append(f"a wait of {limits['wait_s']:g} s")
    if limits["memory_bytes"] is not None:
        told.append(f"{limits['memory_bytes'] / 1e6:,.6g} MB per query")
    return ", ".join(told)


def _undone(change: _Asked) -> str:
    if change["undone_by"] is not None:
        return f"undone by {change['undone_by']}"
    return "can be undone" if change["undoable"] else ""


_Columns = dict[str, Callable[[_Asked], str]]
_TENANT: _Columns = {
    "tenant": lambda tenant: str(tenant["name"]),
    "weight": lambda tenant: f"{tenant['weight']:g}",
    "guarantee": lambda tenant: f"{tenant['guarantee']:g}",
    "cap": lambda tenant: f"{tenant['cap']:g}",
    "limits": _limits,
}
_CHANGE: _Columns = {
    "change": lambda change: str(change["id"]),
    "at": lambda change: _when(change["at"]),
    "by": lambda change: str(change["by"]),
    "what": lambda change: str(change["text"]),
    "": _undone,
}


def _table(rows: list[_Asked], columns: _Columns) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name)
    for row in rows:
        # Names and reasons are others' words, no markup.
        table.add_row(*(Text(readable.printable(shown(row))) for shown in columns.values()))
    return table


@control.command()
def profile(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The policy (see `queryard policies`).")
    ],
    data: Data = None,
    profiles: OwnProfiles = None,
    reason: Reason = None,
) -> None:
    """Follow another policy.

    Examples:

    - `queryard control profile fair`
    - `queryard control profile mine --profiles profiles.toml`
    """
    own = load_profiles(profiles) if profiles is not None else {}
    _change(data, "profile", reason, profile=dict(own[name]) if name in own else name)


@control.command()
def tenant(
    name: Name,
    weight: Annotated[
        str | None,
        typer.Option(metavar="W|default", help="Against other tenants.", show_default=False),
    ] = None,
    guarantee: Annotated[
        str | None,
        typer.Option(metavar="SHARE|default", help="Of all slots, 0 to 1.", show_default=False),
    ] = None,
    cap: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE|default", help="Of all slots, above 0 to 1.", show_default=False
        ),
    ] = None,
    waiting: Annotated[
        str | None,
        typer.Option(metavar="N|none", help="How many of its queries wait.", show_default=False),
    ] = None,
    wait: Annotated[
        str | None,
        typer.Option(
            metavar="TIME|none", help="The wait to be expected, as '5 min'.", show_default=False
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE|none", help="The memory of one query, as '1 GB'.", show_default=False
        ),
    ] = None,
    data: Data = None,
    reason: Reason = None,
) -> None:
    """Change shares and limits of a tenant; `none` removes a limit, `default` brings back the
    share that the settings have, or the usual one.

    Examples:

    - `queryard control tenant sales --weight 3`
    - `queryard control tenant web --cap 0.5 --waiting 100 --wait none`
    - `queryard control tenant web --cap default`
    """
    given = {"waiting": _count(waiting), "wait": wait, "memory": memory}
    limits = {
        key: None if value == "none" else value for key, value in given.items() if value is not None
    }
    _change(
        data,
        "tenant",
        reason,
        tenant=name,
        weight=_number("weight", weight),
        guarantee=_number("guarantee", guarantee),
        cap=_number("cap", cap),
        limits=limits or None,
    )


def _number(name: str, given: str | None) -> str | float | None:
    if given is None or given == _DEFAULT:
        return None if given is None else _DEFAULT
    try:
        return float(given)
    except ValueError:
        raise QueryardError(f"--{name} {given}: must be a number, or default") from None


def _count(given: str | None) -> str | int | None:
    if given is None or given == "none":
        return given
    if not given.isdecimal():
        raise QueryardError(f"--waiting {given}: must be a whole number, or none")
    return int(given)


@control.command()
def pause(data: Data = None, reason: Reason = None) -> None:
    """Start no waiting query; what runs goes on, and queries are taken."""
    _change(data, "pause", reason)


@control.command()
def resume(data: Data = None, reason: Reason = None) -> None:
    """Let waiting queries start again."""
    _change(data, "resume", reason)


@control.command()
def drain(data: Data = None, reason: Reason = None) -> None:
    """Take no further queries; those that are there end."""
    _change(data, "drain", reason)


@control.command("open")
def open_again(data: Data = None, reason: Reason = None) -> None:
    """Take queries again."""
    _change(data, "open", reason)


@control.command("cancel-tenant")
def cancel_tenant(name: Name, data: Data = None, reason: Reason = None) -> None:
    """Cancel all queries of a tenant and of those below it."""
    _change(data, "cancel-tenant", reason, tenant=name)


@control.command("reset-models")
def reset_models(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[templates|prices|portfolio]...",
            help="What is to be learnt anew. Default: all.",
            show_default=False,
        ),
    ] = None,
    data: Data = None,
    reason: Reason = None,
) -> None:
    """Forget what was learnt from ended queries.

    That is what templates took, how far prices are off, and what a portfolio has learnt.
    """
    _change(data, "reset-models", reason, models=models or None)


@control.command()
def undo(
    change: Annotated[
        int, typer.Argument(metavar="CHANGE", help="Its number, as `queryard control show` has it.")
    ],
    data: Data = None,
    reason: Reason = None,
) -> None:
    """Set what a change has set to what it was before."""
    _tell(_ask(data, {"do": "undo", "id": change, "reason": reason or ""}))
