"""A thousand waiting queries: what share of a core do deciding, driving and recording take?

1,000 queries of TPC-H with parameters of their own wait behind those that run. From a few seconds
after the last submission on, the processor time of the driver's thread (the kernel is part of it)
and of the one that writes the history is compared with the time that passes. What looks at running
statements is no part of the target and shown separately; so is what a submission takes.

python -m bench.live.waiting [--seeds 5]: about 30 s per seed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from random import Random

from queryard.live.monitor import SessionReport
from queryard.load import SessionTarget
from queryard.workload import tpch

from .setting import OURS, Setting, schema, setting
from .verdict import Figure, show

QUERIES, SCALE = 1_000, 5.0
SETTLE_S, SECONDS = 5.0, 20.0
MOST = 0.02


def bench(chosen: Setting) -> None:
    scale = chosen.given.scale or chosen.scale(SCALE)
    seconds = 5.0 if chosen.quick else SECONDS
    ground = chosen.ground(scale)
    shares: dict[str, list[float]] = {}
    for seed in range(chosen.seeds):
        target = SessionTarget(OURS, ground, OURS)
        try:
            found = _one_seed(target, seed, scale, seconds)
        finally:
            target.close()
        for name, value in found.items():
            shares.setdefault(name, []).append(value)
    units = {"submit": "ms", "waiting": ""}
    figures = [
        Figure("kernel, driver and history together", shares.pop("together"), MOST, unit="%"),
        *(
            Figure(f"  {name}", values, unit=units.get(name, "%"))
            for name, values in shares.items()
        ),
    ]
    show(f"{QUERIES:,} waiting queries of SF {scale:g}, share of a core", figures, chosen)


def _one_seed(target: SessionTarget, seed: int, scale: float, seconds: float) -> dict[str, float]:
    rng = Random(f"waiting/{seed}")
    place = schema(scale)
    numbers = list(tpch.queries())
    texts = [
        tpch.in_schema(tpch.draw_query(rng.choice(numbers), rng), place) for _ in range(QUERIES)
    ]
    session = target.session
    began = time.perf_counter()
    handles = [session.submit(text) for text in texts]
    submit_s = (time.perf_counter() - began) / QUERIES
    time.sleep(SETTLE_S)
    first = session.report()
    time.sleep(seconds)
    last = session.report()
    passed_s = last.now_s - first.now_s
    found = _shares(first, last, passed_s)
    print(
        f"  seed {seed}: {last.waiting} wait, {last.running} run; "
        f"{(last.decisions - first.decisions) / passed_s:.0f} decisions per second; "
        f"together {found['together']:.2%} of a core",
        flush=True,
    )
    for handle in handles:
        handle.cancel()
    return {**found, "submit": submit_s * 1e3, "waiting": last.waiting}


def _shares(first: SessionReport, last: SessionReport, passed_s: float) -> dict[str, float]:
    def share(name: str) -> float:
        return float(getattr(last, name) - getattr(first, name)) / passed_s

    return {
        "together": share("driver_cpu_s") + share("history_cpu_s"),
        "kernel": share("decide_s"),
        "driver, with the kernel": share("driver_cpu_s"),
        "history": share("history_cpu_s"),
        "watching what runs (beside)": share("watch_cpu_s"),
    }


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scale", type=float, help=f"default: {SCALE:g}")


def main(arguments: Sequence[str] | None = None) -> None:
    bench(setting("waiting", __doc__, arguments, _options))


if __name__ == "__main__":
    main()
