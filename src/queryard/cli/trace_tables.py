"""What a trace holds, as tables for the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from queryard.core import readable
from queryard.core.model import MAP, REDUCE
from queryard.metrics.response import quantile
from queryard.workload.alone import capacity_slots
from queryard.workload.traces import Trace

from .run_tables import facts_table
from .trace_counts import bytes_of, failures_of, localities_of

SHARES = (0.1, 0.5, 0.9, 0.99)
# Bars of the picture, and how many steps one has.
COLUMNS, STEPS = 60, " ▁▂▃▄▅▆▇█"


def facts_of(trace: Trace) -> dict[str, Any]:
    """All that is shown, as plain data."""
    spreads = {name: spread for name, _, spread in _spreads(trace)}
    return {
        "name": trace.name,
        "format": trace.format,
        "queries": len(trace.workload.arrivals),
        "jobs": sum(len(a.query.jobs) for a in trace.workload.arrivals),
        "tasks": trace.workload.tasks,
        "span_s": _span_s(trace),
        "work_s": trace.work_s,
        "slots": sum(node.slots for node in trace.workload.nodes),
        "nodes": len(trace.workload.nodes),
        "load": trace.load_on(trace.workload.nodes),
        "tenants": sorted({a.query.tenant for a in trace.workload.arrivals}),
        "spreads": spreads,
        "bytes": bytes_of(trace),
        "failures": failures_of(trace),
        "locality": localities_of(trace),
        "counts": dict(trace.counts),
        "notes": list(trace.notes),
        "submitted": arrivals_over_time(trace, COLUMNS),
    }


def trace_tables(trace: Trace) -> list[RenderableType]:
    return [_overview(trace), _spread_table(trace), _picture(trace), *_tenants(trace)]


def _overview(trace: Trace) -> Table:
    facts = facts_of(trace)
    rows = [
        ("queries", readable.count(facts["queries"])),
        ("jobs (stages)", readable.count(facts["jobs"])),
        ("tasks", readable.count(facts["tasks"])),
        ("submitted within", span(facts["span_s"])),
        ("work", f"{readable.seconds(facts['work_s'])} slot-seconds"),
        ("tenants", readable.count(len(facts["tenants"]))),
        ("cluster", _cluster(trace)),
    ]
    if facts["load"] is not None:
        rows.append(("offered load", _offered(trace, facts["load"])))
    moved = [f"{readable.size(count)} {what}" for what, count in facts["bytes"].items()]
    failed = [f"{what}: {count:,}" for what, count in facts["failures"].items()]
    near = [f"{count:,} {where}" for where, count in facts["locality"].items()]
    for name, parts in (("bytes", moved), ("failures", failed), ("input of tasks", near)):
        if parts:
            rows.append((name, ", ".join(parts)))
    return facts_table(rows)


def _cluster(trace: Trace) -> str:
    nodes = trace.workload.nodes
    slots = sum(node.slots for node in nodes)
    return f"{readable.several(len(nodes), 'node')}, {readable.several(slots, 'slot')}"


def _span_s(trace: Trace) -> float:
    times_s = [arrival.query.submit_s for arrival in trace.workload.arrivals]
    return max(times_s) - min(times_s)


def _offered(trace: Trace, load: float) -> str:
    """The load, and what the work is divided by."""
    share = readable.percent(load) if load >= 0.001 else "below 0.1 %"
    slots = readable.several(capacity_slots(trace.workload.nodes), "slot")
    lasted_s, last = trace.span
    return f"{share}: work / ({slots} × {span(lasted_s)}, first submission to last {last})"


def span(seconds: float) -> str:
    """How long something lasted, in a unit in which it can be imagined.

    >>> span(0.003), span(45), span(86_400), span(219_057_766)
    ('3 ms', '45.0 s', '24.0 h', '2,535 days')
    """
    if seconds == 0:
        return "0 s"
    if seconds < 0.1:
        return f"{seconds * 1e3:.2g} ms"
    for unit, length_s, least in (("days", 86_400, 3), ("h", 3600, 3)):
        if seconds >= least * length_s:
            return f"{readable.seconds(seconds / length_s)} {unit}"
    return f"{readable.seconds(seconds)} s"


def _spreads(trace: Trace) -> Iterable[tuple[str, str, dict[str, float]]]:
    """(what, unit, its percentiles) for all that is known."""
    arrivals = trace.workload.arrivals
    jobs = [job for arrival in arrivals for job in arrival.query.jobs]
    read = [sum(job.map.bytes for job in a.query.jobs if job.map) for a in arrivals]
    found: list[tuple[str, str, Sequence[float]]] = [
        ("response as recorded", "s", list(trace.responses_s.values())),
        ("work of a query", "s", [arrival.work_s for arrival in arrivals]),
        ("jobs of a query", "", [len(arrival.query.jobs) for arrival in arrivals]),
        ("maps of a job", "", [job.map.tasks for job in jobs if job.map]),
        ("reduces of a job", "", [job.reduce.tasks for job in jobs if job.reduce]),
        ("bytes its maps take in", "B", read if any(read) else []),
    ]
    for kind, name in ((MAP, "time of a map"), (REDUCE, "time of a reduce")):
        found.append((name, "s", [task.seconds for task in trace.tasks if task.kind == kind]))
    for name, unit, values in found:
        if values:
            ordered = sorted(values)
            spread = {f"p{share * 100:g}": quantile(ordered, share) for share in SHARES}
            mean = sum(ordered) / len(ordered)
            yield name, unit, {"mean": mean, **spread, "max": ordered[-1]}


def _spread_table(trace: Trace) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("")
    for title in ("mean", *(f"p{share * 100:g}" for share in SHARES), "max"):
        table.add_column(title, justify="right", no_wrap=True)
    for name, unit, spread in _spreads(trace):
        write = readable.size if unit == "B" else readable.seconds
        title = f"{name} [s]" if unit == "s" else name
        table.add_row(Text(title), *(write(value) for value in spread.values()))
    return table


def arrivals_over_time(trace: Trace, columns: int) -> list[int]:
    """How many queries were submitted in each of so many equal parts of the span."""
    times_s = [arrival.query.submit_s for arrival in trace.workload.arrivals]
    first_s, span_s = min(times_s), max(times_s) - min(times_s)
    counts = [0] * columns
    for time_s in times_s:
        at = int((time_s - first_s) / span_s * columns) if span_s else 0
        counts[min(columns - 1, at)] += 1
    return counts


def _picture(trace: Trace) -> Text:
    """Submissions over time, a bar for each part of the span."""
    if not _span_s(trace):
        queries = len(trace.workload.arrivals)
        return Text(f"\nall {queries:,} queries were submitted at once\n" if queries > 1 else "")
    counts = arrivals_over_time(trace, COLUMNS)
    most = max(counts)
    bars = "".join(STEPS[-(-count * (len(STEPS) - 1) // most)] for count in counts)
    highest = f"{readable.several(most, 'query')} in {span(_span_s(trace) / COLUMNS)}"
    legend = f"queries submitted over time; the highest bar is {highest}"
    return Text(f"\n{bars}\n{legend}\n")


def _tenants(trace: Trace) -> list[Table]:
    """How much work each tenant asked for, where there are several tenants."""
    work_s: dict[str, list[float]] = {}
    for arrival in trace.workload.arrivals:
        work_s.setdefault(arrival.query.tenant, []).append(arrival.work_s)
    if len(work_s) < 2:
        return []
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("tenant")
    table.add_column("queries", justify="right")
    table.add_column("share of work", justify="right")
    total = sum(map(sum, work_s.values())) or 1.0
    for name, works in sorted(work_s.items(), key=lambda item: -sum(item[1]))[:10]:
        table.add_row(Text(name), readable.count(len(works)), readable.percent(sum(works) / total))
    return [table]
