"""The tail of small queries while other queries run steps that cannot be interrupted.

The tenant `lab` keeps some cross joins of 3 million by 3 million rows running, far longer than the
bench lasts. DuckDB does not interrupt a step of them for up to half a second. The tenant `web` has
a guarantee of half of the slots and submits queries of about 10 to 50 ms at random times.
Their responses are compared with those of plain DuckDB, where each query has a connection of its
own.

python -m bench.live.tail [--seeds 5]: about 50 s per seed and number of cross joins.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

import duckdb

import queryard

from .setting import OURS, PLAIN, Setting, in_turn, setting
from .verdict import Figure, show

ROWS, SMALL_ROWS = 3_000_000, 500_000
CROSS_JOINS = (1, 4)
ASKING_S, EVERY_S, SETTLE_S = 20.0, 0.2, 2.0
# How long to wait for the last queries.
PATIENCE_S = 60.0
HEAVY = "SELECT count(*) FROM '{file}' a, '{file}' b WHERE a.v + b.v = {at}"
SMALL = (
    "SELECT g, sum(v) FROM '{file}' WHERE v > {at} GROUP BY g",
    "SELECT count(*) FROM '{file}' WHERE v % 10 = {at}",
    "SELECT max(v), count(DISTINCT g) FROM '{file}' WHERE v > {at}",
)

Ask = Callable[[str], object]


class Files(NamedTuple):
    """What cross joins read, and what small queries read."""

    large: Path
    small: Path


def _written(file: Path, rows: int) -> Path:
    duckdb.sql(
        f"SELECT (i * 7919) % 1000 AS g, (i * 104729) % {rows} AS v FROM range({rows}) t(i)"
    ).write_parquet(str(file))
    return file


def bench(chosen: Setting) -> None:
    part = 10 if chosen.quick else 1
    seconds = 3.0 if chosen.quick else ASKING_S
    figures = []
    with tempfile.TemporaryDirectory(prefix="queryard-tail-") as folder:
        files = Files(
            _written(Path(folder) / "large.parquet", ROWS // part),
            _written(Path(folder) / "small.parquet", SMALL_ROWS // part),
        )
        for joins in CROSS_JOINS:
            found: dict[str, list[list[float]]] = {OURS: [], PLAIN: []}
            for seed in range(chosen.seeds):
                runs = {
                    OURS: partial(_responses, _ours, files, joins, seed, seconds, chosen),
                    PLAIN: partial(_responses, _plain, files, joins, seed, seconds, chosen),
                }
                for name, responses in in_turn(seed, runs).items():
                    found[name].append(responses)
                    print(
                        f"  {joins} cross joins, seed {seed}, {name}: {len(responses)} small "
                        f"queries, median {statistics.median(responses) * 1e3:.0f} ms, p95 "
                        f"{_p95(responses) * 1e3:.0f} ms, longest {max(responses) * 1e3:.0f} ms",
                        flush=True,
                    )
            for what, of, most in (("median", statistics.median, None), ("p95", _p95, 1.0)):
                pairs = zip(found[OURS], found[PLAIN], strict=True)
                ratios = [of(ours) / of(plain) for ours, plain in pairs]
                figures.append(
                    Figure(f"{what} of DuckDB's beside {joins} cross joins", ratios, most)
                )
    show("small queries beside steps that cannot be interrupted", figures, chosen)


def _responses(
    opened: Callable[[Setting], Iterator[tuple[Ask, Ask]]],
    files: Files,
    joins: int,
    seed: int,
    seconds: float,
    chosen: Setting,
) -> list[float]:
    """The seconds from the time that each small query was asked for to its rows."""
    rng = Random(f"tail/{seed}")
    responses: list[float] = []
    with ExitStack() as stack:
        heavy, small = stack.enter_context(contextmanager(opened)(chosen))
        for text in SMALL:
            small(text.format(file=files.small, at=0))
        for at in range(joins):
            heavy(HEAVY.format(file=files.large, at=at))
        time.sleep(SETTLE_S)
        askers = stack.enter_context(ThreadPoolExecutor(64))

        def ask(text: str, asked: float) -> None:
            small(text)
            responses.append(time.monotonic() - asked)

        until, pending = time.monotonic() + seconds, []
        while time.monotonic() < until:
            time.sleep(rng.expovariate(1 / EVERY_S))
            text = rng.choice(SMALL).format(file=files.small, at=rng.randrange(10))
            pending.append(askers.submit(ask, text, time.monotonic()))
        for one in pending:
            one.result(PATIENCE_S)
    return responses


def _ours(chosen: Setting) -> Iterator[tuple[Ask, Ask]]:
    with queryard.connect(
        slots=chosen.slots,
        memory=chosen.memory_bytes,
        history=False,
        tenants={"web": {"guarantee": 0.5}, "lab": {}},
    ) as session:
        handles = []
        yield (
            lambda text: handles.append(session.submit(text, tenant="lab")),
            lambda text: session.sql(text, tenant="web").fetchall(),
        )
        for handle in handles:
            handle.cancel()


def _plain(chosen: Setting) -> Iterator[tuple[Ask, Ask]]:
    database = duckdb.connect(config={"threads": chosen.slots})
    heavy: list[tuple[threading.Thread, duckdb.DuckDBPyConnection]] = []

    def begin(text: str) -> None:
        connection = database.cursor()
        thread = threading.Thread(target=_until_interrupted, args=(connection, text))
        heavy.append((thread, connection))
        thread.start()

    yield begin, lambda text: database.cursor().execute(text).fetchall()
    for thread, connection in heavy:
        connection.interrupt()
        thread.join(PATIENCE_S)
    database.close()


def _until_interrupted(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    with suppress(duckdb.InterruptException):
        connection.execute(text).fetchall()


def _p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def main(arguments: Sequence[str] | None = None) -> None:
    bench(setting("tail", __doc__, arguments, _options))


def _options(parser: argparse.ArgumentParser) -> None:
    pass


if __name__ == "__main__":
    main()
