"""The Gantt chart: slots from top to bottom, time from left to right, coloured by their use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from queryard.core.readable import several
from queryard.metrics.rows import RunRows

from .lanes import Lanes, Piece, busiest, lay_out
from .palette import WASTED, Colouring
from .panels import Axis, Bar, Panel
from .timescale import Timescale, readable

MOST_ROWS = 24
MOST_CELLS = 480  # in a row
MOST_LABELS = 12
GAP = 0.06


def gantt(name: str, run: RunRows, colours: Colouring, time: Timescale, most_bars: int) -> Panel:
    """The chart of one run; with more bars than a reader can tell apart, an aggregate.

    The aggregate (the title says so) cuts the chart into cells of equal time and equally many
    slots. A cell has the colour of the query or tenant that used it most, and is blank if it was
    idle for more than half. Neighbours of one colour are one bar; where there are still too many,
    cells become longer.
    """
    title = f"{name}: the {colours.by} on each slot"
    lanes = lay_out(run)
    if not lanes.pieces:
        return Panel(title, time.axis, _axis([]), note="nothing ran")
    start_s = run.first_submit_s or 0.0
    if len(lanes.pieces) <= most_bars:
        bars = [_bar(piece, colours, time, start_s) for piece in lanes.pieces]
        return Panel(title, time.axis, _axis(lanes.nodes), tuple(bars))
    group = math.ceil(len(lanes.nodes) / MOST_ROWS)
    rows = [lane // group for lane in range(len(lanes.nodes))]
    cells = MOST_CELLS
    bars = _cells(lanes, rows, time.end_s / cells, start_s, colours, time)
    while len(bars) > most_bars and cells > 1:
        cells //= 2
        bars = _cells(lanes, rows, time.end_s / cells, start_s, colours, time)
    cell = f"{several(group, 'slot')} in {readable(time.end_s / cells, 2)}"
    title += f" (the main one of {cell})"
    return Panel(title, time.axis, _axis(lanes.nodes[::group]), tuple(bars))


def _bar(piece: Piece, colours: Colouring, time: Timescale, start_s: float) -> Bar:
    height = (1 - 2 * GAP) / piece.parts
    bottom = piece.lane + GAP + piece.part * height
    began_s, ended_s = piece.start_s - start_s, piece.end_s - start_s
    ending = ", without a result" if piece.wasted else ""
    riders = f", one of {piece.parts} that share a read" if piece.parts > 1 else ""
    return Bar(
        start=time.scaled(began_s),
        end=time.scaled(ended_s),
        bottom=bottom,
        top=bottom + height,
        colour=WASTED if piece.wasted else colours.of(piece.query),
        text=f"{piece.what}{riders}{ending}: {_span(began_s, ended_s)}",
    )


def _cells(
    lanes: Lanes,
    rows: Sequence[int],
    cell_s: float,
    start_s: float,
    colours: Colouring,
    time: Timescale,
) -> list[Bar]:
    """A bar for each run of cells in a row that show the same query or tenant."""
    slots = [len(list(members)) for _, members in groupby(rows)]
    shown = [
        (row, subject, place)
        for (row, place), (subject, used_s) in sorted(
            busiest(lanes.pieces, colours.subjects, rows, cell_s, start_s).items()
        )
        if used_s >= slots[row] * cell_s / 2
    ]
    bars = []
    # Cells side by side keep the same distance from their number in the list.
    numbered = enumerate(shown)
    for (row, subject, _), members in groupby(
        numbered, key=lambda item: (item[1][0], item[1][1], item[1][2] - item[0])
    ):
        places = [place for _, (_, _, place) in members]
        began_s, ended_s = places[0] * cell_s, (places[-1] + 1) * cell_s
        bars.append(
            Bar(
                start=time.scaled(began_s),
                end=min(time.scaled(ended_s), time.axis.high),
                bottom=row + GAP,
                top=row + 1 - GAP,
                colour=colours.colours.get(subject, WASTED),
                text=f"mostly {subject}: {_span(began_s, ended_s)}",
            )
        )
    return bars


def _span(began_s: float, ended_s: float) -> str:
    return f"{began_s:.6g} to {ended_s:.6g} s"


def _axis(nodes: Sequence[str]) -> Axis:
    """Nodes by name in the middle of their rows; of many nodes, some."""
    ticks = []
    row = 0
    for node, members in groupby(nodes):
        rows = len(list(members))
        ticks.append((row + rows / 2, node))
        row += rows
    if not ticks:
        return Axis("node", low=1, high=0, ticks=((0.5, ""),))
    every = math.ceil(len(ticks) / MOST_LABELS)
    return Axis("node", low=row, high=0, ticks=tuple(ticks[::every]))
