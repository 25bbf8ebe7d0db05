"""`queryard sql --online`: a table with intervals that is drawn again as the answer refines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from queryard.core import readable
from queryard.core.readable import several
from queryard.results.display import value_text

from .failures import complain

if TYPE_CHECKING:
    from queryard.live import Session
    from queryard.live.online import OnlineAnswers
    from queryard.results.online import OnlineAnswer

SHOWN_ROWS = 20
BAR_WIDTH = 40


def run_online(
    session: Session,
    sql: str,
    *,
    stop_at: float | None,
    confidence: float,
    within: str | None,
    rows: int | None,
) -> None:
    """Show answers as they come; on a pipe only the last. Ctrl-C keeps the last answer."""
    answers = session.online(
        sql, stop_at=stop_at, confidence=confidence, within=within, every="0.2 s"
    )
    most = SHOWN_ROWS if rows is None else rows or None
    console = Console(highlight=False)
    if console.is_terminal:
        last = _drawn(answers, console, most)
    else:
        last = None
        for last in answers:  # noqa: B007
            pass
    if last is None:
        complain("stopped before the first answer", "")
        return
    if not console.is_terminal:
        console = Console(highlight=False, width=200, file=sys.stdout)
        console.print(drawn_answer(last, most))


def _drawn(answers: OnlineAnswers, console: Console, most: int | None) -> OnlineAnswer | None:
    last: OnlineAnswer | None = None
    with Live(Text("planning …", style="dim"), console=console, auto_refresh=False) as live:
        try:
            for last in answers:
                live.update(drawn_answer(last, most), refresh=True)
        except KeyboardInterrupt:
            answers.stop()
            last = answers.last or last
            if last is not None:
                live.update(drawn_answer(last, most, stopped=True), refresh=True)
    return last


def drawn_answer(
    answer: OnlineAnswer, most: int | None, *, stopped: bool = False
) -> RenderableType:
    """Rows with the half-width of every interval, a bar of what was read, and what to know."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in answer.columns:
        table.add_column(name, justify="right" if name in answer.low else "left", no_wrap=True)
    if any(answer.marks):
        table.add_column("")
    shown = answer.rows()[:most]
    for place, row in enumerate(shown):
        cells = [
            _cell(answer, name, place, value)
            for name, value in zip(answer.columns, row, strict=True)
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
        lines.append(ProgressBar(total=1.0, completed=answer.fraction, width=BAR_WIDTH))
    lines.append(Text(_state(answer, stopped), style="dim"))
    lines += [Text(note, style="dim") for note in answer.notes]
    return Group(*lines)


def _cell(answer: OnlineAnswer, name: str, place: int, value: Any) -> Text:
    text = Text(value_text(value))
    low = answer.low.get(name)
    if low is None or answer.exact:
        return text
    at, end = low[place], answer.high[name][place]
    if at is None or end is None:
        return text.append(" ± ?", style="dim")
    return text.append(f" ± {(end - at) / 2:,.4g}", style="cyan")


def _state(answer: OnlineAnswer, stopped: bool) -> str:
    took = f"{readable.seconds(answer.elapsed_s)} s"
    if answer.exact:
        return f"exact, {took}"
    parts = [f"{answer.fraction:.1%} of {answer.sample}"]
    if answer.error is not None:
        parts.append(f"within {answer.error:.2%} at {answer.confidence:.0%} confidence")
    parts.append(took)
    if answer.eta_s.wanted_s is not None:
        parts.append(f"wanted error in about {readable.seconds(answer.eta_s.wanted_s)} s")
    if answer.eta_s.exact_s is not None:
        parts.append(f"exact in about {readable.seconds(answer.eta_s.exact_s)} s")
    parts.append("stopped" if stopped else "Ctrl-C keeps this answer")
    return ", ".join(parts)
