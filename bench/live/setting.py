"""What all benches here have in common: their options, their data, and the order of runs."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from queryard.engine.instances.budget import memory_budget, slot_range
from queryard.load import (
    PLAIN,
    Ground,
    LoadSpec,
    Measured,
    Played,
    load_alone,
    measure_alone,
    save_alone,
)
from queryard.load import examples as examples_of
from queryard.workload import tpch

OURS = "marshal"
"""The default profile of a session."""
SEEDS = 5

T = TypeVar("T")


@dataclass(frozen=True)
class Setting:
    """How a bench was asked for. `quick` is a look at whether it runs: one seed, little data."""

    seeds: int
    data: Path
    out: Path | None
    alone: Path | None
    quick: bool
    slots: int
    memory_bytes: int
    given: argparse.Namespace

    def scale(self, usual: float) -> float:
        """The scale of the data: as usual, or little of it."""
        return usual / 10 if self.quick else usual

    def ground(self, *scales: float) -> Ground:
        """TPC-H at these scales, each in a schema called like its folder; read into the caches."""
        tables = {}
        for scale in scales:
            name = schema(scale)
            for file in tpch.generate(self.data / name, scale):
                tables[f"{name}.{file.stem}"] = str(file.absolute())
                read_once(file)
        return Ground(None, tables, self.slots, self.memory_bytes)

    def measure(self, ground: Ground, specs: Sequence[LoadSpec]) -> Measured:
        """What every template takes alone; kept in the file `alone`, if there is one."""
        known = load_alone(self.alone) if self.alone and self.alone.exists() else None
        texts: dict[str, Sequence[str]] = {}
        for spec in specs:
            texts |= examples_of(spec)
        told = 0.0

        def progress(share: float, what: str) -> None:
            nonlocal told
            if share >= told:
                told = share + 0.1
                print(f"  measured {share:4.0%} of {len(texts)} templates", flush=True)

        found = measure_alone(ground, texts, known=known, progress=progress)
        if found.failed:
            raise SystemExit(f"error: queries that fail alone: {found.failed}")
        if self.alone:
            save_alone(found, self.alone)
        return found


def setting(
    name: str,
    doc: str | None,
    arguments: Sequence[str] | None,
    add: Callable[[argparse.ArgumentParser], None] | None = None,
    seeds: int = SEEDS,
) -> Setting:
    """Read the options of a bench; `add` adds its own."""
    parser = argparse.ArgumentParser(
        prog=f"python -m bench.live.{name}",
        description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, default=None, help=f"default: {seeds}")
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(tempfile.gettempdir()) / "queryard-bench",
        help="folder in which sf5 and the like are found, or made (default: %(default)s)",
    )
    parser.add_argument("--out", type=Path, help="keep the figures in this file (JSON)")
    parser.add_argument("--alone", type=Path, help="keep times alone in this file, and use them")
    parser.add_argument("--slots", type=int, help="default: all cores")
    parser.add_argument("--memory", help="the budget, such as 8GB (default: 70 %% of the machine)")
    parser.add_argument("--quick", action="store_true", help="one seed, a tenth of the data")
    if add is not None:
        add(parser)
    given = parser.parse_args(arguments)
    chosen = given.seeds if given.seeds is not None else 1 if given.quick else seeds
    return Setting(
        seeds=chosen,
        data=given.data,
        out=given.out,
        alone=given.alone,
        quick=given.quick,
        slots=slot_range(given.slots)[1],
        memory_bytes=memory_budget(given.memory),
        given=given,
    )


def schema(scale: float) -> str:
    """The folder and the schema of a scale.

    >>> schema(5), schema(0.1)
    ('sf5', 'sf01')
    """
    return f"sf{scale:g}".replace(".", "")


def in_turn(seed: int, runs: Mapping[str, Callable[[], T]]) -> dict[str, T]:
    """Run all; the first with one seed is the last with the next."""
    names = list(runs)
    first = seed % len(names)
    done = {name: runs[name]() for name in names[first:] + names[:first]}
    return {name: done[name] for name in names}


def checked(found: Mapping[str, Played]) -> None:
    """Every query must have been answered, with the same number of rows by each system."""
    rows: dict[str, tuple[str, int]] = {}
    for name, played in found.items():
        if played.interrupted:
            raise SystemExit("interrupted")
        wrong = [outcome for outcome in played.outcomes if outcome.state != "finished"]
        if wrong:
            raise SystemExit(
                f"error: under {name}, {len(wrong)} of {len(played.outcomes)} queries gave no "
                f"answer; {wrong[0].request.template} {wrong[0].state}: {wrong[0].error}"
            )
        for outcome in played.outcomes:
            other, count = rows.setdefault(outcome.request.id, (name, outcome.rows))
            if count != outcome.rows:
                raise SystemExit(
                    f"error: {outcome.request.template} had {outcome.rows} rows under {name}, "
                    f"{count} under {other}"
                )


def read_once(file: Path) -> None:
    """Read the file into the page cache, so that no system is the first to wait for the disk."""
    with file.open("rb") as opened:
        while opened.read(1 << 24):
            pass


__all__ = [
    "OURS",
    "PLAIN",
    "SEEDS",
    "Setting",
    "checked",
    "in_turn",
    "read_once",
    "schema",
    "setting",
]
