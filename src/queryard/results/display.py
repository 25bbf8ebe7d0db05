"""Tables for people: aligned, cropped to the width there is, with the count of rows below."""

from __future__ import annotations

import datetime as dt
import decimal
import html
import io
import math
import sys
from collections.abc import Iterable, Sequence
from typing import IO, Any

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

from queryard.core.readable import several

from .values import written_values

NULL = "NULL"
NARROWEST = 8  # a column of text is not cropped below this before columns are left out
WIDEST = 60  # nor wider than this as long as others need the room
_GAP = 3
_NUMBERS = ("INT", "DECIMAL", "DOUBLE", "FLOAT", "BIGNUM")
_LINES = str.maketrans({"\n": "↵", "\r": "", "\t": " ", "\x1b": "␛", "\0": "␀"})


def print_rows(
    table: Any,
    types: Sequence[str],
    more: bool = False,
    *,
    file: IO[str] | None = None,
    note: str = "",
    hint: str = "",
) -> None:
    """Print rows with their column names and types, and how many there are.

    `more` says that there are others, `hint` how to see them, `note` goes behind the count. On a
    terminal, text is cropped and columns are left out until it fits; elsewhere nothing is.
    """
    out = file or sys.stdout
    if (plan := _plan_text(table)) is not None:
        print(plan, file=out)
        return
    console = _console(out)
    room = console.width if console.is_terminal else None
    if room is None:
        console = _console(out, width=_ENDLESS)
    grid = _Grid(table, types)
    shown = grid.fit(room)
    console.print(grid.drawn(shown), no_wrap=True, crop=False)
    footer = _footer(table.num_rows, more, grid, shown, note, hint)
    console.print(Text(footer, style="dim"), soft_wrap=True)


def _console(out: IO[str], width: int | None = None) -> Console:
    # In a notebook rich would show what is printed as a cell's output, whatever the file is.
    return Console(file=out, highlight=False, width=width, force_jupyter=False)


def rows_as_text(table: Any, types: Sequence[str], more: bool = False, width: int = 100) -> str:
    """The same as text without colours, cropped to a width."""
    if (plan := _plan_text(table)) is not None:
        return plan
    out = io.StringIO()
    grid = _Grid(table, types)
    shown = grid.fit(width)
    console = Console(file=out, width=_ENDLESS, color_system=None, force_jupyter=False)
    console.print(grid.drawn(shown), no_wrap=True)
    console.print(_footer(table.num_rows, more, grid, shown), soft_wrap=True, markup=False)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def rows_as_html(table: Any, types: Sequence[str], more: bool = False) -> str:
    """A table for a notebook."""
    if (plan := _plan_text(table)) is not None:
        return f"<pre>{html.escape(plan)}</pre>"
    grid = _Grid(table, types)
    head = "".join(
        f"<th style='text-align:{'right' if right else 'left'}'>{html.escape(name)}<br>"
        f"<small style='opacity:.6;font-weight:normal'>{html.escape(kind.lower())}</small></th>"
        for name, kind, right in zip(grid.names, types, grid.numeric, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f"<td style='text-align:{'right' if right else 'left'}'>"
            + ("<i style='opacity:.5'>NULL</i>" if text is None else html.escape(text))
            + "</td>"
            for text, right in zip(row, grid.numeric, strict=True)
        )
        + "</tr>"
        for row in grid.rows
    )
    count = html.escape(row_count(table.num_rows, more))
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<small style='opacity:.6'>{count}</small>"
    )


def _plan_text(table: Any) -> str | None:
    """The plan itself if the rows are those of an EXPLAIN: a drawing does not fit into a cell."""
    if table.column_names != ["explain_key", "explain_value"] or not table.num_rows:
        return None
    return "\n".join(str(plan).rstrip("\n") for plan in table.column(1).to_pylist())


def row_count(rows: int, more: bool = False) -> str:
    """
    >>> row_count(1), row_count(1234), row_count(20, more=True)
    ('1 row', '1,234 rows', '20 rows, and there are more')
    """
    count = several(rows, "row")
    return f"{count}, and there are more" if more else count


def value_text(value: Any) -> str:
    """A value as SQL would write it.

    >>> value_text(True), value_text(1e20), value_text([1, None]), value_text({"a": b"x\\x00"})
    ('true', '1e+20', '[1, NULL]', "{'a': x\\\\x00}")
    """
    match value:
        case None:
            return NULL
        case bool():
            return "true" if value else "false"
        case float():
            return repr(value) if math.isfinite(value) else str(value)
        case decimal.Decimal():
            return format(value, "f")
        case bytes():
            return "".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02X}" for b in value)
        case dt.datetime():
            return value.isoformat(" ")
        case list() | tuple():
            return f"[{', '.join(map(value_text, value))}]"
        case dict():
            inner = (f"{_key(key)}: {value_text(item)}" for key, item in value.items())
            return f"{{{', '.join(inner)}}}"
    return str(value)


def _key(key: Any) -> str:
    return f"'{key}'" if isinstance(key, str) else value_text(key)


class _Grid:
    """The texts of a table, and how they fit into a width."""

    def __init__(self, table: Any, types: Sequence[str]) -> None:
        self.names = [name.translate(_LINES) for name in table.column_names]
        self.types = list(types)
        self.numeric = [_is_number(kind) for kind in types]
        columns = [
            [None if v is None else value_text(v).translate(_LINES) for v in values]
            for values in map(written_values, table.columns, types)
        ]
        self.rows = list(zip(*columns, strict=True))
        self.widths = [
            max([cell_len(name), _type_width(kind), *(cell_len(t or NULL) for t in texts)])
            for name, kind, texts in zip(self.names, types, columns, strict=True)
        ]

    def fit(self, room: int | None) -> dict[int, int]:
        """The columns to show and their widths; as many as fit, from both ends."""
        every = range(len(self.names))
        if room is None or self._total(self.widths) <= room:
            return {i: self.widths[i] for i in every}
        # Numbers are of no use cropped.
        least = [
            width if number else min(width, max(NARROWEST, min(cell_len(name), 16)))
            for width, number, name in zip(self.widths, self.numeric, self.names, strict=True)
        ]
        shown = list(every)
        while len(shown) > 1 and self._total([least[i] for i in shown], len(shown)) > room:
            shown.remove(shown[len(shown) // 2])
        widths = {i: min(self.widths[i], WIDEST, room - 4) for i in shown}
        gaps = len(shown) < len(self.names)
        # Take from the widest until it fits.
        while self._total(widths.values()) + (_GAP + 1) * gaps > room:
            widest = max(shown, key=lambda i: widths[i] - (10**6 if widths[i] <= least[i] else 0))
            if widths[widest] <= min(least[widest], NARROWEST):
                break
            widths[widest] -= 1
        spare = room - self._total(widths.values()) - (_GAP + 1) * gaps
        for i in shown:
            more = min(spare, self.widths[i] - widths[i])
            if more > 0:
                widths[i] += more
                spare -= more
        return widths

    def _total(self, widths: Iterable[int], shown: int | None = None) -> int:
        """With borders and, if columns are left out, the column that says so."""
        given = list(widths)
        left_out = shown is not None and shown < len(self.names)
        return sum(given) + _GAP * len(given) + 1 + (_GAP + 1 if left_out else 0)

    def drawn(self, shown: dict[int, int]) -> Table:
        """The table."""
        table = Table(box=box.ROUNDED, header_style="bold", border_style="dim", pad_edge=True)
        last = 0
        gap_before: set[int] = set()
        for i in shown:
            if i > last:
                gap_before.add(i)
                table.add_column("…", width=1)
            last = i + 1
            width = shown[i]
            heading = Text(_crop(self.names[i], width))
            heading.append("\n" + _crop(_short_type(self.types[i]), width), style="not bold dim")
            justify = "right" if self.numeric[i] else "left"
            table.add_column(heading, justify=justify, width=width, no_wrap=True)  # type: ignore[arg-type]
        for row in self.rows:
            cells: list[Text] = []
            for i, width in shown.items():
                if i in gap_before:
                    cells.append(Text("…", style="dim"))
                text = row[i]
                cells.append(Text(NULL, style="dim") if text is None else Text(_crop(text, width)))
            table.add_row(*cells)
        return table


_ENDLESS = 1_000_000


def _footer(
    rows: int, more: bool, grid: _Grid, shown: dict[int, int], note: str = "", hint: str = ""
) -> str:
    parts = [row_count(rows, more)]
    if len(shown) < len(grid.names):
        parts.append(f"{len(shown)} of {several(len(grid.names), 'column')} fit")
    if note:
        parts.append(note)
    text = " · ".join(parts)
    return f"{text} ({hint})" if hint and more else text


def _is_number(kind: str) -> bool:
    """
    >>> _is_number("DECIMAL(15,2)"), _is_number("INTERVAL"), _is_number("INTEGER[]")
    (True, False, False)
    """
    head = kind.partition("(")[0]
    return head != "INTERVAL" and "[" not in kind and any(word in head for word in _NUMBERS)


def _short_type(kind: str) -> str:
    return kind.lower().replace(" with time zone", "tz")


def _type_width(kind: str) -> int:
    # Long types (structs, enumerations) do not make a column wide.
    return min(cell_len(_short_type(kind)), 16)


def _crop(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - 1)).rstrip() + "…"
