"""A history as tables for the terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from queryard.core import readable
from queryard.history import CostRow, QueryRecord, SessionRecord

from .history_sums import Sum

DAY_S = 86_400.0
LEAST_ROOM = 12
_ENDED = {"finished": "ok", "cancelled": "stopped"}
_STYLES = {
    "failed": "red",
    "refused": "red",
    "lost": "red",
    "cancelled": "yellow",
    "open": "cyan",
}


class Listing:
    """A table with a last column that takes the remaining width."""

    def __init__(self, *headings: str, words: Collection[str]) -> None:
        self._headings = headings
        self._words = words
        self._rows: list[tuple[str | Text, ...]] = []

    def add(self, *cells: str | Text) -> None:
        """A row; texts may be those of others."""
        shown = (readable.printable(cell) if isinstance(cell, str) else cell for cell in cells)
        self._rows.append(tuple(shown))

    @property
    def is_empty(self) -> bool:
        return not self._rows

    def fitted(self, width: int) -> Table:
        """As wide as the terminal at most; `words` are to the left, numbers to the right."""
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        taken = 0
        for place, heading in enumerate(self._headings[:-1]):
            cells = [heading.split("\n"), *([str(row[place])] for row in self._rows)]
            wide = max(len(line) for lines in cells for line in lines)
            taken += wide + 2
            title = heading.partition("\n")[0]
            table.add_column(
                Text(heading),
                justify="left" if title in self._words else "right",
                no_wrap=True,
                min_width=wide,
                vertical="bottom",
            )
        table.add_column(Text(self._headings[-1]), no_wrap=True)
        room = max(LEAST_ROOM, width - taken)
        for row in self._rows:
            table.add_row(*map(_text, row[:-1]), _cropped(str(row[-1]), room))
        return table


def _text(cell: str | Text) -> Text:
    return cell if isinstance(cell, Text) else Text(cell)


def _cropped(text: str, room: int) -> Text:
    return Text(text if len(text) <= room else text[: room - 1] + "…")


def query_table(queries: Sequence[QueryRecord]) -> Listing:
    """One row per query, the newest last; columns that would say nothing are left out."""
    columns: dict[str, Callable[[QueryRecord], str | Text]] = {
        "query": lambda query: short(query.query),
        "asked": lambda query: when(query.asked_at),
        "tenant": lambda query: query.tenant,
        "wait\n[s]": lambda query: readable.seconds(query.waited_s),
        "ran\n[s]": lambda query: readable.seconds(query.ran_s),
        "work\n[s]": _work,
        "pre-\ndicted": lambda query: readable.seconds(query.predicted_work_s),
        "fore-\ncast": lambda query: _signed(query.forecast_error),
        "ended": _ended,
        "SQL": lambda query: in_a_line(query.sql),
    }
    if len({query.tenant for query in queries}) < 2:
        del columns["tenant"]
    if all(query.forecast_error is None for query in queries):
        del columns["fore-\ncast"]
    if all(query.outcome == "finished" for query in queries):
        del columns["ended"]
    listing = Listing(*columns, words=("query", "asked", "tenant", "ended"))
    for query in queries:
        listing.add(*(cell(query) for cell in columns.values()))
    return listing


def _work(query: QueryRecord) -> str:
    return "shared" if query.twin_of else readable.seconds(query.work_s)


def _ended(query: QueryRecord) -> Text:
    return Text(_ENDED.get(query.outcome, query.outcome), _STYLES.get(query.outcome, ""))


def sum_table(sums: Sequence[Sum], by: str) -> Listing:
    listing = Listing(
        "queries",
        "un-\nanswered",
        "mean\n[s]",
        "p95\n[s]",
        "work\n[%]",
        "predicted\noff by",
        by,
        words=(by,),
    )
    for found in sums:
        listing.add(
            readable.count(found.queries),
            readable.count(found.unanswered),
            readable.seconds(found.mean_response_s),
            readable.seconds(found.p95_response_s),
            readable.hundredths(found.work_share),
            readable.MISSING if found.off_by is None else f"{readable.ratio(found.off_by)}x",
            in_a_line(found.name) or "(none)",
        )
    return listing


def session_table(sessions: Sequence[SessionRecord]) -> Listing:
    listing = Listing(
        "session",
        "began",
        "lasted\n[s]",
        "queries",
        "decisions",
        "slots",
        "ended",
        "policy",
        words=("session", "began", "ended"),
    )
    for found in sessions:
        listing.add(
            found.session,
            when(found.began_at),
            readable.seconds(_lasted_s(found)),
            readable.count(found.queries),
            readable.count(found.steps),
            readable.count(found.slots),
            _session_end(found),
            str(found.profile.get("name", "")),
        )
    return listing


def _session_end(session: SessionRecord) -> str:
    if session.closed_at is not None:
        return when(session.closed_at)
    return "lost" if session.lost else ""


def cost_table(found: Sequence[tuple[SessionRecord, Sequence[CostRow]]]) -> Listing:
    """What Queryard took of a core, a row per session, until its costs were last noted."""
    listing = Listing(
        "session",
        "began",
        "deci-\nsions",
        "each\n[ms]",
        "driver\n[%]",
        "watch\n[%]",
        "history\n[%]",
        "all\n[%]",
        "memory\n(most)",
        "bursts\n[s]",
        words=("session", "began"),
    )
    for session, costs in found:
        listing.add(session.session[:8], when(session.began_at), *_costs(costs))
    return listing


def _costs(costs: Sequence[CostRow]) -> list[str]:
    last = costs[-1]
    parts = (last.driver_cpu_s, last.watch_cpu_s, last.history_cpu_s)
    shares = [part / last.time_s if last.time_s else None for part in (*parts, sum(parts))]
    decision_ms = last.decide_s / last.decisions * 1000 if last.decisions else None
    return [
        readable.count(last.decisions),
        readable.seconds(decision_ms),
        *(readable.MISSING if share is None else f"{share * 100:.2f}" for share in shares),
        readable.size(max(row.rss_bytes for row in costs)),
        readable.seconds(last.burst_s),
    ]


def short(query: str) -> str:
    """An id that fits into a table.

    >>> short("0f3a9c2b7d11-42"), short("q7")
    ('0f3a-42', 'q7')
    """
    head, dash, number = query.rpartition("-")
    return f"{head[:4]}{dash}{number}"


def when(at: float) -> str:
    """A moment; of the last day without the date."""
    moment = time.localtime(at)
    recent = 0 <= time.time() - at < DAY_S
    return time.strftime("%H:%M:%S" if recent else "%y-%m-%d %H:%M", moment)


def in_a_line(sql: str) -> str:
    """A statement without its line breaks.

    >>> in_a_line("SELECT 1\\n  FROM t")
    'SELECT 1 FROM t'
    """
    return " ".join(sql.split())


def _lasted_s(session: SessionRecord) -> float:
    if session.closed_at is not None:
        return max(0.0, session.closed_at - session.began_at)
    return max(session.last_s, session.seen_at - session.began_at)


def _signed(share: float | None) -> str:
    return readable.MISSING if share is None else f"{share * 100:+,.0f} %"
