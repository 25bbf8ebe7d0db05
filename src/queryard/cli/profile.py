"""`queryard profile`: by which policy open sessions decide, and how to change it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from queryard.core.errors import QueryardError
from queryard.policies import idle_in_sessions, load_profiles, resolve_profile
from queryard.policies.catalogue import composition
from queryard.portfolio.documents import names_portfolio, read_portfolio

from .open_sessions import Data, OwnProfiles, ask_all, open_sessions


def profile(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="The policy to follow from now on (see `queryard policies`). Without it, the "
            "present one is shown.",
            show_default=False,
        ),
    ] = None,
    data: Data = None,
    profiles: OwnProfiles = None,
) -> None:
    """Show, or change, the policy of the sessions that are open on some data.

    What runs is not disturbed: the new policy decides from the next moment on.

    Examples:

    - `queryard profile --data data/`
    - `queryard profile tls --data data/`
    - `queryard profile "portfolio:small queries fast" --data data/` lets a portfolio choose it
    """
    chosen = None
    if name is not None:
        chosen = _chosen(name, load_profiles(profiles) if profiles is not None else {})
        _check_only_one(data)
    for remote, now in ask_all(data, "profile", profile=chosen):
        shown = f"{now.get('name', 'unnamed')}: {composition(now)}"
        typer.echo(f"{remote} follows {shown}")
        for note in idle_in_sessions(now):
            typer.echo(f"  {note}")


def _chosen(name: str, own: Mapping[str, Any]) -> str | dict[str, Any]:
    """What to follow: a policy, or the text that names a portfolio."""
    if name in own:
        return dict(own[name])
    if names_portfolio(name):
        read_portfolio(name)  # an error is told here
        return name
    return dict(resolve_profile(name))


def _check_only_one(data: str | None) -> None:
    """Without a place, sessions of other programs are found, too: change none by accident."""
    found = [] if data is not None else open_sessions(None)
    if len(found) > 1:
        several = ", ".join(map(str, found))
        raise QueryardError(f"{several} are open; name the data of the one to change with --data")
