"""Policies side by side, as a table for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from textwrap import wrap
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from queryard.core import readable

from .scores import ERROR_CUT, Scores

BEST = "bold green"
IDEAL = "italic dim"


@dataclass(frozen=True, slots=True)
class _Column:
    """A score, its title, how it is written, and which end of it is the better one, if any."""

    title: str
    value: Callable[[Scores], float | None]
    write: Callable[[Any], str]
    best: Callable[[list[float]], float] | None

    def text(self, row: Scores) -> str:
        return self.write(self.value(row))


COLUMNS = (
    _Column("mean\nresp.\n[s]", attrgetter("mean_response_s"), readable.seconds, min),
    _Column("p95\nresp.\n[s]", attrgetter("p95_response_s"), readable.seconds, min),
    _Column("mean\nslow-\ndown", attrgetter("mean_slowdown"), readable.ratio, min),
    _Column("max\nslow-\ndown", attrgetter("max_slowdown"), readable.ratio, min),
    _Column(f"error\n−{ERROR_CUT:.0%}\n[s]", attrgetter("mean_error_cut_s"), readable.seconds, min),
    _Column("late\nof\n{deadlines}", attrgetter("deadlines_missed"), readable.count, min),
    _Column("make-\nspan\n[s]", attrgetter("makespan_s"), readable.seconds, min),
    _Column("slots\nused\n[%]", attrgetter("utilisation"), readable.hundredths, max),
    _Column("fair-\nness\nJain", attrgetter("fairness"), readable.index, max),
)
NODES = (
    _Column("mean\nnodes", attrgetter("mean_nodes"), readable.ratio, None),
    _Column("most\nnodes", attrgetter("most_nodes"), readable.count, None),
    _Column("node-\nhours", attrgetter("node_hours"), readable.ratio, min),
)


def comparison_table(
    title: str,
    rows: Sequence[Scores],
    references: Sequence[Scores] = (),
    objectives: Mapping[str, Mapping[str, float]] | None = None,
) -> Group:
    """Policies, then the ideals; the best policy of a column stands out, unless all are alike.

    A column in which no policy has a number is left out. Nodes that came and went, and the scores
    of policies by `objectives`, are a second table, as 80 characters are full.
    """
    heading = Text(title, style="bold")  # which may be longer than the table is wide
    scores = [_score(name, found) for name, found in (objectives or {}).items()]
    more = _known((*NODES, *scores), rows)
    found: list[RenderableType] = [_table(_known(COLUMNS, rows), rows, references)]
    if more:
        found += [Text(), _table(more, rows)]
    return Group(heading, *found)


def _known(columns: Sequence[_Column], rows: Sequence[Scores]) -> list[_Column]:
    return [c for c in columns if any(c.value(row) is not None for row in rows)]


def _table(
    columns: Sequence[_Column], rows: Sequence[Scores], references: Sequence[Scores] = ()
) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 0, 0, 1),  # so that ten columns fit into 80 characters
        pad_edge=False,
    )
    table.add_column("policy", overflow="fold", vertical="bottom")
    for column in columns:
        heading = column.title.format(deadlines=max(row.deadlines for row in rows))
        table.add_column(Text(heading), justify="right", no_wrap=True, vertical="bottom")
    best = [_best_text(column, rows) for column in columns]
    for row in rows:
        texts = [column.text(row) for column in columns]
        cells = [
            Text(text, style=BEST if text == winner else "")
            for text, winner in zip(texts, best, strict=True)
        ]
        table.add_row(Text(row.name), *cells)
    if references:
        table.add_section()
    for row in references:
        table.add_row(Text(row.name), *(column.text(row) for column in columns), style=IDEAL)
    return table


def _score(objective: str, scores: Mapping[str, float]) -> _Column:
    title = "\n".join(["score:", *wrap(objective, 24)])
    return _Column(title, lambda row: scores.get(row.name), readable.score, min)


def _best_text(column: _Column, rows: Sequence[Scores]) -> str | None:
    """The best value as it is written, so that what looks equal is treated as equal."""
    texts = {value: column.text(row) for row in rows if (value := column.value(row)) is not None}
    if column.best is None or len(set(texts.values())) < 2:
        return None
    return texts[column.best(list(texts))]
