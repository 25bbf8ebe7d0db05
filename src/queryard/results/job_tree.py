"""Jobs and operators as a tree: what is expected of each, and what came of it beside that."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from queryard.core import readable
from queryard.core.model import Operator
from queryard.estimate.expected import Expected

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

Room = Literal["wide", "narrow", "very narrow"]
_Written = Callable[[float], str]
LONGEST = 60  # of what is said about a job, in text
SHORTEST = 16  # on a narrow terminal
# From here on an error is marked, unless it is about next to nothing.
LARGE = 2.0
NOTEWORTHY_ROWS, NOTEWORTHY_BYTES, NOTEWORTHY_S = 100.0, 10_000.0, 0.005


@dataclass(frozen=True, slots=True)
class ExplainedJob:
    """A job of a staged plan, or an operator of DuckDB's; what is not known is None."""

    name: str
    operator: Operator
    what: str
    inputs: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    map_tasks: int | None = None
    reduce_tasks: int | None = None
    rows_expected: Expected | None = None
    bytes_expected: Expected | None = None
    seconds_expected: Expected | None = None
    memory_expected: Expected | None = None
    rows: float | None = None
    bytes: float | None = None
    seconds: float | None = None
    """Of work, over all slots."""


def job_table(
    jobs: Sequence[ExplainedJob],
    plan: Literal["native", "staged"],
    analyzed: bool,
    room: Room = "wide",
) -> Table:
    """For a console of rich's: a tree, the answer on top, with figures beside it.

    In a narrow one, intervals stand below their figures and classes are left out; in a very narrow
    one there are no intervals, and beside real figures no memory.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    table.add_column("operator" if plan == "native" else "job", no_wrap=True)
    if room == "wide":
        table.add_column("class", no_wrap=True, min_width=7)
    rows = {job.name: [_broken(c, room) for c in _row(job, plan, analyzed)] for job in jobs}
    titles = _titles(plan, analyzed)
    if room == "very narrow" and analyzed:
        place = titles.index("memory expected")
        for cells in (titles, *rows.values()):
            del cells[place]
    for place, title in enumerate(titles):
        # Where it is narrow, titles break and the first column is cut, but never a number.
        lines = [line for cells in rows.values() for line in cells[place].split("\n")]
        least = max(map(len, [*lines, *title.split()]))
        table.add_column(title, justify="right", min_width=least)
    for before, job, again in _tree(jobs):
        label = Text(before, style="dim")
        label.append(job.name if plan == "staged" else "", style="bold")
        text = f" {job.what}" if plan == "staged" else job.what
        label.append(" (see above)" if again else _crop(text, LONGEST - len(before)))
        kind = [] if room != "wide" else ["" if again else job.operator]
        table.add_row(label, *kind, *(() if again else map(_marked, rows[job.name])))
    return table


def fitted(
    console: Console, jobs: Sequence[ExplainedJob], plan: Literal["native", "staged"]
) -> Table:
    """The tree as it fits into a console."""
    from rich.measure import Measurement

    analyzed = any(job.rows is not None for job in jobs)
    endless = console.options.update(width=10_000)
    table = job_table(jobs, plan, analyzed)
    if Measurement.get(console, endless, table).maximum <= console.width:
        return table
    narrower: tuple[Room, ...] = ("narrow", "very narrow")
    for room in narrower:
        table = job_table(jobs, plan, analyzed, room)
        labels = table.columns[0]
        longest = max((len(str(cell)) for cell in labels.cells), default=0)
        others = Measurement.get(console, endless, table).maximum - longest
        labels.overflow = "ellipsis"
        labels.max_width = max(SHORTEST, console.width - others)
        if others + SHORTEST <= console.width:
            break
    return table


def as_text(*lines: RenderableType) -> str:
    """What a terminal without colours, and of any width, would show."""
    from rich.console import Console

    out = io.StringIO()
    # In a notebook rich would show the text instead of writing it.
    console = Console(
        file=out, width=10_000, color_system=None, highlight=False, force_jupyter=False
    )
    for line in lines:
        console.print(line, markup=False)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _titles(plan: str, analyzed: bool) -> list[str]:
    titles = ["tasks"] if plan == "staged" else []
    titles += ["rows expected", "size expected", "time expected", "memory expected"]
    return titles + (["rows", "size", "slot time"] if analyzed else [])


def _row(job: ExplainedJob, plan: str, analyzed: bool) -> list[str]:
    cells = []
    if plan == "staged":
        both = f"{job.map_tasks or 0}+{job.reduce_tasks}"
        cells.append(both if job.reduce_tasks else f"{job.map_tasks or 0}")
    cells += [
        rows_text(job.rows_expected),
        size_text(job.bytes_expected),
        seconds_text(job.seconds_expected),
        size_text(job.memory_expected) if _holds(job.memory_expected) else "",
    ]
    if analyzed:
        rows = "" if job.rows is None else f"{job.rows:,.0f}"
        size = "" if job.bytes is None else readable.size(job.bytes)
        seconds = "" if job.seconds is None else time_text(job.seconds)
        cells += [
            rows + _factor(job.rows_expected, job.rows, NOTEWORTHY_ROWS),
            size + _factor(job.bytes_expected, job.bytes, NOTEWORTHY_BYTES),
            seconds + _factor(job.seconds_expected, job.seconds, NOTEWORTHY_S),
        ]
    return cells


def _tree(jobs: Sequence[ExplainedJob]) -> Iterator[tuple[str, ExplainedJob, bool]]:
    """Every job behind what its lines look like, and whether it was there before."""
    by_name = {job.name: job for job in jobs}
    seen: set[str] = set()

    def walk(name: str, before: str, beside: str) -> Iterator[tuple[str, ExplainedJob, bool]]:
        job = by_name[name]
        again = name in seen
        yield before, job, again
        if again:
            return
        seen.add(name)
        for place, inner in enumerate(job.inputs):
            is_last = place == len(job.inputs) - 1
            yield from walk(
                inner,
                beside + ("└─ " if is_last else "├─ "),
                beside + ("   " if is_last else "│  "),
            )

    if jobs:
        yield from walk(jobs[-1].name, "", "")


# --- figures as text -----------------------------------------------------------------------------


def rows_text(value: Expected | None) -> str:
    """Rows, and their interval where there is doubt.

    >>> rows_text(Expected(1234.0, 400.0, 5_600_000.0)), rows_text(Expected(7.0, 7.0, 7.0))
    ('1,234 (400–5.6 M)', '7')
    """
    return _with_interval(value, lambda one: f"{one:,.0f}", _short_count)


def several_rows(value: Expected) -> str:
    """
    >>> several_rows(Expected(1.0, 1.0, 1.0)), several_rows(Expected(7.0, 1.0, 40.0))
    ('1 row', '7 (1–40) rows')
    """
    text = rows_text(value)
    return readable.several(1, "row") if text == "1" else f"{text} rows"


def size_text(value: Expected | None) -> str:
    """Bytes, and their interval.

    >>> size_text(Expected(2e6, 1e6, 4e6))
    '2.0 MB (1.0–4.0 MB)'
    """
    return _with_interval(value, readable.size, readable.size)


def seconds_text(value: Expected | None) -> str:
    """Seconds, and their interval.

    >>> seconds_text(Expected(0.5, 0.25, 1.0))
    '500 ms (250 ms–1.00 s)'
    """
    return _with_interval(value, time_text, time_text)


def time_text(seconds: float) -> str:
    """Seconds or milliseconds, in three digits at most.

    >>> time_text(0.00042), time_text(0.0215), time_text(0.9996), time_text(75.0)
    ('0.42 ms', '21.5 ms', '1.00 s', '75.0 s')
    """
    if seconds < 0.9995:
        value = seconds * 1000
        return f"{value:.2f} ms" if value < 9.995 else f"{value:.3g} ms"
    return f"{readable.seconds(seconds)} s"


def _with_interval(value: Expected | None, whole: _Written, short: _Written) -> str:
    if value is None:
        return ""
    low, high = short(value.low), short(value.high)
    if low == high:
        return whole(value.value)
    number, _, unit = low.partition(" ")
    if unit and high.endswith(f" {unit}"):
        low = number
    return f"{whole(value.value)} ({low}–{high})"


def _short_count(value: float) -> str:
    for unit, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= 10 * factor or (value >= factor and unit != "k"):
            return f"{value / factor:,.3g} {unit}"
    return f"{value:,.0f}"


def _holds(value: Expected | None) -> bool:
    return value is not None and value.value > 0


def _factor(expected: Expected | None, actual: float | None, least: float) -> str:
    """A mark beside what came, if it is far from what was expected."""
    if expected is None or actual is None or max(actual, expected.value) < least:
        return ""
    off = expected.off_by(max(actual, least / LARGE))
    if off < LARGE:
        return ""
    return f" {'▲' if actual > expected.value else '▼'}{readable.ratio(off)}×"


def _broken(cell: str, room: Room) -> str:
    """The interval of a figure below it, and so is a mark."""
    if room == "very narrow":
        cell = re.sub(r" \(.*\)", "", cell)
    return cell if room == "wide" else re.sub(r" (?=[(▲▼])", "\n", cell)


def _marked(cell: str) -> Text:
    from rich.text import Text

    place = max(cell.find("▲"), cell.find("▼"))
    if place < 0:
        return Text(cell)
    return Text.assemble(cell[:place], (cell[place:], "yellow"))


def _crop(text: str, length: int) -> str:
    return text if len(text) <= length else text[: max(length - 1, 8)] + "…"
