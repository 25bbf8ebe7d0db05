"""`queryard policies`: what there is, what it is made of, and where it comes from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

from queryard.comparison import PORTFOLIO
from queryard.core.errors import InvalidProfile, unknown_name
from queryard.core.policy import PoolSpec
from queryard.policies import (
    ProfileInfo,
    about,
    catalogue,
    idle_in_sessions,
    load_profiles,
    resolve_profile,
)
from queryard.policies.catalogue import profile_name

from . import options
from .part_table import part_table
from .policy_details import describe_policy


def policies(
    name: Annotated[
        str | None,
        typer.Argument(help="A policy to look at closely: its parts and their settings."),
    ] = None,
    profile: options.ProfileFile = None,
) -> None:
    """List the policies, or show one of them part by part. `queryard parts` lists the parts.

    Examples:

    - `queryard policies`
    - `queryard policies tls`
    - `queryard policies office --profile examples/profiles.toml`
    """
    own = load_profiles(profile) if profile else {}
    known = [info for info in catalogue() if info.name not in own]
    console = Console()
    if name is None:
        console.print(_catalogue_table([*known, *map(about, own.values())]))
        return
    names = [*(info.name for info in known), *own]
    if name.partition(":")[0] == PORTFOLIO and name not in names:
        raise InvalidProfile(
            "a portfolio chooses among policies and has no parts of its own; see docs/portfolio.md"
        )
    if name not in names and profile_name(name) not in names:
        raise InvalidProfile(unknown_name("policy", name, names))
    chosen = own[name] if name in own else resolve_profile(name)
    info, detail = about(chosen), describe_policy(chosen)
    summary = f": {escape(info.summary)}" if info.summary else ""
    console.print(f"[bold]{escape(name)}[/bold]{summary}", highlight=False)
    for line in filter(None, (info.composition, info.citation)):
        console.print(line, style="dim", markup=False)
    if detail.pools.order is None:
        console.print(_pool_tree("pools", detail.pools))
    console.print(part_table(detail.parts))
    if not detail.work_conserving:
        console.print("It may leave a slot free although some task could use it.")
    for note in idle_in_sessions(chosen):
        console.print(f"In a session {note}.", markup=False, highlight=False)


def _catalogue_table(infos: Iterable[ProfileInfo]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("policy", no_wrap=True, style="bold")
    for title in ("composition", "what it does", "from"):
        table.add_column(title, overflow="fold")
    origin = None
    for info in infos:
        if origin not in (None, info.origin):
            table.add_section()
        origin = info.origin
        source = info.citation or ("new here" if origin == "new" else "")
        table.add_row(*map(escape, (info.name, info.composition, info.summary, source)))
    return table


def _pool_tree(label: str, pool: PoolSpec) -> Tree:
    """The shares, from the root to the leaves and their orders."""
    notes = [f"by {pool.by}" if pool.by else f"order {pool.order.name}" if pool.order else ""]
    notes += [
        f"{key} {value:g}" if isinstance(value, int | float) else f"{key} {value}"
        for key, value, usual in (
            ("weight", pool.weight, 1.0),
            ("guarantee", pool.guarantee, 0.0),
            ("cap", pool.cap, 1.0),
            ("choice", pool.choice, "share"),
        )
        if value != usual
    ]
    tree = Tree(escape(f"{label}: {', '.join(filter(None, notes))}"))
    for name, child in pool.children.items():
        tree.add(_pool_tree(name, child))
    if pool.default is not None:
        tree.add(_pool_tree("every other", pool.default))
    return tree
