"""How conclusions depend on what the paper does not print: gaps, and what sub-jobs are like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from research.outcome import RunOptions, Table

from .cluster import FOLD_COST, GAP_S, HEARTBEAT_S, JOB_START_S, Load, setting
from .compared import FEWER_SEEDS, Build, Runs, both_rows, compare, dependence, row, trials
from .rivals import WAVES, s3

STARTS_S = (0.0, 1.0, HEARTBEAT_S, 5.0, 10.0, JOB_START_S, 2 * JOB_START_S)
# When reduces run, and what share of what was folded early comes again at the end.
REDUCES_TRIED = (
    ("at the end only", "last", 0.0),
    ("after each sub-job, nothing comes again", "early", 0.0),
    ("after each sub-job, a tenth comes again", "early", FOLD_COST),
    ("after each sub-job, half comes again", "early", 0.5),
    ("after each sub-job, all comes again", "early", 1.0),
)
WAVES_TRIED = (1, 2, WAVES, 2 * WAVES, 64)


def first_of(runs: Runs) -> Runs:
    """The runs of the first seeds."""
    return {name: times[:FEWER_SEEDS] for name, times in runs.items()}


def by_gap(options: RunOptions, load: Load, gaps_s: Sequence[float], runs: Runs) -> Table:
    """Other gaps between groups beside the one of `runs`."""
    tried = {GAP_S: first_of(runs)}
    for gap_s in gaps_s:
        build = partial(setting, load, gap_s=gap_s)
        tried[gap_s] = compare(options, f"gap of {gap_s:.0f} s", build, FEWER_SEEDS)
    rows = [each for gap_s in sorted(tried) for each in both_rows(f"{gap_s:.0f} s", tried[gap_s])]
    return dependence("The gap between groups", "gap", rows)


def by_start(options: RunOptions, build: Build, runs: Runs) -> Table:
    """What a sub-job of S³ costs to start; the others stay as they are."""
    tried = {f"{start_s:.0f} s": s3(start_s) for start_s in STARTS_S}
    found = trials(options, "sub-job starts", build, tried, FEWER_SEEDS)
    rows = [row(label, first_of(runs), times) for label, times in found.items()]
    return dependence("The start of a sub-job", "start", rows)


def by_reduces(options: RunOptions, load: Load, gap_s: float, runs: Runs) -> Table:
    """Reduces at the end only, or after each sub-job, by how much of that comes again."""
    rows = []
    for label, reduces, fold_cost in REDUCES_TRIED:
        build = partial(setting, replace(load, fold_cost=fold_cost), gap_s=gap_s)
        tried = {
            f"{label}, sub-jobs start in {start_s:.0f} s": s3(start_s, reduces=reduces)
            for start_s in (JOB_START_S, HEARTBEAT_S)
        }
        found = trials(options, f"reduces {label}", build, tried, FEWER_SEEDS)
        rows += [row(name, first_of(runs), times) for name, times in found.items()]
    return dependence("The reduces of sub-jobs", "reduces", rows)


def by_waves(options: RunOptions, build: Build, runs: Runs) -> Table:
    """How many blocks a slot reads in a segment; with 64 the file is one segment."""
    tried = {
        f"{waves}, sub-jobs start in {start_s:.0f} s": s3(start_s, waves)
        for waves in WAVES_TRIED
        for start_s in (JOB_START_S, HEARTBEAT_S)
    }
    found = trials(options, "segments", build, tried, FEWER_SEEDS)
    rows = [row(label, first_of(runs), times) for label, times in found.items()]
    return dependence("The length of a segment", "blocks per slot", rows)
