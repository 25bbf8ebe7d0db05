"""One Ray node of two slots beside the local backend: queries of TPC-H one by one, in turns.

For each query and plan the median of some runs, and the ratio Ray / local. Targets: native at most
1.10, staged at most 1.25 (geometric means). Also what a task weighs on the wire: an order with its
specification, as Ray pickles it; the target is 1 KB.

python -m bench.ray.one_node [--scale 1] [--times 7] [--quick]: minutes, or one with --quick.
"""

from __future__ import annotations

import argparse
import pickle
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import queryard
from queryard.backends.ray.link import Link
from queryard.backends.ray.messages import Run
from queryard.workload.tpch import TABLES, generate, query

PLANS: tuple[Literal["native", "staged"], ...] = ("native", "staged")
MOST = {"native": 1.10, "staged": 1.25}
QUERIES = (1, 3, 5, 6, 9, 13, 18, 21)
FEW = (1, 3, 9)
SLOTS = 2


def main(given: Sequence[str] | None = None) -> None:
    options = _options(given)
    scale, times = (0.1, 3) if options.quick else (options.scale, options.times)
    folder = options.data / f"sf{scale:g}"
    if not all((folder / f"{name}.parquet").exists() for name in TABLES):
        folder.mkdir(parents=True, exist_ok=True)
        generate(folder, scale)
    sizes = weigh_orders()
    shared: dict[str, Any] = {
        "slots": SLOTS,
        "memory": options.memory,
        "history": False,
        "statistics": "off",
    }
    with (
        queryard.connect(folder, **shared) as local,
        queryard.connect(folder, backend="ray", address="local", **shared) as cluster,
    ):
        for plan in PLANS:
            ratios = []
            for number in FEW if options.quick else QUERIES:
                here, there = measured(number, plan, local, cluster, times)
                ratios.append(there / here)
                print(
                    f"{plan:7} Q{number:<3} local {here:7.3f} s   Ray {there:7.3f} s   "
                    f"{there / here:5.2f}",
                    flush=True,
                )
            mean = statistics.geometric_mean(ratios)
            print(f"{plan}: {mean:.2f} of local; the target is at most {MOST[plan]:.2f}")
    if sizes:
        print(
            f"a task on the wire: median {statistics.median(sizes):,.0f} bytes, at most "
            f"{max(sizes):,}, {len(sizes)} tasks"
        )


def measured(
    number: int,
    plan: Literal["native", "staged"],
    local: queryard.Session,
    cluster: queryard.Session,
    times: int,
) -> tuple[float, float]:
    """Median seconds in both sessions, in turns; the first run of each is not counted."""
    seconds: dict[int, list[float]] = {0: [], 1: []}
    for _ in range(times + 1):
        for which, session in enumerate((local, cluster)):
            began_s = time.perf_counter()
            session.sql(query(number), plan=plan).fetchall()
            seconds[which].append(time.perf_counter() - began_s)
    return statistics.median(seconds[0][1:]), statistics.median(seconds[1][1:])


def weigh_orders() -> list[int]:
    """From now on, the bytes of every order to run a task."""
    import_sizes: list[int] = []
    send = Link.send

    def weighed(self: Link, order: Any) -> None:
        if isinstance(order, Run):
            # References to objects weigh what their ids do, and cannot be pickled here.
            plain = order._replace(spec=_without_refs(order.spec))
            import_sizes.append(len(pickle.dumps(plain)))
        send(self, order)

    Link.send = weighed  # type: ignore[method-assign]
    return import_sizes


def _without_refs(value: Any) -> Any:
    """The same with 28 bytes in place of every reference."""
    if type(value).__name__ == "ObjectRef":
        return value.binary()
    if isinstance(value, tuple):
        parts = [_without_refs(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if hasattr(value, "__dataclass_fields__"):
        return tuple(_without_refs(getattr(value, name)) for name in value.__dataclass_fields__)
    return value


def _options(given: Sequence[str] | None) -> argparse.Namespace:
    usual = Path(tempfile.gettempdir()) / "queryard-bench-ray"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--memory", default="4 GB")
    parser.add_argument("--data", type=Path, default=usual, help="where TPC-H data is made")
    parser.add_argument("--quick", action="store_true", help="a smaller scale, few queries")
    return parser.parse_args(given)


if __name__ == "__main__":
    main()
