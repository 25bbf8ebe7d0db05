"""What a load showed, as tables for the terminal and as rows to compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich import box
from rich.markup import escape
from rich.table import Table

from queryard.comparison import Scores, scores_of_run
from queryard.core import readable

from .run_tables import facts_table, fairness, spread_tables

if TYPE_CHECKING:
    from queryard.load import Report

MOST_ERRORS = 5


def scores_of_report(report: Report) -> Scores:
    """A row of the comparison."""
    return replace(scores_of_run(report.name, report.summary), utilisation=report.utilisation)


def report_tables(report: Report) -> list[Table]:
    """One run, looked at closely."""
    return [facts_table(load_facts(report)), *spread_tables(report.summary)]


def load_facts(report: Report) -> list[tuple[str, str]]:
    """The single numbers of a run, those that exist."""
    counts, due = report.summary.counts, report.summary.deadlines
    found = [("queries finished", readable.count(counts.finished, report.requests))]
    rare = {"failed": counts.failed, "cancelled": counts.cancelled, "shared a run": report.shared}
    found.extend((label, readable.count(number)) for label, number in rare.items() if number)
    found.append(("from first to last", f"{readable.seconds(report.span_s)} s"))
    if due.queries:
        found.append(("deadlines missed", readable.count(due.missed, due.queries)))
    found.append(("slots in use", readable.percent(report.utilisation)))
    found.extend(fairness(report.summary))
    found.extend(_foresight(report))
    found.extend(_cost(report))
    if report.late:
        most = f"{report.most_late_s * 1e3:.0f} ms"
        found.append(("submitted late", f"{report.late}, by up to {most}"))
    for error, times in list((report.errors or {}).items())[:MOST_ERRORS]:
        found.append((f"error, {times} times" if times > 1 else "error", escape(error)))
    return found


def _foresight(report: Report) -> list[tuple[str, str]]:
    seen = report.foresight
    if seen is None:
        return []
    found = []
    if seen.forecast_s.count:
        share, wrong_s = seen.forecast_share.median, seen.forecast_s.median
        value = f"median {readable.seconds(wrong_s)} s, {readable.percent(share)} of the response"
        found.append(
            (
                "forecast of ends off by",
                f"{value} ({readable.several(seen.forecast_s.count, 'query')})",
            )
        )
    if seen.prediction.count:
        by = ", ".join(f"{name} {times}" for name, times in seen.by.items())
        factor = f"median {readable.ratio(seen.prediction.median)}"
        worst = f"p95 {readable.ratio(seen.prediction.p95)}"
        found.append(("predicted work off by", f"a factor of {factor}, {worst} (from {by})"))
    return found


def _cost(report: Report) -> list[tuple[str, str]]:
    cost = report.cost
    if cost is None:
        return []
    found = []
    if cost.bursts:
        found.append(("bursts", f"{cost.bursts}, {readable.seconds(cost.burst_s)} slot-seconds"))
    if cost.restarts:
        lost = f"after {readable.seconds(cost.restart_s)} s in all"
        found.append(("begun again", f"{cost.restarts} of {cost.sprints} short queries, {lost}"))
    each_ms = cost.decide_s / max(1, cost.decisions) * 1e3
    share = readable.percent(report.own_share)
    found.append(
        (
            "Queryard itself",
            f"{share} of a core "
            f"({readable.several(cost.decisions, 'decision')} of {each_ms:.2f} ms)",
        )
    )
    return found


def tenant_table(reports: Sequence[Report]) -> Table:
    """What every tenant saw under every policy: mean response, and deadlines missed."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("mean response [s]\n(deadlines missed)", vertical="bottom")
    for report in reports:
        table.add_column(escape(report.name), justify="right", vertical="bottom")
    tenants = sorted({row.tenant for report in reports for row in report.summary.tenants})
    for tenant in tenants:
        cells = []
        for report in reports:
            rows = [row for row in report.summary.tenants if row.tenant == tenant]
            text = readable.seconds(rows[0].response_s.mean) if rows else readable.MISSING
            if rows and rows[0].deadlines.queries:
                missed = readable.count(rows[0].deadlines.missed, rows[0].deadlines.queries)
                text += f" ({missed})"
            cells.append(text)
        table.add_row(escape(tenant), *cells)
    return table
