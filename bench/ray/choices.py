"""Whether `plan="auto"` chooses well on a cluster: queries of TPC-H one by one, both ways.

Two nodes of one slot each on this machine. For each query what is predicted natively and in tasks
(as `explain` tells it), what both took (medians, in turns), and what the choice lost against the
better one. A choice between two that take about the same is no error.

python -m bench.ray.choices [--scale 1] [--times 3] [--quick]: minutes, or two with --quick.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import queryard
from queryard.workload.tpch import TABLES, generate, query

from .nodes import all_joined, nodes

NODES = 2
PLANS: tuple[Literal["native", "staged"], ...] = ("native", "staged")
FEW = (1, 3, 6, 9, 13, 18)


def main(given: Sequence[str] | None = None) -> None:
    options = _options(given)
    times = 1 if options.quick else options.times
    folder = options.data / f"sf{options.scale:g}"
    if not all((folder / f"{name}.parquet").exists() for name in TABLES):
        folder.mkdir(parents=True, exist_ok=True)
        generate(folder, options.scale)
    shared: dict[str, Any] = {"memory": "2 GB", "history": False, "statistics": "off"}
    losses = []
    with (
        nodes(*[1] * NODES) as cluster,
        queryard.connect(folder, backend="ray", address=cluster.address, **shared) as session,
    ):
        all_joined(session, NODES)
        for number in FEW if options.quick else range(1, 23):
            sql = query(number)
            seconds: dict[str, list[float]] = {plan: [] for plan in PLANS}
            found = session.explain(sql)
            for _ in range(times + 1):
                for plan in PLANS:
                    began_s = time.perf_counter()
                    session.sql(sql, plan=plan).fetchall()
                    seconds[plan].append(time.perf_counter() - began_s)
            took = {plan: statistics.median(seconds[plan][1:]) for plan in PLANS}
            losses.append(took[found.plan] / min(took.values()))
            print(
                f"Q{number:<3} native {took['native']:6.2f} s   in tasks {took['staged']:6.2f} s   "
                f"lost {losses[-1]:.2f}   {found.notes[0]}",
                flush=True,
            )
    print(f"lost by choices: {statistics.geometric_mean(losses):.2f} of the better plan")


def _options(given: Sequence[str] | None) -> argparse.Namespace:
    usual = Path(tempfile.gettempdir()) / "queryard-bench-ray"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--data", type=Path, default=usual, help="where TPC-H data is made")
    parser.add_argument("--quick", action="store_true", help="few queries, once each")
    return parser.parse_args(given)


if __name__ == "__main__":
    main()
