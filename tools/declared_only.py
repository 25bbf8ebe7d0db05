"""The package with its declared dependencies and nothing else, at work. `make test-declared`.

A wheel is built and installed into an environment of its own in a temporary folder. There a native
and a staged query, `history`, `compare` and `load` must run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

# A command that hangs is a failure, too.
PATIENCE_S = 180.0
MAKE_ITEMS = "SELECT i % 100000 AS part, part % 7 AS customer FROM range(1000000) t(i)"
QUESTION = """
    SELECT c.city, count(*) AS parts, sum(n) AS items
    FROM (SELECT part, min(customer) AS customer, count(*) AS n FROM items GROUP BY part) p
    JOIN customers c USING (customer)
    GROUP BY c.city ORDER BY c.city
"""
LOAD = """
queries = 8
slots = 2

[data]
place = "data"
sql = "queries"

[arrivals]
kind = "poisson"
rate = 20
"""


class Trial:
    """The commands of an installed package, in a folder of their own."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root = root
        self._folder = folder
        self._bin = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        # Nothing of the environment this runs in: no source tree, no settings, no history.
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "QUERYARD"))}
        self._environment = {**kept, "XDG_CACHE_HOME": str(folder / "cache")}

    def install(self) -> None:
        venv.create(self._folder / "venv", with_pip=True, symlinks=os.name != "nt")
        quiet = ["--quiet", "--disable-pip-version-check"]
        wheels = self._folder / "wheels"
        self._run("python", "-m", "pip", "wheel", *quiet, "--no-deps", "-w", wheels, self._root)
        made = next(wheels.glob("*.whl"))
        check_page(made, self._root)
        self._run("python", "-m", "pip", "install", *quiet, made)

    def queryard(self, *words: str) -> str:
        """What a command prints; its failure is the failure of all."""
        print("queryard", *(" ".join(word.split()) for word in words), flush=True)
        return self._run("queryard", *words, timeout_s=PATIENCE_S)

    def _run(self, program: str, *words: str | Path, timeout_s: float | None = None) -> str:
        found = subprocess.run(
            [self._bin / program, *words],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            timeout=timeout_s,
            check=True,
        )
        return found.stdout


def check_page(wheel: Path, root: Path) -> None:
    """The files of the page, which are no Python, are in the wheel."""
    source = root / "src"
    files = (source / "queryard" / "service" / "page" / "static").rglob("*.*")
    wanted = {file.relative_to(source).as_posix() for file in files}
    with zipfile.ZipFile(wheel) as held:
        missing = wanted - set(held.namelist())
    assert wanted, "the page has no files"
    assert not missing, f"the wheel lacks {sorted(missing)}"


def main(root: Path) -> None:
    """Install, and try everything once."""
    with tempfile.TemporaryDirectory(prefix="queryard-declared-") as name:
        folder = Path(name)
        trial = Trial(root, folder)
        trial.install()
        _write_files(folder)
        trial.queryard("sql", MAKE_ITEMS, "-o", "data/items.parquet")
        how = ("--data", "data", "--format", "csv", "--plan")
        native = trial.queryard("sql", QUESTION, *how, "native")
        staged = trial.queryard("sql", QUESTION, *how, "staged")
        assert native == staged, f"{native!r} != {staged!r}"
        assert native.splitlines()[1] == "Aarhus,14286,142860", native
        past = json.loads(trial.queryard("history", "--data", "data", "--json"))
        assert "items" in json.dumps(past), past
        trial.queryard("compare", "--demo", "--policy", "fifo,tls")
        trial.queryard("load", "load.toml", "--compare", "marshal,duckdb", "--quiet")


def _write_files(folder: Path) -> None:
    (folder / "data").mkdir()
    cities = ("Aarhus", "Bergen", "Cádiz", "Delft", "Evora", "Freiburg", "Gdańsk")
    rows = "".join(f"{number},{city}\n" for number, city in enumerate(cities))
    (folder / "data" / "customers.csv").write_text("customer,city\n" + rows, "utf-8")
    (folder / "queries").mkdir()
    (folder / "queries" / "parts.sql").write_text(QUESTION, "utf-8")
    (folder / "queries" / "count.sql").write_text("SELECT count(*) FROM items", "utf-8")
    (folder / "load.toml").write_text(LOAD, "utf-8")


if __name__ == "__main__":
    try:
        main(Path(__file__).parent.parent)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        sys.exit(f"with its declared dependencies only, this fails: {error}")
