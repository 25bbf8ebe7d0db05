"""What a shuffled copy costs: `python -m bench.online.copying [--scale 5] [--quick]`.

Processor seconds of the copy over those of one exact scan of the table in the same run (as TPC-H's
first query); its size over that of the table; the peak memory of the process that makes it. Each
copy is made in a process of its own: the peak of a process does not fall.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Console
from rich.table import Table

from queryard.engine.sampling import copy_places, shuffle
from queryard.sql.catalog import open_catalog
from queryard.workload import tpch

SCAN = """
    SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
        sum(l_extendedprice * (1 - l_discount)),
        sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)), avg(l_quantity),
        avg(l_extendedprice), avg(l_discount), count(*)
    FROM {} WHERE l_shipdate <= DATE '1998-09-02' GROUP BY ALL
"""
MEMORY = {"512 MB": 512 << 20, "2 GB": 2 << 30, "6 GB": 6 << 30}
THREADS = os.cpu_count() or 1


def lineitem(scale: float) -> Path:
    """The table, made once."""
    folder = Path(tempfile.gettempdir()) / "queryard-bench" / f"sf{scale:g}"
    return next(file for file in tpch.generate(folder, scale) if file.stem == "lineitem")


def scan_s(relation: str) -> float:
    """Processor seconds of the scan, the best of three."""
    with duckdb.connect(config={"threads": THREADS}) as connection:
        taken = []
        for _ in range(3):
            began = time.process_time()
            connection.execute(SCAN.format(relation)).fetchall()
            taken.append(time.process_time() - began)
        return min(taken)


def copied(place: Path, memory_bytes: int, answer: Any) -> None:
    """Make a copy in this process and send its figures."""
    catalog = open_catalog(place)
    table = catalog["lineitem"]
    _ = table.columns
    began, began_s = time.process_time(), time.monotonic()
    copy = shuffle(table, copy_places(catalog, table), memory_bytes=memory_bytes, threads=THREADS)
    taken = time.process_time() - began
    answer.send(
        {
            "processor_s": taken,
            "wall_s": time.monotonic() - began_s,
            "size": copy.bytes / table.bytes,
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
            "files": len(copy.parts),
            "scan_of_copy_s": scan_s(copy.relation(copy.parts)),
        }
    )


def in_a_process(place: Path, memory_bytes: int) -> dict[str, float]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=copied, args=(place, memory_bytes, there))
    process.start()
    there.close()
    try:
        found: dict[str, float] = here.recv()
    finally:
        process.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.online.copying", description=__doc__)
    parser.add_argument("--scale", type=float, default=5.0, help="default: %(default)s")
    parser.add_argument("--quick", action="store_true", help="scale 0.2 and two limits of memory")
    parser.add_argument("--out", type=Path, help="keep the figures in a JSON file")
    options = parser.parse_args()
    scale = 0.2 if options.quick else options.scale
    limits = dict(list(MEMORY.items())[:2]) if options.quick else MEMORY
    figures: dict[str, Any] = {"scale": scale}
    shown = Table(title=f"A shuffled copy of lineitem, TPC-H at scale {scale:g}, {THREADS} threads")
    for title in ("memory", "processor s", "scans", "wall s", "size", "peak MB", "scan of copy"):
        shown.add_column(title, justify="left" if title == "memory" else "right")
    with tempfile.TemporaryDirectory(prefix="queryard-bench-") as temporary:
        source = lineitem(scale)
        for name, memory_bytes in limits.items():
            place = Path(temporary, name.replace(" ", ""))
            place.mkdir()
            (place / "lineitem.parquet").symlink_to(source)
            # The scan is measured again beside each copy: other programs come and go.
            scan = scan_s(f"'{source}'")
            found = {**in_a_process(place, memory_bytes), "scan_s": scan}
            figures[name] = found
            shown.add_row(
                name,
                f"{found['processor_s']:.1f}",
                f"{found['processor_s'] / scan:.1f}",
                f"{found['wall_s']:.1f}",
                f"{found['size']:.2f}",
                f"{found['peak_mb']:,.0f}",
                f"{found['scan_of_copy_s'] / scan:.2f}",
            )
    Console().print(shown)
    if options.out is not None:
        options.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
