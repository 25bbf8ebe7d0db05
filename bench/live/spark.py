"""The same 22 queries at once on Spark: `pyspark`, local[N], FAIR pools, the same Parquet files.

Spark is installed into an environment of its own (`--env`, or a temporary one) with pip and needs
Java. It listens on 127.0.0.1 only. Every query has a pool of its own; the texts are those of the
other benches, translated by sqlglot. One query runs before the start, as for the other systems, and
what Spark takes to start is not counted.

python -m bench.live.spark [--scale 5] [--env DIR]: 5 to 10 min on two cores, nearly all of it
Spark's; one seed unless more are asked for.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import sqlglot

from queryard.load import Request, run
from queryard.workload import tpch

from .at_once import mean_s, requests
from .setting import OURS, PLAIN, Setting, checked, in_turn, schema, setting
from .verdict import Figure, show

SCALE = 5.0
SCRIPT = Path(__file__).with_name("spark_queries.py")
SPARK = "spark"
PACKAGE = "pyspark>=4,<5"


class Times(NamedTuple):
    """Mean response, last finish, and how many rows each query had."""

    mean_s: float
    last_s: float
    rows: dict[str, int]


def bench(chosen: Setting) -> None:
    _check_java()
    scale = chosen.given.scale or chosen.scale(SCALE)
    ground = chosen.ground(scale)
    found: list[dict[str, Times]] = []
    with tempfile.TemporaryDirectory(prefix="queryard-bench-") as temporary:
        python = installed(chosen.given.env or Path(temporary) / "env")
        for seed in range(chosen.seeds):
            asked = requests(scale, seed)
            texts = {ask.id: as_spark(ask.sql, schema(scale)) for ask in asked}

            def on_spark(texts: dict[str, str] = texts) -> Times:
                return _spark(python, chosen, scale, texts, Path(temporary))

            def here(name: str, asked: Sequence[Request] = asked) -> Times:
                played = run(asked, name, ground, {})
                checked({name: played})
                rows = {outcome.request.id: outcome.rows for outcome in played.outcomes}
                return Times(mean_s(played), played.span_s, rows)

            seen = in_turn(
                seed, {SPARK: on_spark, OURS: lambda: here(OURS), PLAIN: lambda: here(PLAIN)}
            )
            if seen[SPARK].rows != seen[PLAIN].rows:
                raise SystemExit(f"error: Spark's answers differ: {seen[SPARK]}, {seen[PLAIN]}")
            for name, times in seen.items():
                told = f"mean {times.mean_s:7.2f} s, last {times.last_s:7.2f} s"
                print(f"  seed {seed}: {name:8} {told}", flush=True)
            found.append(seen)
    figures = []
    for place, what in enumerate(("mean response", "last finish")):
        by = {name: [seen[name][:2][place] for seen in found] for name in (SPARK, OURS, PLAIN)}
        for name in (OURS, PLAIN):
            ratios = [theirs / ours for theirs, ours in zip(by[SPARK], by[name], strict=True)]
            figures.append(Figure(f"Spark's {what} over that of {name}", ratios))
        figures += [Figure(f"{name}: {what}", values, unit="s") for name, values in by.items()]
    show(f"22 TPC-H queries of SF {scale:g} at once, beside Spark", figures, chosen)


def as_spark(sql: str, place: str) -> str:
    """A text of DuckDB's in Spark's dialect; tables are temporary views there, without a schema.

    >>> as_spark("SELECT * FROM sf1.orders WHERE o_orderdate < DATE '1995-01-01'", "sf1")
    "SELECT * FROM orders WHERE o_orderdate < CAST('1995-01-01' AS DATE)"
    """
    bare = re.sub(rf"\b{place}\.", "", sql)
    return sqlglot.transpile(bare, read="duckdb", write="spark")[0]


def installed(folder: Path) -> Path:
    """The interpreter of an environment with pyspark, made if it is not there yet."""
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not python.exists():
        print(f"making an environment for Spark in {folder}", flush=True)
        venv.create(folder, with_pip=True)
    seen = subprocess.run([python, "-c", "import pyspark"], capture_output=True, check=False)
    if seen.returncode:
        print("installing pyspark into it (some 400 MB)", flush=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if subprocess.run([*command, PACKAGE], check=False).returncode:
            raise SystemExit(f"error: pip could not install {PACKAGE!r} into {folder}; see above")
    return python


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if not (home and (Path(home) / "bin" / "java").exists()) and shutil.which("java") is None:
        raise SystemExit(
            "error: Spark needs Java 17 or newer, and there is no `java`; install one (on Debian "
            "and Ubuntu: apt-get install openjdk-17-jre-headless), or set JAVA_HOME"
        )


def _spark(
    python: Path, chosen: Setting, scale: float, texts: dict[str, str], folder: Path
) -> Times:
    """Mean response and last finish of the texts on Spark, in a process of its own."""
    order = {
        "tables": {
            table: str((chosen.data / schema(scale) / f"{table}.parquet").absolute())
            for table in tpch.TABLES
        },
        "queries": texts,
        "slots": chosen.slots,
        "memory_mib": chosen.memory_bytes >> 20,
        "local": str(folder / "spark"),
    }
    asked, answered = folder / "asked.json", folder / "answered.json"
    asked.write_text(json.dumps(order), encoding="utf-8")
    answered.unlink(missing_ok=True)
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [str(part) for part in (python, SCRIPT, asked, answered)]
    done = subprocess.run(command, check=False, cwd=folder, env=environment)
    if done.returncode or not answered.exists():
        raise SystemExit("error: Spark did not end well; see above")
    answer = json.loads(answered.read_text(encoding="utf-8"))
    if answer["errors"]:
        name, error = next(iter(answer["errors"].items()))
        print(f"error: {len(answer['errors'])} queries failed on Spark; {name}: {error}")
        sys.exit(1)
    taken_s = answer["responses_s"].values()
    return Times(statistics.fmean(taken_s), max(taken_s), answer["rows"])


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scale", type=float, help=f"default: {SCALE:g}")
    parser.add_argument("--env", type=Path, help="folder of the environment with pyspark, kept")


def main(arguments: Sequence[str] | None = None) -> None:
    bench(setting("spark", __doc__, arguments, _options, seeds=1))


if __name__ == "__main__":
    main()
