"""`queryard policies`: what there is, what it is made of, and where it comes from."""

from __future__ import annotations

from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from queryard.core.parts import PoolSpec
from queryard.policies import catalogue

from .policy_details import PartDetail, describe_policy, find_policy


def policies(
    name: Annotated[
        str | None,
        typer.Argument(help="A policy to look at closely: its parts and their settings."),
    ] = None,
) -> None:
    """List the policies, or show one of them part by part.

    Examples:

    - `queryard policies`
    - `queryard policies tls`
    """
    console = Console()
    if name is None:
        console.print(_catalogue_table())
        return
    info = find_policy(name)
    console.print(f"[bold]{escape(info.name)}[/bold]: {escape(info.summary)}", highlight=False)
    console.print(f"{info.composition}\n{info.citation}", style="dim", markup=False)
    detail = describe_policy(name)
    if detail.pools.order is None:
        console.print(_pool_tree("pools", detail.pools))
    console.print(_parts_table(detail.parts))
    if not detail.work_conserving:
        console.print("It may leave a slot free although some task could use it.")


def _catalogue_table() -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("policy", no_wrap=True, style="bold")
    for title in ("composition", "what it does", "from"):
        table.add_column(title, overflow="fold")
    origin = ""
    for info in catalogue():
        if origin and info.origin != origin:
            table.add_section()
        origin = info.origin
        cells = (info.name, info.composition, info.summary, info.citation or "new here")
        table.add_row(*map(escape, cells))
    return table


def _parts_table(parts: list[PartDetail]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("decision", no_wrap=True)
    table.add_column("part", no_wrap=True)
    table.add_column("rule", overflow="fold")
    for part in parts:
        settings = [f"{key} = {value!r}" for key, value in part.settings.items()]
        name = Text("\n").join([Text(part.name, style="bold"), *map(Text, settings)])
        source = Text(f" [{part.citation}]" if part.citation else "", style="dim")
        table.add_row(part.decision, name, Text(part.rule) + source)
    return table


def _pool_tree(label: str, pool: PoolSpec) -> Tree:
    """The shares, from the root to the leaves and their orders."""
    notes = [f"by {pool.by}" if pool.by else f"order {pool.order.name}" if pool.order else ""]
    notes += [
        f"{key} {value:g}" if isinstance(value, float) else f"{key} {value}"
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
