"""`queryard shuffle`: a copy of a table from which online queries answer early."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from queryard.core import readable
from queryard.core.errors import QueryardError

from . import data_options
from .failures import running

if TYPE_CHECKING:
    from queryard.sql.catalog import Catalog


def shuffle(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[TABLE]", help="Which table.", show_default=False),
    ] = None,
    data: data_options.Data = None,
    table: data_options.NamedTables = None,
    files: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=10_000,
            help="How many files. Default: 100, or fewer for a table below a million rows.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Another seed puts the rows into other files.")
    ] = 0,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="What making it may use, such as 512MB; the rest is spilled to disk. Default: a "
            "quarter of the machine's.",
            show_default=False,
        ),
    ] = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove the copy of the table instead.")
    ] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="List the copies there are, and whether they hold.")
    ] = False,
) -> None:
    """Make a shuffled copy of a table, for online queries.

    Each row goes into one of about 100 Parquet files, by a hash of its number. So each file is a
    random sample of the table, and an online query that has read some files knows how far it can
    be from the exact answer. Other queries keep to the table itself.

    The copy is kept beside the data (in `.queryard/shuffled/`, or in your cache where that cannot
    be written to) and takes about as much room as the table does as Parquet. It holds until a file
    of the table changes; then make it again.

    Examples:

    - `queryard shuffle lineitem --data data/`
    - `queryard shuffle lineitem --data data/ --memory 512MB`
    - `queryard shuffle --list --data data/`
    - `queryard shuffle lineitem --remove --data data/`
    """
    catalog = data_options.open_place(data, table)
    console = Console(highlight=False)
    if listed:
        _list(catalog, console)
    elif name is None:
        raise QueryardError(
            "name the table to be copied, as in `queryard shuffle lineitem`; `queryard tables` "
            "lists them, and `queryard shuffle --list` the copies there are"
        )
    elif remove:
        _remove(catalog, name, console)
    else:
        _make(catalog, name, files, seed, memory, console)


def _make(
    catalog: Catalog,
    name: str,
    files: int | None,
    seed: int,
    memory: str | None,
    console: Console,
) -> None:
    from queryard.core.amounts import some_bytes
    from queryard.engine.sampling import copy_places, shuffle_in_turn

    from .query_progress import sharing

    memory_bytes = None if memory is None else int(some_bytes(memory, "--memory"))
    table = catalog[name]
    began_at, began_s = time.time(), time.perf_counter()
    with running(), sharing("shuffling") as bar:
        copy = shuffle_in_turn(
            table,
            copy_places(catalog, table),
            files=files,
            seed=seed,
            memory_bytes=memory_bytes,
            progress=lambda share: bar(share, f"shuffling {table.key}"),
        )
    seconds = time.perf_counter() - began_s
    took = f"took {readable.seconds(seconds)} s" if copy.made_s >= began_at else "it was there"
    console.print(
        f"{copy.table}: {readable.several(copy.total_rows, 'row')} in "
        f"{readable.several(len(copy.parts), 'file')}, {readable.size(copy.bytes)}; {took}.",
        soft_wrap=True,
    )
    console.print(f"Copy: {copy.folder}", style="dim", soft_wrap=True)


def _remove(catalog: Catalog, name: str, console: Console) -> None:
    from queryard.engine.sampling import copy_places, discard, list_copies, remove_copy

    # A table may be gone, and its copy not.
    left = [copy for copy, _ in list_copies(catalog) if copy.table.lower() == name.lower()]
    with running():
        if name in catalog or not left:
            table = catalog[name]
            removed = remove_copy(table, copy_places(catalog, table)) if table.files else 0
        else:
            removed = sum(discard(copy) for copy in left)
    what = "There is no copy" if not removed else f"Removed: {readable.several(removed, 'copy')}"
    console.print(f"{what} of {name}.")


def _list(catalog: Catalog, console: Console) -> None:
    from rich.table import Table

    from queryard.engine.sampling import list_copies

    found = list_copies(catalog)
    if not found:
        console.print("There is no shuffled copy here; `queryard shuffle TABLE` makes one.")
        return
    shown = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("table", "rows", "files", "size", "made", "state"):
        shown.add_column(title, justify="right" if title in ("rows", "files", "size") else "left")
    for copy, holds in found:
        shown.add_row(
            copy.table,
            readable.count(copy.total_rows),
            str(len(copy.parts)),
            readable.size(copy.bytes),
            time.strftime("%Y-%m-%d %H:%M", time.localtime(copy.made_s)),
            "holds" if holds else "the table has changed",
        )
    console.print(shown)
    for place in sorted({str(copy.folder.parent) for copy, _ in found}):
        console.print(f"In {place}", style="dim", soft_wrap=True)
