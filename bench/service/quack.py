"""Quack beside DuckDB's own server, both asked by the real client of DuckDB 1.5.5.

A million rows of BIGINT, DOUBLE, DATE and VARCHAR from a Parquet file, and `SELECT n` per request,
by an attached server (one request) and by `quack_query` (which connects and disconnects: three);
the client keeps its TCP connections. Servers take turns; medians. Targets: 0.6 of the speed of
DuckDB's own server, and 3 ms for a trivial query by an attached server.

python -m bench.service.quack [--times 7]: a minute.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.quack_environment import Unavailable, environment

from .rows import COLUMNS, make
from .setting import free_port, options, server, table

COUNT = 1_000_000
LEAST, MOST_MS = 0.6, 3.0
SCRIPT = str(Path(__file__).with_name("quack_peer.py"))
TOKEN = "bench-token"


def bench(given: argparse.Namespace) -> None:
    try:
        python = environment()
    except Unavailable as reason:
        raise SystemExit(f"error: {reason}") from None
    count = 50_000 if given.quick else COUNT
    file = given.data / f"rows-double-{count}.parquet"
    make(file, count)
    tables = {"rows": str(file)}
    with tempfile.TemporaryDirectory(prefix="queryard-bench-quack-") as folder:
        place = Path(folder)
        (place / "tables.json").write_text(json.dumps(tables), encoding="utf-8")
        port = str(free_port())
        command = [str(python), SCRIPT, "serve", port, TOKEN, str(place / "tables.json")]
        pipe = subprocess.PIPE
        with server(tables) as ours, subprocess.Popen(command, stdin=pipe, stdout=pipe) as real:
            assert real.stdout is not None
            if real.stdout.readline().strip() != b"ready":
                raise SystemExit("error: DuckDB's own server did not start")
            wanted = {
                "servers": {
                    "queryard": [ours.http.replace("http://", "quack:"), ours.secrets["bench"]],
                    "real": [f"quack:127.0.0.1:{port}", TOKEN],
                },
                "large": f"SELECT {COLUMNS} FROM rows",
                "times": 1 if given.quick else given.times,
                "trivial": 20 if given.quick else 300,
            }
            (place / "wanted.json").write_text(json.dumps(wanted), encoding="utf-8")
            files = [str(place / "wanted.json"), str(place / "seconds.json")]
            subprocess.run([str(python), SCRIPT, "measure", *files], check=True)
            real.terminate()
        found = json.loads((place / "seconds.json").read_text(encoding="utf-8"))
    own, peer = (
        {what: statistics.median(each) for what, each in found[name].items()}
        for name in ("queryard", "real")
    )
    rows = [
        ("rows, M/s", *(count / one["rows"] / 1e6 for one in (own, peer)), f"{LEAST} of it"),
        ("attached, ms", own["attached"] * 1e3, peer["attached"] * 1e3, f"{MOST_MS:g} ms"),
        ("quack_query, ms", own["alone"] * 1e3, peer["alone"] * 1e3, ""),
    ]
    share = peer["rows"] / own["rows"]
    title = f"{count:,} rows × 4 columns at {share:.2f} of the real speed; trivial queries"
    table(title, ("what", "Queryard", "DuckDB's own server", "target"), rows, given.out)


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--times", type=int, default=7, help="default: %(default)s")


def main(arguments: Sequence[str] | None = None) -> None:
    bench(options("quack", __doc__, arguments, _more))


if __name__ == "__main__":
    main()
