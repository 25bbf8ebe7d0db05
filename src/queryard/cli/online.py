"""`queryard sql --online`: a table with intervals that is drawn again as the answer refines."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import typer
from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from queryard.core import readable
from queryard.core.readable import several
from queryard.results.display import value_text

from .failures import INTERRUPTED, complain

if TYPE_CHECKING:
    from queryard.live.online import OnlineAnswers
    from queryard.results.online import OnlineAnswer

    from .any_session import AnySession

SHOWN_ROWS = 20
BAR_WIDTH = 40


def run_online(
    session: AnySession,
    sql: str,
    *,
    stop_at: float | None,
    confidence: float,
    within: str | None,
    rows: int | None,
    time_limit: str | None = None,
) -> None:
    """Show answers as they come; on a pipe only the last. Ctrl-C keeps the last answer."""
    answers = session.online(
        sql,
        stop_at=stop_at,
        confidence=confidence,
        within=within,
        every="0.2 s",
        time_limit=time_limit,
    )
    most = SHOWN_ROWS if rows is None else rows or None
    console = Console(highlight=False)
    if console.is_terminal:
        last = _drawn(answers, console, most, stop_at)
    else:
        last = _read(answers)
    if last is None:
        complain("stopped before the first answer", "")
        raise typer.Exit(INTERRUPTED)
    if not console.is_terminal:
        console = Console(highlight=False, width=200, file=sys.stdout)
        console.print(drawn_answer(last, most, over=_how_ended(last, stop_at)))


def _read(answers: OnlineAnswers) -> OnlineAnswer | None:
    last: OnlineAnswer | None = None
    try:
        for last in answers:  # noqa: B007
            pass
    except KeyboardInterrupt:
        answers.stop()
        last = answers.last or last
    return last


def _how_ended(answer: OnlineAnswer, stop_at: float | None) -> str:
    near = stop_at is not None and answer.error is not None and answer.error <= stop_at
    return "near enough" if near else "stopped"


def _drawn(
    answers: OnlineAnswers, console: Console, most: int | None, stop_at: float | None
) -> OnlineAnswer | None:
    last: OnlineAnswer | None = None
    with Live(Text("planning …", style="dim"), console=console, auto_refresh=False) as live:
        try:
            for last in answers:
                live.update(drawn_answer(last, most), refresh=True)
        except KeyboardInterrupt:
            answers.stop()
            last = answers.last or last
        if last is not None:
            live.update(drawn_answer(last, most, over=_how_ended(last, stop_at)), refresh=True)
    return last


def drawn_answer(answer: OnlineAnswer, most: int | None, *, over: str = "") -> RenderableType:
    """Rows with the half-width of every interval, a bar of what was read, and what to know.

    `over` says how the query has ended.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, label in zip(answer.columns, answer.labels, strict=True):
        table.add_column(name, justify="right" if label in answer.low else "left", no_wrap=True)
    if any(answer.marks):
        table.add_column("")
    shown = answer.rows()[:most]
    for place, row in enumerate(shown):
        cells = [
            _cell(answer, name, place, value)
            for name, value in zip(answer.labels, row, strict=True)
        ]
        if any(answer.marks):
            cells.append(Text(answer.marks[place], style="yellow"))
        table.add_row(*cells)
    lines: list[RenderableType] = [table]
    if len(answer) > len(shown):
        lines.append(
            Text(f"{several(len(answer) - len(shown), 'more row')}; --rows shows more", style="dim")
        )
    if not answer.exact:
        done = round(answer.fraction * BAR_WIDTH)
        lines.append(Text("━" * done, style="cyan").append("─" * (BAR_WIDTH - done), style="dim"))
    lines.append(Text(_state(answer, over), style="dim"))
    lines += [Text(note, style="dim") for note in answer.notes]
    return Group(*lines)


def _cell(answer: OnlineAnswer, name: str, place: int, value: Any) -> Text:
    low = answer.low.get(name)
    if low is None or answer.exact:
        return Text(value_text(value))
    at, end = low[place], answer.high[name][place]
    if at is None or end is None:
        return Text(_rounded(value, None)).append(" ± ?", style="dim")
    half = (end - at) / 2
    return Text(_rounded(value, half)).append(f" ± {_rounded(half, half)}", style="cyan")


def _rounded(value: Any, half: float | None) -> str:
    """As many digits as the interval leaves sure, and one more.

    >>> _rounded(22026233.28, 166400.0), _rounded(0.0512, 0.0004), _rounded(7.25, None)
    ('22,026,233', '0.05120', '7.25')
    """
    number = float(value)
    if not half or not math.isfinite(half):
        return f"{number:,.6g}" if abs(number) < 1e6 else f"{number:,.0f}"
    return f"{number:,.{max(0, 1 - math.floor(math.log10(half)))}f}"


def _state(answer: OnlineAnswer, over: str) -> str:
    took = f"{readable.seconds(answer.elapsed_s)} s"
    if answer.exact:
        return f"exact, {took}"
    parts = [f"{answer.fraction:.1%} of a {answer.sample}".replace("a random", "random")]
    if answer.error is not None:
        parts.append(f"within {answer.error:.2%} at {answer.confidence:.0%} confidence")
    parts.append(took)
    if over:
        return ", ".join([*parts, over])
    if answer.eta_s.wanted_s is not None:
        parts.append(f"near enough in about {readable.seconds(answer.eta_s.wanted_s)} s")
    if answer.eta_s.exact_s is not None:
        parts.append(f"exact in about {readable.seconds(answer.eta_s.exact_s)} s")
    return ", ".join([*parts, "Ctrl-C keeps this answer"])
