"""A query in a notebook: its progress, then its first rows; an interrupt cancels it."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from queryard.core.errors import QueryardError

REFRESH_S = 0.25


class Query(Protocol):
    """A query on its way, of this process or of a server."""

    id: str

    @property
    def status(self) -> str: ...
    def progress(self) -> float: ...
    def result(self, timeout: float | str | None = None) -> Any: ...
    def cancel(self) -> None: ...


def show_query(query: Query) -> None:
    """Show a query until its first rows are there."""
    update = _cell(progress_html(query))
    try:
        while True:
            try:
                update(query.result(REFRESH_S)._repr_html_())
                return
            except TimeoutError:
                update(progress_html(query))
    except KeyboardInterrupt:
        query.cancel()
        update(f"<pre>{html.escape(query.id)} cancelled</pre>")
    except QueryardError as error:
        update(f"<pre>{html.escape(str(error))}</pre>")


def show_answers(answers: Iterator[Any], stop: Callable[[], None]) -> None:
    """Show answers that refine, each in the place of the last; an interrupt keeps the newest."""
    update = _cell("<small>planning …</small>")
    try:
        for answer in answers:
            update(answer._repr_html_())
    except KeyboardInterrupt:
        stop()
    except QueryardError as error:
        update(f"<pre>{html.escape(str(error))}</pre>")


def progress_html(query: Query) -> str:
    """How far a query is, as a bar."""
    share = min(1.0, max(0.0, query.progress()))
    return (
        f"<progress value='{share:.3f}' max='1'></progress> "
        f"<small>{html.escape(query.id)} {html.escape(query.status)}, {share:.0%}; interrupt the "
        "kernel to cancel it</small>"
    )


def _cell(first: str) -> Callable[[str], None]:
    """An output of a cell, and how it is changed."""
    # Here, because IPython is there only if it has called.
    from IPython.display import HTML, display

    shown = display(HTML(first), display_id=True)
    return lambda text: shown.update(HTML(text))
