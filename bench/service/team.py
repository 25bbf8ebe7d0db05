"""Twenty tenants with ten connections each, and the mix of `bench.live`, over HTTP.

The same requests at the same times go to a Queryard server, to plain DuckDB behind the same kind of
HTTP front (FastAPI, uvicorn, Arrow), and to DuckDB's own server, Quack, with its own client (DuckDB
1.5.5, in an environment of its own that is made once; left out where it cannot be installed).
Targets: mean and p95 of the small queries (the two smaller scales of TPC-H) at most 0.5 of both
peers'. What templates take alone is measured once and kept beside the data.

python -m bench.service.team [--seeds 1] [--seconds 100] [--size 0.2]: about 8 minutes per seed, and
as long once to make the data and to measure. `--size 1` has the data of `bench.live`, and queries
that take five times as long: give it `--seconds 600`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa

from bench.live import mixes
from bench.live.setting import Setting, in_turn, schema, setting
from bench.live.verdict import Figure, show
from queryard.core.model import Tenant
from queryard.load import LoadSpec, Request, draw
from queryard.workload.load import Asker
from tools.quack_environment import Unavailable, environment

from .quack_peer import CONNECTIONS_PER_TENANT
from .setting import free_port, server, table, wait_until_ready

TENANTS = tuple(f"team{number:02d}" for number in range(20))
MOST = 0.5
# More than come in the time that is played.
MOST_QUERIES = 2_000
# How long the server may take to answer a request with rows.
WAIT_S = 300
ARROW = "application/vnd.apache.arrow.stream"

Outcomes = Mapping[str, tuple[float, int, str]]
"""By request: seconds from the start to its last row, its rows, its error."""
Send = Callable[[httpx.AsyncClient, Request], Any]


def spec(size: float, count: int) -> LoadSpec:
    """The long-tailed mix of `bench.live`, from twenty tenants."""
    found = mixes.spec("team", mixes.long_tailed(size), count, size)
    mix = found.askers[0].mix
    return replace(found, askers=tuple(Asker(Tenant(name), mix) for name in TENANTS))


def bench(chosen: Setting) -> None:
    size = 0.1 if chosen.quick else chosen.given.size
    seconds = 10.0 if chosen.quick else chosen.given.seconds
    load = spec(size, MOST_QUERIES)
    ground = chosen.ground(*mixes.scales(size))
    alone = chosen.alone or chosen.data / f"team-alone-{size:g}-{ground.slots}.json"
    measured = replace(chosen, alone=alone).measure(ground, [load])
    small = tuple(f"{schema(scale)}." for scale in mixes.scales(size)[:2])
    tables = {name: str(path) for name, path in ground.tables.items()}
    quack = None if chosen.given.without_quack else quack_python()
    seen: dict[str, list[float]] = {}
    for seed in range(chosen.seeds):
        drawn = draw(load, seed=seed, work_s=measured.work_s, slots=ground.slots)
        asked = [one for one in drawn if one.time_s <= seconds]
        print(f"  seed {seed}: {len(asked)} queries within {seconds:g} s", flush=True)
        runs: dict[str, Callable[[], Outcomes]] = {
            "queryard": lambda asked=asked: by_queryard(asked, tables),
            "front": lambda asked=asked: by_front(asked, tables),
        }
        if quack is not None:
            runs["quack"] = lambda asked=asked: by_quack(asked, tables, quack)
        found = in_turn(seed, {name: _told(name, run) for name, run in runs.items()})
        _check_all(found, asked)
        for name, outcomes in found.items():
            for what, value in _figures(outcomes, asked, small).items():
                seen.setdefault(f"{name} {what}", []).append(value)
    peers = [name for name in ("front", "quack") if f"{name} mean" in seen]
    _show_seconds(seen, ("queryard", *peers))
    figures = [
        Figure(
            f"{what} of small queries, of {peer}'s",
            [
                ours / theirs
                for ours, theirs in zip(
                    seen[f"queryard {what}"], seen[f"{peer} {what}"], strict=True
                )
            ],
            MOST,
        )
        for peer in peers
        for what in ("mean", "p95")
    ]
    show("20 tenants, 200 connections", figures, chosen, size=size, seconds=seen)


def _told(name: str, run: Callable[[], Outcomes]) -> Callable[[], Outcomes]:
    """A run that says when it begins, and how long it took."""

    def telling() -> Outcomes:
        began = time.perf_counter()
        print(f"  {name}: begins", flush=True)
        found = run()
        print(f"  {name}: {time.perf_counter() - began:.0f} s", flush=True)
        return found

    return telling


def _check_all(found: Mapping[str, Outcomes], asked: Sequence[Request]) -> None:
    """Every query must be answered, and with as many rows everywhere."""
    for name, outcomes in found.items():
        wrong = [each for each in outcomes.values() if each[2]]
        if wrong:
            raise SystemExit(f"error: {name}: {len(wrong)} failed, one with {wrong[0][2]}")
    for one in asked:
        rows = {name: outcomes[one.id][1] for name, outcomes in found.items()}
        if len(set(rows.values())) > 1:
            raise SystemExit(f"error: {one.id} had another number of rows: {rows}\n{one.sql}")


def _figures(
    outcomes: Outcomes, asked: Sequence[Request], small: tuple[str, ...]
) -> dict[str, float]:
    """Seconds of the small queries, and of all."""
    times = {one.id: outcomes[one.id][0] - one.time_s for one in asked}
    short = sorted(times[one.id] for one in asked if one.template.startswith(small))
    if not short:
        raise SystemExit("error: no small query came within this time; give more with --seconds")
    return {
        "mean": statistics.fmean(short),
        "p95": short[int(len(short) * 0.95)],
        "mean of all": statistics.fmean(times.values()),
        "largest": max(times.values()),
    }


def _show_seconds(seen: Mapping[str, Sequence[float]], names: Sequence[str]) -> None:
    """The medians over the seeds, as a table."""
    rows = [
        (what, *(statistics.median(seen[f"{name} {what}"]) for name in names))
        for what in ("mean", "p95", "mean of all", "largest")
    ]
    table("seconds; mean and p95 are those of small queries", ("", *names), rows, None)


# --- over HTTP -----------------------------------------------------------------------------------


def by_queryard(asked: Sequence[Request], tables: Mapping[str, str]) -> Outcomes:
    limits = {"connections": 1000}
    with server(tables, TENANTS, limits=limits) as served:
        headers = {name: {"Authorization": f"Bearer {served.secrets[name]}"} for name in TENANTS}

        async def send(client: httpx.AsyncClient, one: Request) -> int:
            given = headers[one.tenant]
            asked_for = {**given, "Accept": ARROW}
            found = await client.post(
                "/v1/queries", params={"wait": WAIT_S}, json={"sql": one.sql}, headers=asked_for
            )
            _check(found)
            if not found.headers["content-type"].startswith(ARROW):
                raise RuntimeError(f"no rows within {WAIT_S} s")
            return _count(found.content)

        return asyncio.run(play(asked, served.http, send))


def by_front(asked: Sequence[Request], tables: Mapping[str, str]) -> Outcomes:
    async def send(client: httpx.AsyncClient, one: Request) -> int:
        found = await client.post("/query", content=one.sql.encode())
        _check(found)
        return _count(found.content)

    with tempfile.TemporaryDirectory(prefix="queryard-bench-front-") as folder:
        port, file, log = free_port(), Path(folder) / "tables.json", Path(folder) / "log"
        file.write_text(json.dumps(dict(tables)), encoding="utf-8")
        command = [sys.executable, "-m", "bench.service.plain_front", str(port), str(file)]
        with log.open("wb") as output, _ended(subprocess.Popen(command, stderr=output)) as process:
            wait_until_ready(f"http://127.0.0.1:{port}/readyz", process, log)
            return asyncio.run(play(asked, f"http://127.0.0.1:{port}", send))


async def play(asked: Sequence[Request], url: str, send: Send) -> Outcomes:
    """Send every request at its time, over at most ten kept connections per tenant."""
    outcomes: dict[str, tuple[float, int, str]] = {}
    limits = httpx.Limits(max_connections=CONNECTIONS_PER_TENANT)
    async with contextlib.AsyncExitStack() as stack:
        clients = {
            name: await stack.enter_async_context(
                httpx.AsyncClient(base_url=url, limits=limits, timeout=None)
            )
            for name in TENANTS
        }
        began = time.perf_counter()

        async def one_request(one: Request) -> None:
            rows, error = 0, ""
            try:
                rows = await send(clients[one.tenant], one)
            except Exception as raised:
                error = f"{type(raised).__name__}: {raised}"
            outcomes[one.id] = (time.perf_counter() - began, rows, error)

        async with asyncio.TaskGroup() as group:
            for one in asked:
                await asyncio.sleep(max(0.0, one.time_s - (time.perf_counter() - began)))
                group.create_task(one_request(one))
    return outcomes


def _check(answer: httpx.Response) -> None:
    if answer.status_code >= 400:
        raise RuntimeError(f"{answer.status_code} {answer.text[:300]}")


def _count(content: bytes) -> int:
    return int(pa.ipc.open_stream(content).read_all().num_rows)


# --- Quack ---------------------------------------------------------------------------------------


def quack_python() -> Path | None:
    """The Python of an environment with DuckDB's own server; None where there is none."""
    try:
        return environment()
    except Unavailable as reason:
        print(f"DuckDB's own server is left out: {reason}")
        return None


def by_quack(asked: Sequence[Request], tables: Mapping[str, str], python: Path) -> Outcomes:
    script = str(Path(__file__).with_name("quack_peer.py"))
    with tempfile.TemporaryDirectory(prefix="queryard-bench-quack-") as folder:
        place = Path(folder)
        (place / "tables.json").write_text(json.dumps(dict(tables)), encoding="utf-8")
        plain = [
            {"id": one.id, "time_s": one.time_s, "tenant": one.tenant, "sql": one.sql}
            for one in asked
        ]
        (place / "asked.json").write_text(json.dumps(plain), encoding="utf-8")
        port, token = str(free_port()), "bench-token"
        serving = subprocess.Popen(
            [python, script, "serve", port, token, str(place / "tables.json")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with _ended(serving):
            assert serving.stdout is not None
            if serving.stdout.readline().strip() != b"ready":
                raise SystemExit("error: DuckDB's own server did not start")
            command = [str(python), script, "ask", port, token]
            command += [str(place / "asked.json"), str(place / "outcomes.json")]
            subprocess.run(command, check=True)
        found = json.loads((place / "outcomes.json").read_text(encoding="utf-8"))
    return {key: (value[0], value[1], value[2]) for key, value in found.items()}


@contextlib.contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds", type=float, default=100, help="of arrivals (default: %(default)s)"
    )
    parser.add_argument(
        "--size", type=float, default=0.2, help="of the data of bench.live (default: %(default)s)"
    )
    parser.add_argument("--without-quack", action="store_true")


def main(arguments: Sequence[str] | None = None) -> None:
    bench(setting("team", __doc__, arguments, _more, seeds=1))


if __name__ == "__main__":
    main()
