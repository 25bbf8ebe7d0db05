"""One Ray node of two slots beside the local backend: queries of TPC-H one by one, in turns.

For each query and plan the median of some runs, and the ratio Ray / local. Targets: native at most
1.10, staged at most 1.25 (geometric means).

python -m bench.ray.one_node [--scale 1] [--times 7] [--quick]: five minutes, or one with --quick.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.progress import Progress

import queryard

from .setting import FEW, QUERIES, SESSION, Plan, compared, options, shown, tpch

MOST: dict[Plan, float] = {"native": 1.10, "staged": 1.25}
SLOTS = 2


def main(given: Sequence[str] | None = None) -> None:
    wanted = options(__doc__).parse_args(given)
    numbers, times = (FEW, 3) if wanted.quick else (QUERIES, wanted.times)
    folder = tpch(wanted.data, wanted.scale)
    shared = {"slots": SLOTS, "memory": wanted.memory, **SESSION}
    with (
        queryard.connect(folder, **shared) as local,
        queryard.connect(folder, backend="ray", address="local", **shared) as ray,
        Progress() as progress,
    ):
        found = {plan: compared(numbers, plan, local, ray, times, progress) for plan in MOST}
    for plan, pairs in found.items():
        shown(f"{plan}, one node of {SLOTS} slots", pairs, MOST[plan], "Ray")


if __name__ == "__main__":
    main()
