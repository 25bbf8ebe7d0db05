"""`make bench`: print every figure with its target, and keep them in bench-results.json."""

from __future__ import annotations

import argparse
import json
import platform
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from .footprint import fork_s, million_tasks
from .growth import growth
from .portfolio import QUEUES, decision_speed
from .throughput import lease_decisions, profiles, throughput


def _verdict(met: bool) -> str:
    return "[green]reached[/]" if met else "[red]missed[/]"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--profile", action="append", help="only these profiles (repeatable)")
    parser.add_argument("--repeats", type=int, default=5, help="runs per figure; the median counts")
    parser.add_argument("--quick", action="store_true", help="a million tasks only for fifo, tls")
    parser.add_argument("--out", type=Path, default=Path("bench-results.json"))
    options = parser.parse_args()
    names = options.profile or profiles()
    console = Console()
    results: dict[str, object] = {"python": platform.python_version()}

    for noise, title in ((0.0, "equal tasks"), (0.2, "every task its own duration")):
        table = Table(title=f"2,000 jobs, 70,000 tasks, 200 slots: {title}")
        for column in ("profile", "tasks/s", "bare loop/s", "ratio", "target", ""):
            table.add_column(column, justify="left" if column == "profile" else "right")
        rows = []
        for name in track(names, description=title, console=console, transient=True):
            speed = throughput(name, 2_000, 70_000, noise, options.repeats)
            rows.append({"profile": name, "tasks_per_s": speed.tasks_per_s, "ratio": speed.ratio})
            table.add_row(
                name,
                f"{speed.tasks_per_s:,.0f}",
                f"{speed.bare_per_s:,.0f}",
                f"{speed.ratio:.3f}",
                f"{speed.target:.2f}",
                _verdict(speed.ratio >= speed.target),
            )
        console.print(table)
        results[title] = rows

    table = Table(title="Cost per launched task: 10,000 waiting queries over 100 (target: below 3)")
    for column in ("profile", "growth", ""):
        table.add_column(column, justify="left" if column == "profile" else "right")
    grown = {}
    for name in track(names, description="growth", console=console, transient=True):
        grown[name] = growth(name, repeats=1 if options.quick else 3)
        table.add_row(name, f"{grown[name]:.2f}x", _verdict(grown[name] < 3))
    console.print(table)
    results["growth"] = grown

    table = Table(title="1,000,000 tasks (target: below 1 GB)")
    for column in ("profile", "tasks/s", "ratio", "peak MiB", ""):
        table.add_column(column, justify="left" if column == "profile" else "right")
    million = {}
    chosen = [name for name in names if name in ("fifo", "tls")] if options.quick else names
    for name in track(chosen, description="a million tasks", console=console, transient=True):
        million[name] = figures = million_tasks(name)
        table.add_row(
            name,
            f"{figures['tasks_per_s']:,.0f}",
            f"{figures['ratio']:.3f}",
            f"{figures['peak_mib']:,.0f}",
            _verdict(figures["peak_mib"] < 953),
        )
    console.print(table)
    results["million"] = million

    table = Table(title="12 online queries on 200 slots under leases")
    for column in ("profile", "decisions/s"):
        table.add_column(column, justify="left" if column == "profile" else "right")
    leases = {}
    for name in track(names, description="leases", console=console, transient=True):
        leases[name] = lease_decisions(name, 1 if options.quick else 3)
        table.add_row(name, f"{leases[name]:,.0f}")
    console.print(table)
    results["lease_decisions_per_s"] = leases

    forks = {name: fork_s(name) for name in chosen}
    results["fork_s"] = forks
    slowest = max(forks, key=lambda name: forks[name])
    console.print(
        "a fork of 1,000 queries with 100,000 pending tasks: at most "
        f"{forks[slowest] * 1000:.1f} ms ({slowest}; target: below 20 ms) "
        f"{_verdict(forks[slowest] < 0.02)}"
    )
    table = Table(title="A decision of the portfolio")
    columns = ("queries", "tasks", "candidates", "launches", "seconds", "of a bare loop's")
    for column in (*columns, "target", ""):
        table.add_column(column, justify="right")
    decisions = []
    for asked in track(QUEUES, description="decisions", console=console, transient=True):
        decision = decision_speed(*asked, repeats=3 if options.quick else 5)
        decisions.append(asdict(decision))
        table.add_row(
            f"{decision.queries:,}",
            f"{decision.tasks:,}",
            f"{decision.candidates}",
            f"{decision.launches:,}",
            f"{decision.wall_s:.2f}",
            f"{decision.ratio:.1f}x",
            f"{decision.target_s:g} s",
            _verdict(decision.wall_s <= decision.target_s),
        )
    console.print(table)
    results["portfolio_decisions"] = decisions
    options.out.write_text(json.dumps(results, indent=1))
    console.print(f"kept in {options.out}")


main()
