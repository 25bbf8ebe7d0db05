"""The present of a server or a session, as text for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from queryard.core import readable
from queryard.core.readable import printable, several

WHY = 30
# Narrower terminals get fewer columns.
WIDE = 110
# What a query of a local session waits for; servers tell it as a sentence.
_HOLDS = {
    "slots": "others have its slots",
    "reader": "its reader is behind",
    "entering": "on its way in",
    "planning": "is planned",
    "shared": "with an identical one",
    "memory": "memory",
    "cap": "its pool's cap",
    "order": "its turn",
}
# How many of the queries that ended lately are shown.
ENDED = 5
# The headline, the heads of the two tables, how many more there are, and blank ones.
_OTHER_LINES = 6


@dataclass(frozen=True, slots=True)
class Row:
    """A query as it is shown; times are seconds from now, or since."""

    id: str
    tenant: str
    sql: str
    running: bool
    slots: int
    progress: float
    waited_s: float
    runs_s: float | None
    starts_in_s: float | None
    ends_in_s: float | None
    due_in_s: float | None
    why: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A query that has ended lately."""

    id: str
    tenant: str
    sql: str
    status: str
    took_s: float


@dataclass(frozen=True, slots=True)
class Present:
    """One moment. `rows` has running queries first; `more` wait besides.

    `ended` has the last one first; only servers know of them.
    """

    title: str
    state: str
    policy: str
    slots: int
    busy: int
    reserved_bytes: float
    memory_bytes: float
    rows: tuple[Row, ...]
    more: int
    tenants: tuple[tuple[str, int, int, int], ...]
    ended: tuple[Ended, ...] = ()


def of_server(url: str, told: Mapping[str, Any]) -> Present:
    """From the document of `GET /v1/now`."""
    at = told["at"]
    rows = [
        Row(
            id=each["id"],
            tenant=each["tenant"],
            sql=each["sql"],
            running=each["status"] == "running",
            slots=each["slots"],
            progress=each["progress"] or 0.0,
            waited_s=each["waited_s"],
            runs_s=None if each["started_at"] is None else max(0.0, at - each["started_at"]),
            starts_in_s=each.get("starts_in_s"),  # servers of before do not tell it
            ends_in_s=each["eta_s"],
            due_in_s=None if each["deadline_at"] is None else each["deadline_at"] - at,
            why=each["why"],
        )
        for each in (*told["running"], *told["waiting"])
    ]
    tenants = [
        (each["name"], each["running"], each["waiting"], each["slots"]) for each in told["tenants"]
    ]
    return Present(
        title=url,
        state=told["state"],
        policy=told["policy"]["name"],
        slots=told["slots"]["total"],
        busy=told["slots"]["busy"],
        reserved_bytes=told["memory"]["reserved_bytes"],
        memory_bytes=told["memory"]["pool_bytes"],
        rows=tuple(rows),
        more=told["more_waiting"],
        tenants=tuple(tenants),
        ended=tuple(
            Ended(
                each["id"],
                each["tenant"],
                each["sql"],
                each["status"],
                each["ended_at"] - each["submitted_at"],
            )
            for each in told["ended"][:ENDED]
        ),
    )


def of_session(title: str, told: Mapping[str, Any]) -> Present:
    """From what a session answers on its socket."""
    now_s = told["now_s"]
    queries = sorted(told["queries"], key=lambda each: (each["started_s"] is None, each["turn"]))
    counts: dict[str, Counter[str]] = {}
    rows = []
    for each in queries:
        started_s = each["started_s"]
        running = started_s is not None
        counted = counts.setdefault(each["tenant"], Counter())
        counted["running" if running else "waiting"] += 1
        counted["slots"] += each["slots"]
        rows.append(
            Row(
                id=each["id"],
                tenant=each["tenant"],
                sql=each["sql"],
                running=running,
                slots=each["slots"],
                progress=each["progress"],
                waited_s=(started_s if running else now_s) - each["submitted_s"],
                runs_s=now_s - started_s if running else None,
                starts_in_s=each.get("starts_in_s"),  # sessions of before do not tell them
                ends_in_s=each.get("ends_in_s"),
                due_in_s=None if each["deadline_s"] is None else each["deadline_s"] - now_s,
                why=_held(each),
            )
        )
    return Present(
        title=title,
        state="open" if told["paused_by"] is None else "paused",
        policy=told["policy"],
        slots=told["slots"],
        busy=told["busy_slots"],
        reserved_bytes=told["reserved_bytes"],
        memory_bytes=told["memory_bytes"],
        rows=tuple(rows),
        more=0,
        tenants=tuple(
            (name, found["running"], found["waiting"], found["slots"])
            for name, found in sorted(counts.items())
        ),
    )


def _held(query: Mapping[str, Any]) -> str:
    position = query["position"]
    if query["hold"] in ("order", "memory") and position:
        return f"{several(position, 'query')} before it"
    return _HOLDS.get(query["hold"], "")


def screen(present: Present, width: int, height: int | None) -> Group:
    """All of it, in so many lines; None: as many as it takes."""
    tenants = _tenants(present)
    parts: list[Table | Text] = []
    room = None
    if height is not None:
        room = height - _OTHER_LINES - tenants.row_count
    if present.ended and (room is None or room > 2 * ENDED):
        parts = [_ended(present.ended), Text()]
        room = None if room is None else room - len(present.ended) - 2
    queries = _queries(present, None if room is None else max(3, room), width >= WIDE)
    return Group(headline(present), tenants, Text(), queries, Text(), *parts)


def headline(present: Present) -> Text:
    """Where it is and how busy, in a line."""
    running = sum(tenant[1] for tenant in present.tenants)
    waiting = sum(tenant[2] for tenant in present.tenants)
    memory = readable.size(present.reserved_bytes)
    parts = [
        (f"{printable(present.title)}  ", "bold"),
        (present.state, "green" if present.state == "open" else "yellow"),
        (f"  policy {printable(present.policy)}  slots {present.busy} of {present.slots}  ", ""),
        (f"running {running}  waiting {waiting}  ", ""),
        (f"memory {memory} of {readable.size(present.memory_bytes)}", ""),
    ]
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def _tenants(present: Present) -> Table:
    table = _table(("tenant",), ("running", "waiting", "slots"))
    for name, *counts in present.tenants:
        table.add_row(_text(name), *map(str, counts), style="" if any(counts) else "dim")
    return table


def _queries(present: Present, room: int | None, is_wide: bool) -> Table:
    numbers = ("slots", "done", "waited", "runs for", "starts in", "ends in", "due in")
    table = _table(("query", "tenant"), numbers if is_wide else numbers[:3])
    # These two are cropped: half the name of a query is of no use.
    if is_wide:
        table.add_column("why", max_width=WHY)
    table.add_column("SQL")
    shown = present.rows if room is None else present.rows[:room]
    for row in shown:
        late = row.due_in_s is not None and row.due_in_s < (row.ends_in_s or 0.0)
        cells = [
            _text(row.id),
            _text(row.tenant),
            Text(str(row.slots) if row.slots else ""),
            Text(f"{row.progress:.0%}" if row.running else ""),
            Text(_seconds(row.waited_s)),
        ]
        if is_wide:
            cells += [
                Text(_seconds(row.runs_s)),
                Text(_about(row.starts_in_s)),
                Text(_about(row.ends_in_s)),
                Text(_seconds(row.due_in_s), style="red" if late else ""),
                _line(row.why),
            ]
        cells.append(_line(" ".join(row.sql.split())))
        table.add_row(*cells, style="" if row.running else "dim")
    hidden = len(present.rows) - len(shown) + present.more
    if hidden:
        table.add_row("…", f"{hidden} more", style="dim")
    return table


def _ended(ended: tuple[Ended, ...]) -> Table:
    table = _table(("ended", "tenant", "status"), ("took",))
    table.add_column("SQL")
    for each in ended:
        table.add_row(
            _text(each.id),
            _text(each.tenant),
            Text(each.status, style="" if each.status == "finished" else "red"),
            Text(_seconds(each.took_s)),
            _line(" ".join(each.sql.split())),
            style="dim",
        )
    return table


def _table(texts: tuple[str, ...], numbers: tuple[str, ...]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    for title in texts:
        table.add_column(title, no_wrap=True)
    for title in numbers:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _text(text: str) -> Text:
    """What others have written: names and statements."""
    return Text(printable(text))


def _line(text: str) -> Text:
    return Text(printable(text), no_wrap=True, overflow="ellipsis")


def _about(value: float | None) -> str:
    return "" if value is None else f"~{_seconds(value)}"


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.1f} s"
