"""A server in a process of its own, and the options that all benches here have."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from queryard.service.tokens import TokenStore

START_S = 90.0
STOP_S = 15.0


@dataclass(frozen=True)
class Served:
    """A server that runs: where it listens, and a secret per tenant."""

    pid: int
    http: str
    postgres_port: int
    secrets: Mapping[str, str]
    """By the name of the tenant, which is the name of its token, too; "admin" is an admin's."""
    start_s: float
    """From the start of its process until it was ready."""

    def dsn(self, tenant: str) -> str:
        """How libpq's clients connect."""
        return (
            f"host=127.0.0.1 port={self.postgres_port} user={tenant} "
            f"password={self.secrets[tenant]} dbname=queryard"
        )

    def url(self, tenant: str) -> str:
        """The same as a URL."""
        secret = self.secrets[tenant]
        return f"postgresql://{tenant}:{secret}@127.0.0.1:{self.postgres_port}/queryard"

    def cpu_s(self) -> float:
        """Processor time of the server so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_bytes(self) -> int:
        """What the server holds in memory now."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))


@contextlib.contextmanager
def server(
    tables: Mapping[str, str],
    tenants: Sequence[str] = ("bench",),
    *,
    session: Mapping[str, object] | None = None,
    limits: Mapping[str, object] | None = None,
) -> Iterator[Served]:
    """Start `queryard serve` over some tables; it ends with the context.

    The secrets are those of tokens that are called like their tenants; `admin` is an
    admin's.
    """
    with tempfile.TemporaryDirectory(prefix="queryard-bench-service-") as folder:
        place = Path(folder)
        http, postgres = free_port(), free_port()
        store = TokenStore(place / "tokens.json")
        secrets = {tenant: store.add(tenant, tenant=tenant) for tenant in tenants}
        secrets["admin"] = store.add("admin", tenant="admin", role="admin")
        lines = ["[service]", f'http = "127.0.0.1:{http}"', f'postgres = "127.0.0.1:{postgres}"']
        lines += [f"tokens = {json.dumps(str(place / 'tokens.json'))}"]
        lines += ["[service.limits]", *_toml({"statements_per_s": 10000, **(limits or {})})]
        lines += ["[session]", *_toml(session or {})]
        lines += ["[tables]", *(f"{name} = {json.dumps(path)}" for name, path in tables.items())]
        config = place / "queryard.toml"
        config.write_text("\n".join(lines) + "\n", encoding="utf-8")
        log = (place / "log").open("wb")
        command = [sys.executable, "-m", "queryard.cli", "serve", str(config)]
        began_s = time.monotonic()
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            wait_until_ready(f"http://127.0.0.1:{http}/readyz", process, place / "log")
            start_s = time.monotonic() - began_s
            yield Served(process.pid, f"http://127.0.0.1:{http}", postgres, secrets, start_s)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            log.close()


def _toml(given: Mapping[str, object]) -> list[str]:
    return [f"{key} = {json.dumps(value)}" for key, value in given.items()]


def wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until an address answers; a process that has ended is an error with its last words."""
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        if process.poll() is not None:
            raise SystemExit(f"error: the server ended: {log.read_text(errors='replace')[-2000:]}")
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=1) as answer:
            if answer.status == 200:
                return
        time.sleep(0.05)
    raise SystemExit(f"error: {url} did not answer within {START_S:g} s")


def free_port() -> int:
    """A port of this machine that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def options(
    name: str,
    doc: str | None,
    arguments: Sequence[str] | None,
    add: Callable[[argparse.ArgumentParser], None] | None = None,
) -> argparse.Namespace:
    """The options that all benches here have; `add` adds a bench's own."""
    parser = argparse.ArgumentParser(
        prog=f"python -m bench.service.{name}",
        description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="a look at whether it runs")
    parser.add_argument("--out", type=Path, help="keep the figures in this file (JSON)")
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(tempfile.gettempdir()) / "queryard-bench",
        help="folder for data that is made once (default: %(default)s)",
    )
    if add is not None:
        add(parser)
    return parser.parse_args(arguments)


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], out: Path | None
) -> None:
    """Print figures as a table, and keep them."""
    from rich.console import Console
    from rich.table import Table

    shown = Table(title=title)
    for place, column in enumerate(columns):
        shown.add_column(column, justify="right" if place else "left")
    for row in rows:
        shown.add_row(*(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row))
    console = Console()
    (console if console.is_terminal else Console(width=112)).print(shown)
    if out is not None:
        kept = [dict(zip(columns, row, strict=True)) for row in rows]
        out.write_text(json.dumps({"title": title, "rows": kept}, indent=1) + "\n", "utf-8")
