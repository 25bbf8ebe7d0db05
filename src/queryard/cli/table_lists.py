"""Tables and columns of a catalog, as plain data and for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from queryard.core import readable
from queryard.core.errors import QueryardError
from queryard.results.display import value_text
from queryard.sql.catalog import Catalog
from queryard.sql.catalog.advice import passed_over
from queryard.sql.catalog.quoting import plain_identifier, written_name

if TYPE_CHECKING:
    from .any_session import AnyCatalog

LONGEST, SHORTEST = 30, 8  # of the smallest and largest values


def describe_tables(catalog: AnyCatalog) -> list[dict[str, Any]]:
    """One entry per table; a table that cannot be read says why."""
    if not isinstance(catalog, Catalog):
        return catalog.described()
    return [_describe(catalog, key) for key in sorted(catalog.tables)]


def _describe(catalog: Catalog, key: str) -> dict[str, Any]:
    table = catalog[key]
    found: dict[str, Any] = {"name": key, "kind": table.kind}
    try:
        rows, exact = _rows(catalog, key)
        found |= {"rows": rows, "rows_exact": exact, "columns": len(table.columns)}
    except QueryardError as error:
        found |= {"rows": None, "rows_exact": False, "columns": None, "error": str(error)}
    return found | {"bytes": table.bytes, "files": len(table.files)}


def _rows(catalog: Catalog, key: str) -> tuple[float, bool]:
    known = catalog[key].rows
    if known is not None:
        return known, True
    statistics = catalog.statistics(key)
    return statistics.rows, False


def describe_columns(catalog: AnyCatalog, name: str) -> dict[str, Any]:
    """One table: what it is, and one entry per column."""
    if not isinstance(catalog, Catalog):
        return catalog.described_columns(name)
    table = catalog[name]
    statistics = catalog.statistics(name)
    columns = []
    for column in table.columns:
        known = statistics.columns.get(column.name)
        entry: dict[str, Any] = {"name": column.name, "type": column.type}
        if known is not None:
            entry |= {
                "null_share": known.null_share,
                "min": known.min,
                "max": known.max,
                "distinct": known.distinct,
                "average_width_bytes": known.average_width_bytes,
                "clustered": known.clustered,
            }
        columns.append(entry)
    return {
        **_describe(catalog, table.key),
        "statistics": statistics.source,
        "sampled_rows": _sampled_rows(catalog, table.key),
        "locations": [file.uri for file in table.files],
        "columns": columns,
    }


def _sampled_rows(catalog: Catalog, key: str) -> int | None:
    """How many rows are kept as a sample, on which conditions are judged."""
    sample = catalog.sample(key)
    return None if sample is None else sample.rows


def table_table(
    listed: Sequence[dict[str, Any]], skipped: Sequence[tuple[str, str]], console: Console
) -> None:
    """The list for people."""
    if not listed:
        console.print("No tables here: name a folder of data files with --data, or a --table.")
    else:
        drawn = _plain_table()
        for title in ("name", "kind"):
            drawn.add_column(title, overflow="fold")
        for title in ("rows", "size", "files", "columns"):
            drawn.add_column(title, justify="right", no_wrap=True)
        for found in listed:
            drawn.add_row(
                Text(written_name(found["name"])),
                found["kind"],
                rows_text(found),
                readable.size(found["bytes"]),
                readable.count(found["files"]) if found["files"] else readable.MISSING,
                readable.count(found["columns"]),
            )
        console.print(drawn)
    for found in listed:
        if "error" in found:
            console.print(Text(f"{found['name']}: {found['error']}", style="red"), soft_wrap=True)
    for place, reason in skipped:
        console.print(Text(passed_over(place, reason), style="dim"), soft_wrap=True)


def column_table(found: dict[str, Any], console: Console) -> None:
    """One table for people."""
    number = rows_text(found)
    rows = f"{number} row" if number in ("1", "~1") else f"{number} rows"
    sizes = [rows, readable.size(found["bytes"])]
    if found["files"]:
        sizes.append(readable.several(found["files"], "file"))
    title = Text(written_name(found["name"]), style="bold")
    title.append(f"  {found['kind']} · {' · '.join(sizes)}", style="not bold")
    console.print(title)
    shown = [
        (
            plain_identifier(column["name"]),
            _crop(column["type"].lower(), LONGEST),
            readable.percent(column["null_share"]) if column.get("null_share") else "",
            _distinct(found, column),
        )
        for column in found["columns"]
    ]
    headings = ("column", "type", "nulls", "distinct")
    taken = sum(
        max(len(heading), *(len(row[i]) for row in shown)) + 3 for i, heading in enumerate(headings)
    )
    # What is left belongs to the values.
    room = min(LONGEST, max(SHORTEST, (console.width - taken - 3) // 2))
    drawn = _plain_table()
    for i, heading in enumerate((*headings, "smallest", "largest")):
        drawn.add_column(heading, justify="right" if i in (2, 3) else "left", no_wrap=True)
    for row, column in zip(shown, found["columns"], strict=True):
        values = (_value(column.get(end), room) for end in ("min", "max"))
        drawn.add_row(*map(Text, (*row, *values)))
    console.print(drawn)
    if found["statistics"] != "analysed":
        source = {"footers": "the footers of the files", "guessed": "sizes and types only"}
        told = f"From {source[found['statistics']]}; queryard analyze finds out the rest."
        console.print(told, style="dim")
    if found["sampled_rows"] is not None:
        rows = readable.several(found["sampled_rows"], "row")
        console.print(f"Conditions are judged on a sample of {rows}.", style="dim")


def rows_text(found: dict[str, Any]) -> str:
    if found["rows"] is None:
        return readable.MISSING
    text = f"{found['rows']:,.0f}"
    return text if found["rows_exact"] else f"~{text}"


def _distinct(found: dict[str, Any], column: dict[str, Any]) -> str:
    if column.get("distinct") is None or found["statistics"] == "guessed":
        return readable.MISSING
    return f"~{column['distinct']:,.0f}"


def _value(value: object, room: int) -> str:
    return "" if value is None else _crop(value_text(value), room)


def _crop(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1] + "…"


def _plain_table() -> Table:
    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
