"""Charts of experiments in a terminal: bars and lines made of letters."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from queryard.cli.trace_tables import STEPS
from queryard.core import readable

from .bars import Column, columns_of

if TYPE_CHECKING:
    from queryard.figures.panels import Axis, Line, Panel

    from .outcome import Chart

# Of a chart with its title: more between two tables would be too much to read.
MOST_LINES = 25
# Wider, a bar would end too far from its name.
MOST_WIDTH = 100
MOST_CELLS, ROOMY_CELLS, LEAST_CELLS = 40, 8, 3
# From here on thousands are told where there is little room.
MANY = 10_000
# Bars of a panel too wide to be shown in any other way.
MOST_BARS = 20
GAP = 2
EIGHTHS, FULL = "▏▎▍▌▋▊▉█", "█"
CUT_OFF = "▶"


def picture_of(console: Console, chart: Chart) -> Iterator[RenderableType]:
    """A chart with as many of its panels as there is room for, at least the first."""
    width = min(console.width, MOST_WIDTH)
    room = MOST_LINES - 2  # the title, and what is said of the rest
    blocks: list[list[RenderableType]] = []
    for draw in (_below, _beside):
        blocks = [_block(panel, draw, width) for panel in chart.panels if panel.bars or panel.lines]
        if _lines(console, blocks) <= room:
            break
    shown = len(blocks)
    while shown > 1 and _lines(console, blocks[:shown]) > room:
        shown -= 1
    yield Text(chart.title, style="italic")
    for block in blocks[:shown]:
        yield from block
    if shown < len(blocks):
        more = readable.several(len(blocks) - shown, "more panel")
        yield Text(f"{more} in the figure that --report DIR writes", style="dim")


def _block(panel: Panel, draw: Callable[[Panel, int], Table], width: int) -> list[RenderableType]:
    title = f"{panel.title}; {panel.y.label}" if panel.y.label else panel.title
    body = draw(panel, width - GAP) if panel.bars else _traces(panel, width - GAP)
    return [Text(title, style="dim"), Padding(body, (0, 0, 0, GAP))]


def _lines(console: Console, blocks: Iterable[Iterable[RenderableType]]) -> int:
    return sum(len(console.render_lines(part)) for block in blocks for part in block)


# --- bars ----------------------------------------------------------------------------------


def _below(panel: Panel, width: int) -> Table:
    """Each bar in a line of its own, group by group, with its interval."""
    return _listed(panel, _by_group(panel), width)


def _beside(panel: Panel, width: int) -> Table:
    """Bars of a group beside one another, or those of a name if that leaves more room."""
    told = {(column.group, column.name): column for column in columns_of(panel)}
    names = list(dict.fromkeys(name for _, name in told))
    groups = list(dict.fromkeys(column.group for column in _by_group(panel)))
    value = max(len(_brief(column)) for column in told.values()) + 1
    by_group, by_name = (
        _cells(width - _widest(rows), [max(map(len, head.split())) for head in heads], value)
        for rows, heads in ((groups, names), (names, groups))
    )
    if max(by_group, by_name) < LEAST_CELLS:
        return _some(panel, width)
    rows, heads, cells = groups, names, by_group
    if by_group < min(ROOMY_CELLS, by_name):
        rows, heads, cells = names, groups, by_name
        told = {(name, group): column for (group, name), column in told.items()}
    scale = _scale_of(panel, told.values(), cells)
    table = _grid("", *heads)
    for row in rows:
        of_row = (told.get((row, head)) for head in heads)
        drawn = (f"{scale.bar(of.value)} {_brief(of)}" if of else "" for of in of_row)
        _add(table, _in_line(row), *drawn)
    for column in table.columns[1:]:
        column.min_width = scale.cells + value
    return table


def _cells(width: int, heads: Sequence[int], value: int) -> int:
    """How long bars can be that stand in line below words so long, each with its value."""
    for cells in range(MOST_CELLS, 0, -1):
        if sum(GAP + max(head, cells + value) for head in heads) <= width:
            return cells
    return 0


def _some(panel: Panel, width: int) -> Table:
    """The first bars, of too many names and groups."""
    table = _listed(panel, _by_group(panel)[:MOST_BARS], width)
    _add(table, "…")
    return table


def _listed(panel: Panel, columns: Sequence[Column], width: int) -> Table:
    labels = _widest(column.group for column in columns), _widest(c.name for c in columns)
    room = width - sum(labels) - 2 * GAP - _widest(column.text for column in columns) - 1
    scale = _scale_of(panel, columns, max(LEAST_CELLS, min(MOST_CELLS, room)))
    table = _grid("", "", "")
    before = ""
    for column in columns:
        group = "" if column.group == before else _in_line(column.group)
        _add(table, group, column.name, f"{scale.bar(column.value)} {column.text}")
        before = column.group
    return table


def _by_group(panel: Panel) -> list[Column]:
    places = {group: place for place, group in panel.x.ticks}
    return sorted(columns_of(panel), key=lambda column: places[column.group])


def _brief(column: Column) -> str:
    """Without its interval."""
    if abs(column.value) >= MANY:
        return f"{column.value / 1000:,.0f}k"
    return column.text.split(" (")[0]


class Scale(NamedTuple):
    """So many letters from the least value, or 0, to the highest that is drawn."""

    low: float
    high: float
    cells: int

    def bar(self, value: float) -> str:
        """A bar from 0 on; what is below 0 has its bar on the other side.

        >>> Scale(0, 10, 4).bar(5), Scale(0, 10, 4).bar(0.01), Scale(0, 10, 4).bar(20)
        ('██', '▏', '███▶')
        >>> Scale(-5, 5, 8).bar(5), Scale(-5, 5, 8).bar(-2.5)
        ('    ████', '  ██')
        """
        if not math.isfinite(value):
            return ""
        cell = (self.high - self.low) / self.cells
        left = math.ceil(-self.low / cell)
        if value < 0:
            cells = max(1, round(-value / cell))
            return " " * (left - cells) + FULL * cells
        most = self.cells - left
        if value > self.high:
            return " " * left + FULL * (most - 1) + CUT_OFF
        steps = min(len(EIGHTHS) * most, round(len(EIGHTHS) * value / cell))
        if value > 0:
            steps = max(1, steps)
        whole, rest = divmod(steps, len(EIGHTHS))
        return " " * left + FULL * whole + (EIGHTHS[rest - 1] if rest else "")


def _scale_of(panel: Panel, columns: Iterable[Column], cells: int) -> Scale:
    values = [0.0, *(column.value for column in columns if math.isfinite(column.value))]
    low, high = min(values), min(max(values), panel.y.high)
    return Scale(low, high if high > low else low + 1.0, cells)


# --- lines ---------------------------------------------------------------------------------


def _traces(panel: Panel, width: int) -> Table:
    """A line as a row of small bars, with its height in the middle and at most."""
    x = panel.x
    by = f"{x.label}, {x.low:g} to {x.high:,.4g}" + (" (log)" if x.scale == "log" else "")
    heads = ("middle", "at most")
    names = _widest(line.name for line in panel.lines)
    cells = max(LEAST_CELLS, min(MOST_CELLS, width - names - 3 * GAP - sum(map(len, heads))))
    places = [_place(x, (cell + 0.5) / cells) for cell in range(cells)]
    table = _grid("", by, *heads)
    for column in table.columns[2:]:
        column.justify = "right"
    for line in panel.lines:
        drawn = "".join(_step(panel.y, _height(line, place)) for place in places)
        most = max((y for y in line.y if not math.isnan(y)), default=None)
        values = (_height(line, _place(x, 0.5)), most)
        _add(table, line.name, drawn, *map(readable.score, values))
    return table


def _place(axis: Axis, share: float) -> float:
    if axis.scale == "log":
        return axis.low * math.pow(axis.high / axis.low, share)
    return axis.low + (axis.high - axis.low) * share


def _height(line: Line, x: float) -> float | None:
    """None before its first point, and in gaps."""
    place = bisect_right(line.x, x) - 1
    return None if place < 0 or math.isnan(line.y[place]) else line.y[place]


def _step(axis: Axis, value: float | None) -> str:
    if value is None:
        return STEPS[0]
    share = (value - axis.low) / (axis.high - axis.low)
    return STEPS[max(0, min(len(STEPS) - 1, math.ceil(share * (len(STEPS) - 1))))]


# --- both ----------------------------------------------------------------------------------


def _grid(*heads: str) -> Table:
    is_headed = any(heads)
    table = Table(box=None, show_header=is_headed, pad_edge=False, padding=(0, GAP, 0, 0))
    for head in heads:
        table.add_column(Text(head), overflow="fold", header_style="dim")
    return table


def _add(table: Table, *cells: str) -> None:
    # As texts: a name in brackets is no instruction to the console.
    table.add_row(*map(Text, cells))


def _widest(texts: Iterable[str]) -> int:
    return max(len(_in_line(text)) for text in texts)


def _in_line(text: str) -> str:
    return " ".join(text.split())
