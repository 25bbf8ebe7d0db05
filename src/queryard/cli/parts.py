"""`queryard parts`: what a profile can be made of."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from queryard.core.errors import InvalidProfile, unknown_name
from queryard.policies.parts import PARTS

from .part_table import part_table
from .policy_details import describe_part

# The keys of a profile, and what each of them settles.
QUESTIONS = {
    "order": "which query is next",
    "jobs": "which job of the query",
    "slots": "which work a slot serves",
    "placement": "which task, and whether here",
    "sharing": "which tasks ride on one read",
    "provisioning": "how many nodes",
    "speculation": "which task runs a second time",
}


def parts(
    decision: Annotated[
        str | None,
        typer.Argument(
            metavar="DECISION",
            help=f"Only those for one decision: {', '.join(PARTS)}.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """List the parts that policies are made of, decision by decision.

    Of each decision the first part is the default. Settings are shown with their defaults.

    Examples:

    - `queryard parts`
    - `queryard parts order`
    """
    if decision is not None and decision not in PARTS:
        raise InvalidProfile(unknown_name("decision", decision, PARTS))
    wanted = PARTS if decision is None else (decision,)
    found = [describe_part(key, part) for key in wanted for part in PARTS[key].values()]
    Console().print(part_table(found, QUESTIONS))
