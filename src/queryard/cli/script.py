"""Statements one after another: run, watched, and their answers shown or written."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from queryard.core import readable
from queryard.core.readable import several
from queryard.results.files import Format, intervals_as_text, write_rows

from .failures import advising
from .query_progress import Watch, watching
from .rows_out import opened

if TYPE_CHECKING:
    from queryard.engine.syntax.classify import Classified
    from queryard.live import Answer
    from queryard.live.request import Plan

    from .any_session import AnySession

SHOWN_ROWS = 40


@dataclass(frozen=True, slots=True)
class Showing:
    """What becomes of answers."""

    form: Format = "table"
    output: Path | None = None
    rows: int | None = None  # None: as many as are usual, 0: all
    timer: bool = True
    hint: str = "--rows shows more, -o saves all"

    @property
    def most_rows(self) -> int | None:
        """None: no limit."""
        if self.rows is None:
            return SHOWN_ROWS if self.form == "table" else None
        return self.rows or None


def run_script(
    session: AnySession, sql: str, showing: Showing, time_limit: str | None = None
) -> None:
    """Run every statement of a text; it stops at the first that fails.

    As tables all answers are shown. Other formats hold the rows of one statement: the last.
    """
    from queryard.engine.syntax.classify import classify

    statements = classify(sql)
    for place, statement in enumerate(statements):
        is_last = place == len(statements) - 1
        run_statement(session, statement, showing if is_last else _before_last(showing), time_limit)


def _before_last(showing: Showing) -> Showing | None:
    return showing if showing.form == "table" and showing.output is None else None


def run_statement(
    session: AnySession,
    statement: Classified,
    showing: Showing | None,
    time_limit: str | None = None,
    plan: Plan | None = None,
) -> None:
    """Run one statement and show what it answers; Ctrl-C cancels it and is passed on."""
    began = time.perf_counter()
    handle = session.submit(statement.sql, time_limit=time_limit, plan=plan)
    try:
        with advising(session.catalog), watching(handle) as watch:
            answer = handle.take()
            if handle.has_side_effects:
                handle.wait()
                if handle.error is not None:
                    raise handle.error
            if showing is None:
                _drain(answer)
            elif not answer.returns_rows:
                watch.stop()
                _tell_change(answer, time.perf_counter() - began, showing)
            elif showing.form == "table":
                _show(answer, showing, watch, began)
            else:
                _write(answer, showing, watch, began)
    finally:
        # If not all rows were read, the query must not run on.
        if not handle.ended:
            handle.cancel()


def _drain(answer: Answer) -> None:
    for _ in answer.batches():
        pass


def _tell_change(answer: Answer, seconds: float, showing: Showing) -> None:
    changed = answer.changed or 0
    what = "done"
    if changed:
        what = several(changed, "row")
    Console(stderr=True, highlight=False).print(f"{what}{_took(seconds, showing)}", style="dim")


def _took(seconds: float, showing: Showing) -> str:
    return f" in {readable.seconds(seconds)} s" if showing.timer else ""


def _show(answer: Answer, showing: Showing, watch: Watch, began: float) -> None:
    from queryard.results.display import print_rows

    most = showing.most_rows
    if most is None:
        table, more = answer.arrow(), False
    else:
        table, more = answer.head(most)
    seconds = time.perf_counter() - began
    watch.stop()
    note = f"{readable.seconds(seconds)} s" if showing.timer else ""
    if showing.output is None:
        print_rows(table, answer.types, more, note=note, hint=showing.hint)
    else:
        with opened(showing.output, "table") as file:
            file.write(_text_of(table, answer.types, more).encode())


def _text_of(table: Any, types: list[str], more: bool) -> str:
    import io

    from queryard.results.display import print_rows

    out = io.StringIO()
    print_rows(table, types, more, file=out)
    return out.getvalue()


def _write(answer: Answer, showing: Showing, watch: Watch, began: float) -> None:
    batches = _limited(answer, showing.most_rows)
    with opened(showing.output, showing.form) as file:
        if showing.output is None and sys.stdout.isatty():
            watch.stop()
        rows = write_rows(answer, batches, showing.form, file)
    watch.stop()
    if showing.output is not None:
        size = readable.size(showing.output.stat().st_size)
        took = _took(time.perf_counter() - began, showing)
        told = f"{showing.output}: {several(rows, 'row')}, {size}{took}"
        console = Console(stderr=True, highlight=False)
        console.print(told, style="dim", soft_wrap=True, markup=False)
        if texts := intervals_as_text(answer.schema, showing.form):
            names = ", ".join(texts)
            note = f"note: INTERVALs are text in Parquet ({names}); CAST(… AS INTERVAL) reads them"
            console.print(note, style="dim", soft_wrap=True, markup=False)


def _limited(answer: Answer, most: int | None) -> Iterator[Any]:
    left = most
    for batch in answer.batches():
        if left is None:
            yield batch
            continue
        yield batch.slice(0, left)
        left -= min(left, batch.num_rows)
        if left == 0:
            return
