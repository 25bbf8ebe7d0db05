"""All live benches, each in a process of its own: `python -m bench.live [--only at_once,flood]`.

Every one prints its table. `--out` keeps all figures in one file. All other options are passed on.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# The short ones first.
BENCHES = ("waiting", "dashboards", "at_once", "flood", "tail", "deadlines", "spark", "long_tail")
RESULTS = Path(tempfile.gettempdir()) / "queryard-bench-live.json"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.live", description=__doc__)
    parser.add_argument("--only", default=",".join(BENCHES), help="default: %(default)s")
    parser.add_argument("--out", type=Path, default=RESULTS, help="default: %(default)s")
    given, passed_on = parser.parse_known_args()
    names = given.only.split(",")
    for name in names:
        if name not in BENCHES:
            parser.error(f"unknown bench {name!r} (valid: {', '.join(BENCHES)})")
    results, failed = {}, []
    with tempfile.TemporaryDirectory(prefix="queryard-bench-") as temporary:
        alone = Path(temporary) / "alone.json"
        for name in names:
            out = Path(temporary) / f"{name}.json"
            command = [sys.executable, "-m", f"bench.live.{name}", *passed_on]
            print(f"== {name}", flush=True)
            began = time.monotonic()
            done = subprocess.run([*command, f"--out={out}", f"--alone={alone}"], check=False)
            print(f"== {name} took {(time.monotonic() - began) / 60:.1f} min", flush=True)
            if done.returncode:
                failed.append(name)
            elif out.exists():
                results[name] = json.loads(out.read_text(encoding="utf-8"))
    given.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(f"kept in {given.out}")
    if failed:
        raise SystemExit(f"error: {', '.join(failed)} did not end well")


main()
