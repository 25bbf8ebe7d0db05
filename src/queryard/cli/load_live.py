"""A load while it runs, on stderr: a table for people, a line now and then for everything else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from queryard.core import readable

if TYPE_CHECKING:
    from queryard.load import Board, Glance, Outcome, Show

# Drawing takes a few milliseconds of the processor that is being measured.
REFRESH_S = 0.5
LINE_S = 5.0
MOST_QUERIES = 10
BAR = 10


def showing(quiet: bool) -> Show:
    """How to show a run: not at all, as a table, or in lines where there is no terminal."""
    console = Console(stderr=True)
    if quiet:
        return lambda board: nullcontext()
    if console.is_terminal:
        return lambda board: _table(board, console)
    return lambda board: _lines(board, console)


@contextmanager
def _table(board: Board, console: Console) -> Iterator[None]:
    with (
        Live(console=console, transient=True, auto_refresh=False) as live,
        _repeating(REFRESH_S, lambda: live.update(drawn(board), refresh=True)),
    ):
        yield


@contextmanager
def _lines(board: Board, console: Console) -> Iterator[None]:
    def tell() -> None:
        console.print(headline(board), highlight=False, soft_wrap=True, markup=False)

    with _repeating(LINE_S, tell):
        yield
    tell()


@contextmanager
def _repeating(pause_s: float, action: Callable[[], None]) -> Iterator[None]:
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(pause_s):
            action()

    thread = threading.Thread(target=repeat, name="queryard-load-show", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def headline(board: Board) -> str:
    """Where a run is, in a line."""
    outcomes = board.outcomes
    sent = sum(outcome.state != "to come" for outcome in outcomes)
    under_way = [outcome for outcome in outcomes if outcome.state == "under way"]
    running = sum(_runs(board, outcome) for outcome in under_way)
    parts = [
        f"{board.name} {max(0.0, board.now_s()):.0f} s",
        f"{sent} of {len(outcomes)} submitted",
        f"{running} running",
        f"{len(under_way) - running} waiting",
        f"{sum(outcome.state == 'finished' for outcome in outcomes)} done",
    ]
    failed = sum(outcome.state in ("failed", "cancelled", "refused") for outcome in outcomes)
    late = sum(outcome.has_missed for outcome in outcomes)
    parts.extend(f"{n} {what}" for n, what in ((failed, "failed"), (late, "late")) if n)
    return ", ".join(parts)


def drawn(board: Board) -> Group:
    """The queries that run, those that wait, and how every tenant fares."""
    return Group(Text(headline(board), style="bold"), _queries(board), _tenants(board))


def _queries(board: Board) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    for title in ("query", "tenant", "asks"):
        table.add_column(title, no_wrap=True)
    for title in ("slots", "since", "ends in", "due in"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("progress", no_wrap=True)
    now_s = board.now_s()
    under_way = [outcome for outcome in board.outcomes if outcome.state == "under way"]
    under_way.sort(key=lambda outcome: not _runs(board, outcome))  # running queries come first
    for outcome in under_way[:MOST_QUERIES]:
        glance = board.glances.get(outcome.request.id)
        table.add_row(
            outcome.request.id,
            outcome.request.tenant,
            outcome.request.template,
            "" if glance is None or not glance.slots else str(glance.slots),
            f"{now_s - outcome.request.time_s:.1f} s",
            _until(None if glance is None else glance.end_s, now_s),
            _until(outcome.due_s, now_s),
            _bar(glance),
            style="" if _runs(board, outcome) else "dim",
        )
    if len(under_way) > MOST_QUERIES:
        table.add_row("…", f"{len(under_way) - MOST_QUERIES} more", style="dim")
    return table


def _tenants(board: Board) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("tenant", no_wrap=True)
    for title in ("submitted", "running", "waiting", "done", "late", "mean response"):
        table.add_column(title, justify="right", no_wrap=True)
    by_tenant: dict[str, list[Outcome]] = {}
    for outcome in board.outcomes:
        by_tenant.setdefault(outcome.request.tenant, []).append(outcome)
    for tenant, outcomes in sorted(by_tenant.items()):
        under_way = [outcome for outcome in outcomes if outcome.state == "under way"]
        running = sum(_runs(board, outcome) for outcome in under_way)
        table.add_row(
            tenant,
            str(sum(outcome.state != "to come" for outcome in outcomes)),
            str(running),
            str(len(under_way) - running),
            str(sum(outcome.state == "finished" for outcome in outcomes)),
            str(sum(outcome.has_missed for outcome in outcomes)),
            _mean([outcome.response_s for outcome in outcomes]),
        )
    return table


def _runs(board: Board, outcome: Outcome) -> bool:
    glance = board.glances.get(outcome.request.id)
    return glance is not None and glance.running


def _mean(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{readable.seconds(sum(known) / len(known))} s" if known else readable.MISSING


def _until(time_s: float | None, now_s: float) -> str:
    return "" if time_s is None else f"{time_s - now_s:.1f} s"


def _bar(glance: Glance | None) -> str:
    if glance is None or glance.progress is None or not glance.running:
        return ""
    done = round(glance.progress * BAR)
    return f"{'━' * done}{'╌' * (BAR - done)} {glance.progress:.0%}"
