"""One run as tables for the terminal: times of queries, by size and by tenant, and use of slots."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.markup import escape
from rich.table import Table

from queryard.core import readable
from queryard.metrics import Summary
from queryard.metrics.response import Counts, Spread

SPREAD = ("mean", "median", "p95", "p99", "max")


def run_tables(summary: Summary) -> list[Table]:
    """The tables of a run; those that would be empty are left out."""
    return [facts_table(facts(summary)), *spread_tables(summary)]


def spread_tables(summary: Summary) -> list[Table]:
    """How long queries took: in all, by size and by tenant."""
    tables = [_spread_table(summary)]
    if len(summary.size_bins) > 1:
        rows = ((b.bin or "(none)", b.counts, b.response_s, b.slowdown) for b in summary.size_bins)
        tables.append(_group_table("size bin", rows))
    if len(summary.tenants) > 1:
        members = ((t.tenant, t.counts, t.response_s, t.slowdown) for t in summary.tenants)
        tables.append(_group_table("tenant", members))
    return tables


def facts_table(found: Iterable[tuple[str, str]]) -> Table:
    """Single numbers, each with its name."""
    table = Table(box=None, show_header=False)
    table.add_column(style="dim")
    table.add_column()
    for label, value in found:
        table.add_row(label, value)
    return table


def facts(summary: Summary) -> list[tuple[str, str]]:
    """The single numbers of a run, those that exist."""
    counts, use, due = summary.counts, summary.utilisation, summary.deadlines
    found = [("queries finished", readable.count(counts.finished, counts.submitted))]
    rare = {
        "failed": counts.failed,
        "cancelled": counts.cancelled,
        "unfinished": counts.unfinished,
        "tasks run again": summary.attempts.retries,
    }
    found.extend((label, readable.count(number)) for label, number in rare.items() if number)
    found.append(("makespan", f"{readable.seconds(summary.makespan_s)} s"))
    if due.queries:
        found.append(("deadlines missed", readable.count(due.missed, due.queries)))
    kinds = {"maps": use.map, "reduces": use.reduce, "leases": use.lease}
    parts = ", ".join(f"{kind} {readable.percent(share)}" for kind, share in kinds.items() if share)
    found.append(("slots in use", f"{readable.percent(use.all)}{f' ({parts})' if parts else ''}"))
    found.extend(fairness(summary))
    if summary.locality.share is not None:
        found.append(("local map tasks", readable.percent(summary.locality.share)))
    read = summary.scanned
    if read.bytes:
        saved = f" ({readable.gigabytes(read.alone_bytes)} GB if none were shared)"
        shown = saved if read.alone_bytes > read.bytes else ""
        found.append(("read from tables", f"{readable.gigabytes(read.bytes)} GB{shown}"))
    for step in summary.online:
        label = f"error {readable.percent(-step.reduction)}"
        reached = readable.count(step.reached, step.queries)
        found.append((label, f"after {readable.seconds(step.mean_s)} s (reached by {reached})"))
    return found


def fairness(summary: Summary) -> list[tuple[str, str]]:
    """Jain's index over queries, and over tenants where there are several; if it is known."""
    known = summary.fairness
    if known.queries is None:
        return []
    shown = f", {readable.index(known.tenants)} over tenants" if len(summary.tenants) > 1 else ""
    return [("fairness (Jain)", f"{readable.index(known.queries)} over queries{shown}")]


def _spread_table(summary: Summary) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column()
    for name in SPREAD:
        table.add_column(name, justify="right")
    for label, spread in (
        ("response, s", summary.response_s),
        ("wait, s", summary.wait_s),
        ("slowdown", summary.slowdown),
    ):
        if spread.count:
            table.add_row(label, *(readable.seconds(getattr(spread, name)) for name in SPREAD))
    return table


def _group_table(what: str, rows: Iterable[tuple[str, Counts, Spread, Spread]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(what)
    for title in ("queries", "mean\nresponse, s", "p95\nresponse, s", "mean\nslowdown"):
        table.add_column(title, justify="right", vertical="bottom")
    table.add_column("max\nslowdown", justify="right", vertical="bottom")
    for name, counts, response_s, slowdown in rows:
        table.add_row(
            escape(name),
            readable.count(counts.submitted),
            readable.seconds(response_s.mean),
            readable.seconds(response_s.p95),
            readable.ratio(slowdown.mean),
            readable.ratio(slowdown.max),
        )
    return table
