"""Twenty tenants with ten connections each, and the mix of `bench.live`, over HTTP.

The same requests at the same times go to a Queryard server, to plain DuckDB behind the same kind of
HTTP front (FastAPI, uvicorn, Arrow), and to DuckDB's own server, Quack, with its own client (DuckDB
1.5.5, in an environment of its own that is made once; left out where it cannot be installed).
Targets: mean and p95 of the small queries (scales 0.1 and 1 of TPC-H) at most 0.5 of both peers'.

python -m bench.service.team [--seeds 3] [--queries 200]: about 5 minutes per run, three per seed.
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
from .setting import free_port, server, wait_until_ready

TENANTS = tuple(f"team{number:02d}" for number in range(20))
MOST = 0.5

Outcomes = Mapping[str, tuple[float, int, str]]
"""By request: seconds from the start to its last row, its rows, its error."""
Send = Callable[[httpx.AsyncClient, Request], Any]


def spec(size: float, count: int) -> LoadSpec:
    """The long-tailed mix of `bench.live`, from twenty tenants."""
    found = mixes.spec("team", mixes.long_tailed(size), count, size)
    mix = found.askers[0].mix
    return replace(found, askers=tuple(Asker(Tenant(name), mix) for name in TENANTS))


def bench(chosen: Setting) -> None:
    size = 0.1 if chosen.quick else 1.0
    count = 40 if chosen.quick else chosen.given.queries
    load = spec(size, count)
    ground = chosen.ground(*mixes.scales(size))
    measured = chosen.measure(ground, [load])
    small = tuple(f"{schema(scale)}." for scale in mixes.scales(size)[:2])
    tables = {name: str(path) for name, path in ground.tables.items()}
    quack = None if chosen.given.without_quack else quack_python()
    ratios: dict[str, list[float]] = {}
    for seed in range(chosen.seeds):
        asked = draw(load, seed=seed, work_s=measured.work_s, slots=ground.slots)
        runs: dict[str, Callable[[], Outcomes]] = {
            "queryard": lambda asked=asked: by_queryard(asked, tables),
            "front": lambda asked=asked: by_front(asked, tables),
        }
        if quack is not None:
            runs["quack"] = lambda asked=asked: by_quack(asked, tables, quack)
        found = in_turn(seed, runs)
        rows = {one.id: {name: out[one.id][1] for name, out in found.items()} for one in asked}
        for name, outcomes in found.items():
            wrong = [each for each in outcomes.values() if each[2]]
            if wrong:
                raise SystemExit(f"error: {name}: {len(wrong)} failed, one with {wrong[0][2]}")
            times = [outcomes[one.id][0] - one.time_s for one in asked]
            short = sorted(
                outcomes[one.id][0] - one.time_s for one in asked if one.template.startswith(small)
            )
            mean, p95 = statistics.fmean(short), short[int(len(short) * 0.95)]
            print(
                f"  seed {seed}: {name}: small mean {mean:.3f} s, p95 {p95:.3f} s; "
                f"all mean {statistics.fmean(times):.3f} s, last {max(times):.1f} s",
                flush=True,
            )
            ratios.setdefault(f"{name} mean", []).append(mean)
            ratios.setdefault(f"{name} p95", []).append(p95)
        if different := [key for key, each in rows.items() if len(set(each.values())) > 1]:
            raise SystemExit(f"error: {different[0]} had another number of rows: {rows}")
    figures = [
        Figure(
            f"{what} of small queries, of {peer}'s",
            [
                ours / theirs
                for ours, theirs in zip(
                    ratios[f"queryard {what}"], ratios[f"{peer} {what}"], strict=True
                )
            ],
            MOST,
        )
        for peer in ("front", "quack")
        if f"{peer} mean" in ratios
        for what in ("mean", "p95")
    ]
    show("20 tenants, 200 connections", figures, chosen, size=size, seconds=ratios)


# --- over HTTP -----------------------------------------------------------------------------------


def by_queryard(asked: Sequence[Request], tables: Mapping[str, str]) -> Outcomes:
    limits = {"connections": 1000}
    with server(tables, TENANTS, limits=limits) as served:
        headers = {name: {"Authorization": f"Bearer {served.secrets[name]}"} for name in TENANTS}

        async def send(client: httpx.AsyncClient, one: Request) -> int:
            given = headers[one.tenant]
            entered = await client.post("/v1/queries", json={"sql": one.sql}, headers=given)
            _check(entered)
            place = f"/v1/queries/{entered.json()['id']}/rows"
            found = await client.get(place, params={"format": "arrow"}, headers=given)
            _check(found)
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
    parser.add_argument("--queries", type=int, default=200, help="default: %(default)s")
    parser.add_argument("--without-quack", action="store_true")


def main(arguments: Sequence[str] | None = None) -> None:
    bench(setting("team", __doc__, arguments, _more, seeds=3))


if __name__ == "__main__":
    main()
