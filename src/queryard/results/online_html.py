"""A refining answer in a notebook: a table with an error bar behind each estimated value."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

MOST_ROWS = 50
BAR_PX = 90


class Refined(Protocol):
    """An answer with intervals: `queryard.results.online.OnlineAnswer`."""

    @property
    def columns(self) -> list[str]: ...
    @property
    def labels(self) -> list[str]: ...
    @property
    def low(self) -> Mapping[str, Sequence[float | None]]: ...
    @property
    def high(self) -> Mapping[str, Sequence[float | None]]: ...
    @property
    def marks(self) -> Sequence[str]: ...
    @property
    def notes(self) -> Sequence[str]: ...
    @property
    def fraction(self) -> float: ...
    @property
    def error(self) -> float | None: ...
    @property
    def exact(self) -> bool: ...
    @property
    def sample(self) -> str: ...
    @property
    def elapsed_s(self) -> float: ...
    def rows(self) -> list[tuple[Any, ...]]: ...
    def __len__(self) -> int: ...


def answer_html(answer: Refined) -> str:
    """The first rows as a table; the widest interval of a column fills the width of a bar."""
    rows = answer.rows()[:MOST_ROWS]
    head = "".join(f"<th>{html.escape(name)}</th>" for name in answer.columns)
    widest = {name: _widest(answer, name, rows) for name in answer.labels}
    body = []
    for place, row in enumerate(rows):
        cells = []
        for name, value in zip(answer.labels, row, strict=True):
            cells.append(f"<td>{html.escape(_told(value))}{_bar(answer, name, place, widest)}</td>")
        mark = answer.marks[place] if answer.marks else ""
        body.append(f"<tr>{''.join(cells)}<td><small>{html.escape(mark)}</small></td></tr>")
    more = len(answer) - len(rows)
    notes = [_state(answer), *answer.notes, *([f"{more} more rows"] if more else [])]
    told = "<br>".join(html.escape(note) for note in notes)
    return (
        f"<table><thead><tr>{head}<th></th></tr></thead><tbody>{''.join(body)}</tbody></table>"
        f"<progress value='{answer.fraction:.4f}' max='1'></progress> <small>{told}</small>"
    )


def _state(answer: Refined) -> str:
    if answer.exact:
        return f"exact, {answer.elapsed_s:.2f} s"
    error = "no interval yet" if answer.error is None else f"within {answer.error:.2%}"
    return f"{answer.fraction:.1%} read of {answer.sample}, {error}, {answer.elapsed_s:.2f} s"


def _ends(answer: Refined, name: str, place: int) -> tuple[float, float] | None:
    if name not in answer.low:
        return None
    low, high = answer.low[name][place], answer.high[name][place]
    return None if low is None or high is None else (low, high)


def _widest(answer: Refined, name: str, rows: Sequence[Any]) -> float:
    ends = [_ends(answer, name, place) for place in range(len(rows))]
    return max((high - low for low, high in filter(None, ends)), default=0.0)


def _bar(answer: Refined, name: str, place: int, widest: dict[str, float]) -> str:
    ends = _ends(answer, name, place)
    if ends is None or answer.exact:
        return ""
    low, high = ends
    # As wide as it was at one percent of the data, it would fill the cell: bars shrink with time.
    share = 0.0 if not widest[name] else (high - low) / widest[name]
    scale = min(1.0, (answer.error or 0.0) * 20)
    width = max(1, round(BAR_PX * share * scale))
    half = _told((high - low) / 2)
    return (
        f"<div title='{_told(low)} to {_told(high)}' style='display:inline-block;margin-left:6px;"
        f"height:6px;width:{width}px;background:#8aa4c8'></div> <small>± {half}</small>"
    )


def _told(value: Any) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else str(value)
