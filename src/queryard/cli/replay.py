"""`queryard replay`: a recorded session once more, in a fresh kernel and in simulation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from queryard.comparison import (
    RECORDED,
    Scores,
    choose_profiles,
    comparison_table,
    scores_of_reference,
    scores_of_run,
)
from queryard.core import readable
from queryard.core.events import PolicyChosen

from . import history_place, options
from .failures import FAILED

if TYPE_CHECKING:
    from queryard.metrics import RunRows
    from queryard.replay import Recorded
    from queryard.sim.replay import Difference


def replay(
    session: Annotated[
        str | None,
        typer.Argument(
            metavar="[SESSION]",
            help="Its name or the beginning of it (`queryard history --sessions`). Default: the "
            "last one.",
            show_default=False,
        ),
    ] = None,
    data: history_place.Data = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Policies to simulate the same arrivals under, joined by commas; `all` for every "
            "one.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Feed a recorded session to a fresh kernel, and simulate it under any policy.

    First all recorded events go to a fresh kernel, and its decisions are compared with those that
    were made; if one differs, it is shown and the exit code is 1. Then the recorded arrivals are
    simulated: under the session's own policy, which shows how far simulation can be trusted, under
    those you name, and under two ideals.

    Examples:

    - `queryard replay --data data/`
    - `queryard replay --data data/ --policy fifo,query-fair,srtf`
    - `queryard replay 4f2a --data data/ --json`
    """
    from queryard.replay import difference, recorded
    from queryard.sim.replay import replay as replay_journal

    profiles = choose_profiles(options.split_names(policy), {})
    with history_place.open_history(data) as reader:
        found = recorded(reader, session)
    parted = replay_journal(found.journal)
    simulated = found.simulate()
    error = difference(found, simulated)
    runs = {RECORDED: found.real, _own(found): simulated}
    runs |= {name: found.simulate(profile) for name, profile in profiles.items()}
    rows, ideals = _scores(found, runs)
    if as_json:
        typer.echo(json.dumps(_plain(found, parted, error, rows, ideals), indent=1))
    else:
        _print(found, parted, rows, ideals)
        Console(highlight=False).print(_trust(error, rows))
    if parted is not None:
        raise typer.Exit(FAILED)


def _own(found: Recorded) -> str:
    """The session's own policies, one after another, where it had several."""
    profiles = [found.session.profile]
    profiles += [change.profile for change in found.changes if isinstance(change, PolicyChosen)]
    names = [str(profile.get("name") or "its own policy") for profile in profiles]
    return f"{', then '.join(name for name, _ in groupby(names))} (simulated)"


def _scores(found: Recorded, runs: Mapping[str, RunRows]) -> tuple[list[Scores], list[Scores]]:
    """Of all runs, then of the ideals; over the queries that gave a result in reality."""
    from queryard.metrics import summarise
    from queryard.sim import alone_times
    from queryard.sim.references import IDEALS, demands_of
    from queryard.workload.alone import capacity_slots

    load = found.workload
    alone_s = alone_times(load, load.nodes, found.conditions)
    rows = [scores_of_run(name, summarise(each, alone_s=alone_s)) for name, each in runs.items()]
    slots = capacity_slots(load.nodes)
    demands = demands_of(load, alone_s)
    ideals = []
    for name, ideal in IDEALS.items():
        responses_s = {q: s for q, s in ideal(demands, slots).items() if q in found.real.queries}
        ideals.append(scores_of_reference(name, responses_s, load, alone_s, slots))
    return rows, ideals


def _print(
    found: Recorded, parted: Difference | None, rows: list[Scores], ideals: list[Scores]
) -> None:
    console = Console(highlight=False)
    decisions = readable.several(len(found.journal.steps), "decision")
    if parted is None:
        console.print(f"A fresh kernel makes the same {decisions} again.")
    else:
        console.print(Text(_told(parted), style="red"), soft_wrap=True)
    console.print(comparison_table(_title(found), rows, ideals))
    if found.shared:
        console.print(
            f"Answered by the run of another query, and not in the table: {found.shared:,}.",
            style="dim",
        )


def _title(found: Recorded) -> str:
    slots = sum(node.slots for node in found.workload.nodes)
    queries = readable.several(len(found.real.queries), "answered query")
    return f"session {found.session.session}: {queries} on {readable.several(slots, 'slot')}"


def _told(parted: Difference) -> str:
    return (
        f"A fresh kernel decides otherwise at step {parted.number}, at "
        f"{parted.step.time_s:.3f} s.\n  after:    {_listed(parted.step.events)}\n"
        f"  recorded: {_listed(parted.step.commands)}\n  now:      {_listed(parted.decided)}"
    )


def _listed(things: tuple[Any, ...]) -> str:
    return ", ".join(map(str, things)) or "nothing"


def _trust(error: float | None, rows: list[Scores]) -> str:
    """How near the simulation of the same policy comes."""
    if error is None:
        return "No query gave an answer, so there is nothing to compare."
    real_s, simulated_s = (readable.seconds(row.mean_response_s) for row in rows[:2])
    return (
        f"Simulated under its own policy, the mean response is {simulated_s} s, "
        f"{readable.percent(abs(error))} {'above' if error > 0 else 'below'} the recorded "
        f"{real_s} s."
    )


def _plain(
    found: Recorded,
    parted: Difference | None,
    error: float | None,
    rows: list[Scores],
    ideals: list[Scores],
) -> dict[str, Any]:
    return {
        "session": found.session.session,
        "decisions": len(found.journal.steps),
        "agrees": parted is None,
        "first_difference": None if parted is None else str(parted),
        "queries": len(found.real.queries),
        "shared": found.shared,
        "simulation_error": error,
        "runs": [row.to_json() for row in rows],
        "references": [row.to_json() for row in ideals],
    }
