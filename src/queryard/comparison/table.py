"""Policies side by side, as a table for the terminal and for a notebook."""

from __future__ import annotations

import html
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
from queryard.core.errors import InvalidRecord, unknown_name

from .scores import ERROR_CUT, Scores

BEST = "bold green"
IDEAL = "italic dim"


@dataclass(frozen=True, slots=True)
class _Column:
    """A score: its name and title, how it is written, and which end is the better one, if any."""

    name: str
    title: str
    value: Callable[[Scores], float | None]
    write: Callable[[Any], str]
    best: Callable[[list[float]], float] | None

    def text(self, row: Scores) -> str:
        return self.write(self.value(row))


def _column(
    name: str,
    title: str,
    field: str,
    write: Callable[[Any], str],
    best: Callable[[list[float]], float] | None = min,
) -> _Column:
    return _Column(name, title, attrgetter(field), write, best)


COLUMNS = (
    _column("mean response", "mean\nresp.\n[s]", "mean_response_s", readable.seconds),
    _column("p95 response", "p95\nresp.\n[s]", "p95_response_s", readable.seconds),
    _column("mean slowdown", "mean\nslow-\ndown", "mean_slowdown", readable.ratio),
    _column("max slowdown", "max\nslow-\ndown", "max_slowdown", readable.ratio),
    _column("error", f"error\n−{ERROR_CUT:.0%}\n[s]", "mean_error_cut_s", readable.seconds),
    _column("deadlines missed", "late\nof\n{deadlines}", "deadlines_missed", readable.count),
    _column("makespan", "make-\nspan\n[s]", "makespan_s", readable.seconds),
    _column("slots used", "slots\nused\n[%]", "utilisation", readable.hundredths, max),
    _column("fairness", "fair-\nness\nJain", "fairness", readable.index, max),
)
NODES = (
    _column("mean nodes", "mean\nnodes", "mean_nodes", readable.ratio, None),
    _column("most nodes", "most\nnodes", "most_nodes", readable.count, None),
    _column("node-hours", "node-\nhours", "node_hours", readable.ratio),
)


def best_of(metric: str, rows: Sequence[Scores]) -> str | None:
    """The policy with the best value of a metric; the first of several, None if none has any."""
    judged = {column.name: column for column in (*COLUMNS, *NODES) if column.best is not None}
    if metric not in judged:
        raise InvalidRecord(unknown_name("metric", metric, judged))
    column = judged[metric]
    values = {row.name: value for row in rows if (value := column.value(row)) is not None}
    if column.best is None or not values:
        return None
    best = column.best(list(values.values()))
    return next(name for name, value in values.items() if value == best)


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


def comparison_html(title: str, rows: Sequence[Scores], references: Sequence[Scores] = ()) -> str:
    """The same as one table for a notebook."""
    columns = _known((*COLUMNS, *NODES), rows)
    best = [_best_text(column, rows) for column in columns]
    lines = ["<table>", f"<caption>{html.escape(title)}</caption>", "<thead><tr><th>policy</th>"]
    lines += [f"<th>{html.escape(column.name + _unit(column))}</th>" for column in columns]
    lines.append("</tr></thead><tbody>")
    for row in (*rows, *references):
        ideal = row in references
        lines.append(f"<tr><td>{_styled(row.name, 'i' if ideal else '')}</td>")
        for column, winner in zip(columns, best, strict=True):
            text = column.text(row)
            lines.append(f"<td>{_styled(text, 'i' if ideal else 'b' * (text == winner))}</td>")
        lines.append("</tr>")
    return "\n".join([*lines, "</tbody></table>"])


def _styled(text: str, tag: str) -> str:
    return f"<{tag}>{html.escape(text)}</{tag}>" if tag else html.escape(text)


def _unit(column: _Column) -> str:
    return "".join(f" {line}" for line in column.title.splitlines() if line.startswith("["))


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
    return _Column(objective, title, lambda row: scores.get(row.name), readable.score, min)


def _best_text(column: _Column, rows: Sequence[Scores]) -> str | None:
    """The best value as it is written, so that what looks equal is treated as equal."""
    texts = {value: column.text(row) for row in rows if (value := column.value(row)) is not None}
    if column.best is None or len(set(texts.values())) < 2:
        return None
    return texts[column.best(list(texts))]
