"""The options that the online benches share, and TPC-H at the scale they ask for."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from queryard.workload import tpch

from ..live.setting import schema

QUICK_SCALE = 0.5


def options(doc: str | None, quick: str) -> argparse.ArgumentParser:
    """A parser to which a bench adds its own; `quick` says what the quick form leaves out."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=5.0)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help=f"SF {QUICK_SCALE:g}, {quick}")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "queryard-bench")
    return parser


def tables(given: argparse.Namespace) -> Path:
    """The folder of TPC-H's tables, made if it is not there."""
    scale = QUICK_SCALE if given.quick else given.scale
    folder: Path = given.data / schema(scale)
    tpch.generate(folder, scale)
    return folder
