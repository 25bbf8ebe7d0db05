"""Queryard on Ray beside Spark, Daft on Ray and Dask: TPC-H one by one, and all at once.

All have two nodes (or workers) of one slot each on this machine, listen on 127.0.0.1 only, and read
the same Parquet files. Spark is a standalone cluster and has the texts in its dialect. Daft has its
own SQL; what it cannot run is counted, and left out on both sides. Dask has no SQL: some queries
are written by hand, and only those are compared. Answers are compared with DuckDB's by the number
of rows and the sum of all numbers in them; wrong ones are left out as well, and counted. At once,
a peer has 1, 2, 4 or all queries under way, and its best mean response counts; Queryard has all.

The peers are installed into an environment of their own, some 1.5 GB, on first use
(tools/peers_environment.py; QUERYARD_PEERS_PYTHON names another); Spark needs Java 17.

python -m bench.ray.peers [--scale 5] [--times 3] [--only spark,daft,dask] [--quick]: an hour, or
some minutes with --quick.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import sqlglot
from rich.console import Console
from rich.table import Table

import queryard
from queryard.engine.plain import PlainDuckDB
from queryard.sql.catalog import open_catalog
from queryard.workload import tpch
from tools.environment import Unavailable
from tools.peers_environment import PEERS

from .nodes import END_S, all_joined, nodes
from .peer_programs.asking import Answer, check, is_same
from .processes import Process, descendants, end, off_loopback

PROGRAMS = Path(__file__).with_name("peer_programs")
DIALECTS = {"spark": "spark", "daft": "duckdb", "dask": "duckdb"}
FILES = {"spark": "spark.py", "daft": "daft_sql.py", "dask": "dask_frames.py"}
WHAT = {
    "spark": "Spark, standalone, two workers",
    "daft": "Daft's SQL on Ray, two nodes",
    "dask": "Dask data frames, two workers",
}
NODES = 2
LIFE_S = 3 * 3600.0
QUICK_LIFE_S = 900.0


@dataclass
class Times(Answer):
    """What a peer has answered, or Queryard."""

    ended: str = ""
    """Why the program was ended before it had asked all; empty if it was not."""

    def median_s(self, name: str) -> float:
        return statistics.median(self.alone_s[name])


def main(given: Sequence[str] | None = None) -> None:
    options = _options(given)
    if options.quick:
        options.scale, options.times = min(options.scale, 0.1), 1
    if options.life is None:
        options.life = QUICK_LIFE_S if options.quick else LIFE_S
    console = Console(highlight=False)
    folder = made(options.data, options.scale)
    texts = {f"Q{number}": tpch.query(number) for number in tpch.queries()}
    expected = plain_checks(folder, texts)
    found: dict[str, Times] = {}
    for name in options.only.split(","):
        if name not in FILES:
            raise SystemExit(f"error: --only {name}: unknown; there are {', '.join(FILES)}")
        console.print(f"{WHAT[name]} …")
        try:
            found[name] = peer(name, texts, expected, folder, options)
        except (Unavailable, PeerFailed) as error:
            console.print(f"{name} is left out: {error}", style="red", markup=False)
            continue
        if reason := found[name].ended:
            asked_then = f"{len(found[name].alone_s)} of {len(texts)} queries asked"
            console.print(f"{name} was ended: {reason}; {asked_then}", style="red", markup=False)
    if not found:
        raise SystemExit("error: there is no peer to compare with; see above")
    console.print("Queryard on Ray, two nodes …")
    asked = {name: compared(times, expected, console, name) for name, times in found.items()}
    ours = queryard_times(texts, folder, options, [list(texts), *asked.values()])
    right = compared(ours[tuple(texts)], expected, console, "Queryard")
    for name, names in asked.items():
        if names:
            shown(WHAT[name], found[name], ours[tuple(names)], names, len(texts), console)
    if len(right) < len(texts):
        raise SystemExit("error: not all answers of Queryard are DuckDB's; see above")


def made(place: Path, scale: float) -> Path:
    """TPC-H as Parquet that all can read: as it is generated, Daft knows no type of its texts."""
    source, folder = place / f"sf{scale:g}", place / f"peers-sf{scale:g}"
    tpch.generate(source, scale)
    folder.mkdir(exist_ok=True)
    with duckdb.connect() as connection:
        for table in tpch.TABLES:
            file = folder / f"{table}.parquet"
            if not file.exists():
                part = file.with_suffix(".part")
                rows = f"FROM read_parquet('{source / table}.parquet')"
                connection.execute(f"COPY ({rows}) TO '{part}' (FORMAT parquet)")
                part.replace(file)
    return folder


class PeerFailed(Exception):
    """A peer did not end well; the text says how."""


def peer(
    name: str,
    texts: Mapping[str, str],
    expected: Mapping[str, Sequence[float]],
    folder: Path,
    options: argparse.Namespace,
) -> Times:
    """All queries at a peer, in a program of its own."""
    if name == "spark" and shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise PeerFailed(
            "Spark needs Java 17, and there is no `java`; install one, or set JAVA_HOME"
        )
    python = PEERS.python()
    dialect = DIALECTS[name]
    # Paths of Ray's sockets are short.
    with tempfile.TemporaryDirectory(prefix="qyp-", dir="/tmp") as temporary:
        asked, answered = Path(temporary) / "asked.json", Path(temporary) / "answered.json"
        order = {
            "tables": {t: str((folder / f"{t}.parquet").absolute()) for t in tpch.TABLES},
            "queries": {
                n: sqlglot.transpile(text, read="duckdb", write=dialect)[0]
                for n, text in texts.items()
            },
            "queries_in_order": list(texts),
            "times": options.times,
            "expected": expected,
            "nodes": NODES,
            "memory_mib": options.memory_mib,
            "local": temporary,
        }
        asked.write_text(json.dumps(order), encoding="utf-8")
        try:
            run_program([str(python), FILES[name], str(asked), str(answered)], options.life)
        except PeerFailed as error:
            if not answered.exists():
                raise
            ended = str(error)
        else:
            ended = ""
        return Times(**json.loads(answered.read_text(encoding="utf-8")), ended=ended)


def run_program(command: Sequence[str], life_s: float) -> None:
    """Run a program and all that it starts; end all by their ids if it takes too long.

    What it starts must listen on 127.0.0.1 only.
    """
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "SPARK_HOME")}
    environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    process = subprocess.Popen(command, cwd=PROGRAMS, env=environment)
    started: set[Process] = set()
    until_s = time.monotonic() + life_s
    reason = ""
    while process.poll() is None and not reason:
        time.sleep(1.0)
        now = descendants(process.pid)
        started |= now
        if listening := off_loopback({process.pid} | {each.pid for each in now}):
            reason = f"it listens on {', '.join(listening)}, not on 127.0.0.1 only"
        elif time.monotonic() > until_s:
            reason = f"it took longer than {life_s:g} s"
    if reason:
        process.kill()
    process.wait()
    end(started, 0.0 if reason else END_S)
    if reason or process.returncode:
        raise PeerFailed(reason or f"it ended with {process.returncode}; see above")


def plain_checks(folder: Path, texts: Mapping[str, str]) -> dict[str, list[float]]:
    with PlainDuckDB(open_catalog(folder), 2, 4 << 30) as duck:
        cursor = duck.cursor()
        found = {name: check(_rows(cursor.arrow(text))) for name, text in texts.items()}
        cursor.close()
    return found


def _rows(table: Any) -> Iterable[Sequence[Any]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def compared(
    times: Times, expected: Mapping[str, Sequence[float]], console: Console, peer: str
) -> list[str]:
    """The queries that were answered as by DuckDB; of others it is said why they were not."""
    right = []
    for name, (rows, total) in expected.items():
        if name in times.errors:
            console.print(f"{peer}: {name}: {times.errors[name]}", style="yellow", markup=False)
        elif name in times.checks:
            found_rows, found_total = times.checks[name]
            if is_same((found_rows, found_total), (rows, total)):
                right.append(name)
            else:
                console.print(
                    f"{peer}: {name}: another answer than DuckDB's: {found_rows:g} rows with sum "
                    f"{found_total:.6g}, not {rows:g} with {total:.6g}",
                    style="red",
                )
    return right


def queryard_times(
    texts: Mapping[str, str],
    folder: Path,
    options: argparse.Namespace,
    together: Sequence[Sequence[str]],
) -> dict[tuple[str, ...], Times]:
    """Queries alone, and each selection of them at once."""
    found: dict[tuple[str, ...], Times] = {}
    with (
        nodes(*[1] * NODES, store_bytes=512 << 20) as cluster,
        queryard.connect(
            folder,
            backend="ray",
            address=cluster.address,
            memory=options.memory_mib << 20,
            history=False,
        ) as session,
    ):
        all_joined(session, NODES)
        session.sql("SELECT count(*) FROM nation").fetchall()
        alone_s: dict[str, list[float]] = {name: [] for name in texts}
        checks: dict[str, list[float]] = {}
        for name, text in texts.items():
            for _ in range(options.times):
                began_s = time.perf_counter()
                rows = session.sql(text).arrow()
                alone_s[name].append(time.perf_counter() - began_s)
                checks[name] = check(_rows(rows))
        for names in together:
            if tuple(names) not in found and names:
                at_once_s = _at_once(session, {name: texts[name] for name in names})
                found[tuple(names)] = Times(alone_s, at_once_s, checks)
    return found


def _at_once(session: queryard.Session, texts: Mapping[str, str]) -> dict[str, float]:
    taken_s: dict[str, float] = {}

    def read(name: str, handle: queryard.Handle) -> None:
        handle.take().arrow()
        taken_s[name] = time.perf_counter() - began_s

    began_s = time.perf_counter()
    threads = [
        threading.Thread(target=read, args=(name, session.submit(text)))
        for name, text in texts.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(taken_s) < len(texts):
        raise SystemExit("error: not all queries were answered on Queryard; see above")
    return taken_s


def shown(
    title: str, theirs: Times, ours: Times, names: Sequence[str], all_: int, console: Console
) -> None:
    told = f"{title}: {len(names)} queries, {all_ - len(names)} left out"
    if theirs.at_once_s:
        told += f"; at once, {theirs.width} under way"
    table = Table(title=told, title_justify="left")
    for column in ("", "Queryard on Ray", "peer", "peer / Queryard"):
        table.add_column(column, justify="right" if column else "left")
    alone = [theirs.median_s(name) / ours.median_s(name) for name in names]
    rows = [
        (
            "one by one, geometric mean, s",
            statistics.geometric_mean(ours.median_s(name) for name in names),
            statistics.geometric_mean(theirs.median_s(name) for name in names),
            statistics.geometric_mean(alone),
        )
    ]
    # A program that was ended early has perhaps asked none at once.
    if theirs.at_once_s:
        our_s, their_s = ([t.at_once_s[name] for name in names] for t in (ours, theirs))
        for what, fold in (("mean response", statistics.fmean), ("last finish", max)):
            rows.append(
                (f"at once, {what}, s", fold(our_s), fold(their_s), fold(their_s) / fold(our_s))
            )
    for name, *values in rows:
        table.add_row(name, *(f"{value:.2f}" for value in values))
    console.print(table)


def _options(given: Sequence[str] | None) -> argparse.Namespace:
    usual = Path(tempfile.gettempdir()) / "queryard-bench-ray"
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=5.0, help="of TPC-H")
    parser.add_argument("--times", type=int, default=3, help="runs of each query alone")
    parser.add_argument("--memory-mib", type=int, default=4096, help="of each node")
    parser.add_argument("--only", default=",".join(FILES), help="peers, by name")
    parser.add_argument("--data", type=Path, default=usual, help="where data is made")
    parser.add_argument(
        "--life",
        type=float,
        metavar="SECONDS",
        help="end a peer after so long, and compare what it has answered by then "
        "(three hours; 15 minutes with --quick)",
    )
    parser.add_argument("--quick", action="store_true", help="scale 0.1, each query once")
    return parser.parse_args(given)


if __name__ == "__main__":
    main()
