"""What launches cost the driver: about 200 per second, of tasks that only wait.

There are two nodes of 16 slots. Shown is the processor time of the driver's process, with the
kernel's decisions, as a share of a core at 200 launches per second; how many launches travel in one
batch; and what a task weighs on the wire: its order there and its events back, as they travel.
Targets: 20 % of a core, 1 KB.

python -m bench.ray.launches [--rate 200] [--seconds 20] [--quick]: a minute.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
from rich.progress import Progress

import queryard
import queryard.sql.planner
from queryard.backends.ray import link as links
from queryard.backends.ray import opening
from queryard.backends.ray.messages import Made, StartTask
from queryard.backends.ray.packing import Parcel, packed_each, unpacked

from .nodes import all_joined, nodes
from .setting import SESSION, options, table
from .sleeping import TASK_S, SleepingWorkplace

MOST_SHARE, MOST_BYTES, RATE = 0.20, 1024, 200.0
NODES = (16, 16)
TASKS = 800
SQL = "SELECT sum(n) AS n FROM numbers"


class Wire:
    """What passes between the driver and its nodes."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, int]] = []  # tasks in a batch of orders, and bytes
        self.events: list[tuple[int, int]] = []
        links.packed_each = self._pack  # type: ignore[attr-defined]
        links.unpacked = self._unpack  # type: ignore[attr-defined]

    def _pack(self, orders: Any, head: Any) -> Parcel:
        parcel = packed_each(orders, head)
        tasks = sum(isinstance(order, StartTask) for order in orders)
        self.batches.append((tasks, _size(parcel)))
        return parcel

    def _unpack(self, parcel: Parcel) -> Any:
        number, events = unpacked(parcel)
        self.events.append((sum(isinstance(each, Made) for each in events), _size(parcel)))
        return number, events

    def clear(self) -> None:
        self.batches.clear()
        self.events.clear()

    @property
    def tasks(self) -> int:
        return sum(tasks for tasks, _ in self.batches)

    def bytes_per_task(self) -> float:
        return sum(size for _, size in (*self.batches, *self.events)) / max(1, self.tasks)


def _size(parcel: Parcel) -> int:
    return len(parcel) if isinstance(parcel, bytes) else len(parcel[0])


def main(given: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--rate", type=float, default=RATE, help="launches per second")
    parser.add_argument("--seconds", type=float, default=20.0)
    wanted = parser.parse_args(given)
    seconds = 4.0 if wanted.quick else wanted.seconds
    wanted.data.mkdir(parents=True, exist_ok=True)
    folder = numbers(wanted.data / "launches", TASKS)
    os.environ[TASK_S] = str(sum(NODES) / wanted.rate)
    opening.RayBackend = partial(  # type: ignore[misc, assignment]
        opening.RayBackend, open_workplace=SleepingWorkplace
    )
    plan = queryard.sql.planner.plan_staged
    small = partial(plan, target_bytes=1)
    queryard.sql.planner.plan_staged = lambda *a, **k: small(*a)
    wire = Wire()
    with (
        nodes(*NODES) as cluster,
        queryard.connect(
            folder, backend="ray", address=cluster.address, memory="1 GB", **SESSION
        ) as ray,
        Progress() as progress,
    ):
        all_joined(ray, len(NODES))
        ray.sql(SQL, plan="staged").fetchall()
        wire.clear()
        doing = progress.add_task("launches", total=seconds)
        loop = ray.host._loop
        before, cpu_s, began_s = _threads(), time.process_time(), time.perf_counter()
        decided_s = loop.decide_s
        while (taken_s := time.perf_counter() - began_s) < seconds:
            ray.sql(SQL, plan="staged").fetchall()
            progress.update(doing, completed=taken_s)
        taken_s, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_s
        by_thread = {name: s - before[name] for name, s in _threads().items()}
        decided_s = loop.decide_s - decided_s
    _show(wire, taken_s, cpu_s, decided_s, by_thread)


def _show(
    wire: Wire, taken_s: float, cpu_s: float, decided_s: float, by_thread: dict[str, float]
) -> None:
    tasks = wire.tasks
    full = [number for number, _ in wire.batches if number]
    rows = [
        ("launches per second", f"{tasks / taken_s:.0f}", f"{RATE:g}"),
        (
            f"driver, of a core at {RATE:g} per second",
            f"{cpu_s / tasks * RATE:.1%}",
            f"{MOST_SHARE:.0%}",
        ),
        ("  of it the kernel's decisions", f"{decided_s / tasks * RATE:.1%}", ""),
        *(
            (f"  of it {name}", f"{s / tasks * RATE:.1%}", "")
            for name, s in sorted(by_thread.items(), key=lambda item: -item[1])[:7]
        ),
        ("bytes on the wire per task", f"{wire.bytes_per_task():.0f}", f"{MOST_BYTES}"),
        ("launches in a batch, mean and most", f"{statistics.mean(full):.1f}, {max(full)}", ""),
    ]
    table("Launches of tasks that wait", ("", "found", "target"), rows)


def _threads() -> Counter[str]:
    """Processor seconds by the names of threads, without their numbers."""
    names = {thread.native_id: thread.name for thread in threading.enumerate()}
    found: Counter[str] = Counter()
    for task in Path("/proc/self/task").iterdir():
        name = names.get(int(task.name)) or (task / "comm").read_text().strip()
        words = [word for word in name.split("-") if not any(map(str.isdigit, word))]
        found["-".join(words)] += int((task / "schedstat").read_text().split()[0]) / 1e9
    return found


def numbers(data: Path, tasks: int) -> Path:
    """A folder with a table of as many row groups as tasks are wanted."""
    folder = data / str(tasks)
    file = folder / "numbers.parquet"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        rows = tasks * 2048
        duckdb.sql(f"COPY (SELECT range AS n FROM range({rows})) TO '{file}' (ROW_GROUP_SIZE 2048)")
    return folder


if __name__ == "__main__":
    main()
