"""Slots that adjust themselves on really unequal nodes: TuMM and H_TuMM beside static slots.

A cluster of two nodes on this machine, of which one is throttled: its process is stopped and
continued in a duty cycle, so that it runs for a third of the time. Staged queries with map and
reduce phases run at once under each policy. Printed are the seconds until the last one has ended
and their mean, how many maps and reduces each node has run in the last turn and what they took
there, and how its slots were divided over time.

python -m bench.ray.unequal [--scale 1] [--times 3] [--quick]: minutes, or one with --quick.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import statistics
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

import queryard
from queryard.core.model import MAP
from queryard.sql import planner
from queryard.workload.tpch import TABLES, generate, query

from .nodes import all_joined, nodes

NODES = 2
SLOTS = 2
# Each with maps and reduces.
QUERIES = (1, 3, 5, 9, 10, 12, 18)
FEW = (1, 3, 9)
# Of a cycle of CYCLE_S the slow node runs for RUNS.
CYCLE_S = 0.06
RUNS = 1 / 3
LOOK_S = 0.02
# Of each table, and of each join or group.
MAPS = 16
REDUCES = 8
POLICIES = ("static", "tumm", "h-tumm")


class Outcome(NamedTuple):
    """Queries at once: until the last has ended, their mean, and what the nodes did meanwhile."""

    last_s: float
    mean_s: float
    divided: Mapping[str, Counter[tuple[int, int]]]
    """By kind of node: how often so many of its slots ran maps, and so many reduces."""
    took: Mapping[str, tuple[int, float, int, float]]
    """By kind of node: how many maps and reduces it ran, and what they took there on average."""


def main(given: Sequence[str] | None = None) -> None:
    options = _options(given)
    scale, times = (0.1, 1) if options.quick else (options.scale, options.times)
    numbers = FEW if options.quick else QUERIES
    folder = options.data / f"sf{scale:g}-cut"
    if not all((folder / f"{name}.parquet").exists() for name in TABLES):
        make(folder, scale)
    cut_finely()
    with nodes(*[SLOTS] * NODES) as cluster:
        outcomes: dict[str, list[Outcome]] = defaultdict(list)
        for turn in range(times):
            # Each policy is first once in a while: caches are warm for those that follow.
            names = [*POLICIES][turn % len(POLICIES) :] + [*POLICIES][: turn % len(POLICIES)]
            for name in names:
                outcomes[name].append(ran(folder, cluster.address, name, numbers, options))
        report(outcomes)


def make(folder: Path, scale: float) -> None:
    """TPC-H in small row groups: there are many maps."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as whole:
        generate(Path(whole), scale)
        for name in TABLES:
            table = pq.read_table(Path(whole, f"{name}.parquet"))
            rows = max(1, table.num_rows // MAPS)
            pq.write_table(table, folder / f"{name}.parquet", row_group_size=rows)


def cut_finely() -> None:
    """A map per row group, and all joins and groups by reduces."""
    plan = planner.plan_staged
    fine = partial(plan, target_bytes=1, partitions=REDUCES, broadcast_bytes=0)
    planner.plan_staged = lambda *given, **others: fine(*given)  # type: ignore[assignment]


def ran(
    folder: Path,
    address: str,
    profile: str,
    numbers: Sequence[int],
    options: argparse.Namespace,
) -> Outcome:
    """All queries at once under a policy, in a session of its own, with one node throttled."""
    given: dict[str, Any] = {"history": False, "statistics": "off", "slow_start": 0.5}
    with queryard.connect(
        folder, backend="ray", address=address, memory=options.memory, profile=profile, **given
    ) as session:
        backend: Any = session.host.backend
        all_joined(session, NODES)
        links = sorted(backend._links.values(), key=lambda link: link.name)
        with throttled(links[0].facts.pid), watched(session) as divided:
            handles = [session.submit(query(number), plan="staged") for number in numbers]
            for handle in handles:
                handle.take().arrow()
                handle.wait()
        first_s = min(handle.timing.submitted_s for handle in handles)
        ends = [(handle.timing.ended_s or 0.0) - first_s for handle in handles]
        names = {link.name: "slow" if link is links[0] else "fast" for link in links}
        by_kind: dict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
        for node, seen in divided.items():
            by_kind[names.get(node, "fast")].update(seen)
        took = session.host.ask(lambda coordinator: _took(coordinator, names))
        return Outcome(max(ends), statistics.mean(ends), by_kind, took)


def _took(coordinator: Any, names: Mapping[str, str]) -> dict[str, tuple[int, float, int, float]]:
    found = {}
    for node in coordinator.kernel.state.nodes.values():
        maps, reduces = node.map_mean, node.reduce_mean
        found[names[node.id]] = maps.n, maps.or_else(0.0), reduces.n, reduces.or_else(0.0)
    return found


@contextlib.contextmanager
def throttled(pid: int) -> Iterator[None]:
    """Stop and continue a process in a duty cycle; it goes on as before in the end."""
    over = threading.Event()

    def cycle() -> None:
        while not over.wait(CYCLE_S * RUNS):
            os.kill(pid, signal.SIGSTOP)
            try:
                over.wait(CYCLE_S * (1 - RUNS))
            finally:
                os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=cycle, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def watched(session: queryard.Session) -> Iterator[dict[str, Counter[tuple[int, int]]]]:
    """How the slots of nodes are divided, looked at again and again."""
    over = threading.Event()
    found: dict[str, Counter[tuple[int, int]]] = defaultdict(Counter)

    def look(coordinator: Any) -> None:
        running: Counter[tuple[str, bool]] = Counter()
        state = coordinator.kernel.state
        for launch in state.running.values():
            running[launch.node, launch.tasks[0].kind == MAP] += 1
        for name in state.nodes:
            found[name][running[name, True], running[name, False]] += 1

    def watch() -> None:
        while not over.wait(LOOK_S):
            session.host.ask(look)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def report(outcomes: Mapping[str, Sequence[Outcome]]) -> None:
    static_s = statistics.median(each.last_s for each in outcomes["static"])
    for name, found in outcomes.items():
        last_s = statistics.median(each.last_s for each in found)
        mean_s = statistics.median(each.mean_s for each in found)
        print(
            f"{name:7} last end {last_s:6.2f} s ({last_s / static_s:.2f} of static)   "
            f"mean {mean_s:6.2f} s"
        )
        for kind in ("slow", "fast"):
            seen: Counter[tuple[int, int]] = Counter()
            for each in found:
                seen.update(each.divided.get(kind, {}))
            total = max(1, sum(seen.values()))
            shown = ", ".join(
                f"{maps} map and {reduces} reduce {count / total:.0%}"
                for (maps, reduces), count in seen.most_common(5)
            )
            maps, map_s, reduces, reduce_s = found[-1].took[kind]
            ran_there = f"{maps} maps of {map_s:.3f} s, {reduces} reduces of {reduce_s:.3f} s"
            print(f"        {kind}: {ran_there}")
            print(f"              {shown}")


def _options(given: Sequence[str] | None) -> argparse.Namespace:
    usual = Path(tempfile.gettempdir()) / "queryard-bench-ray"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--memory", default="1 GB", help="of each node")
    parser.add_argument("--data", type=Path, default=usual, help="where TPC-H data is made")
    parser.add_argument("--quick", action="store_true", help="a smaller scale, few queries")
    return parser.parse_args(given)


if __name__ == "__main__":
    main()
