"""Two Ray nodes of one slot each beside the local backend with two slots, staged plans, in turns.

For each query the median of some runs, and the ratio Ray / local. Target: at most 1.35 (geometric
mean). Both nodes are on this machine: rows between them pass through memory, not a network.

python -m bench.ray.two_nodes [--scale 1] [--times 7] [--quick]: five minutes, or one with --quick.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.progress import Progress

import queryard

from .nodes import all_joined, nodes
from .setting import FEW, QUERIES, SESSION, STORE_BYTES, compared, options, shown, tpch

MOST = 1.35
NODES = 2


def main(given: Sequence[str] | None = None) -> None:
    wanted = options(__doc__).parse_args(given)
    numbers, times = (FEW, 3) if wanted.quick else (QUERIES, wanted.times)
    folder = tpch(wanted.data, wanted.scale)
    with (
        nodes(*[1] * NODES, store_bytes=STORE_BYTES) as cluster,
        queryard.connect(folder, slots=NODES, memory=wanted.memory, **SESSION) as local,
        queryard.connect(
            folder, backend="ray", address=cluster.address, slots=1, memory=wanted.memory, **SESSION
        ) as ray,
        Progress() as progress,
    ):
        all_joined(ray, NODES)
        pairs = compared(numbers, "staged", local, ray, times, progress)
    shown(f"staged, {NODES} nodes of one slot", pairs, MOST, "Ray")


if __name__ == "__main__":
    main()
