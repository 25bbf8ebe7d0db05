"""Three groups of jobs over smaller and larger blocks (S³ figures 4d and 4e)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from research.judging import SLIGHTLY, whether
from research.outcome import Experiment, Finding, Outcome, RunOptions, interval

from .chosen import CHOSEN
from .cluster import JOBS, MAP_MORE, NORMAL, TASK_START_S, WAVE_S, Load, setting, sized
from .compared import (
    FEWER_SEEDS,
    MRSHARE,
    Claim,
    Runs,
    both_rows,
    compare,
    dependence,
    judged,
    multiples_chart,
    results,
    values,
)
from .depends import first_of
from .rivals import LIGHT, WHOLE

SIZES_MB = (32, 64, 128)
TASK_STARTS_S = (TASK_START_S / 2, TASK_START_S * 1.5)
_FREE = "batches do not wait for each other, see s3-sparse"
_DEAR = {WHOLE: "26 starts of 20 s"}
_SO = {WHOLE: _FREE, LIGHT: _FREE}
CLAIMS = {
    32: (
        Claim("shortest TET of MRShare", "1.35", MRSHARE, "TET", why=_SO),
        Claim("longest TET of MRShare", "1.72", MRSHARE, "TET", max, why=_SO),
        Claim("shortest ART of MRShare", "2", MRSHARE, "ART", why=_SO),
        Claim("longest ART of MRShare", "3.86", MRSHARE, "ART", max, why=_DEAR),
    ),
    128: (
        Claim("FIFO, TET", "slightly above 1", ("FIFO",), "TET", words=SLIGHTLY),
        Claim("FIFO, ART", "above 1", ("FIFO",), "ART"),
        Claim("shortest TET of MRShare", "above 1", MRSHARE, "TET", why=_SO),
        Claim("shortest ART of MRShare", "above 1", MRSHARE, "ART", why=_SO),
    ),
}


def load_of(block_mb: int, task_start_s: float = TASK_START_S) -> Load:
    """Jobs over blocks of this size; a wave of 64 MB and its riders cost what was printed."""
    map_s = WAVE_S - task_start_s
    return replace(
        NORMAL,
        block_mb=block_mb,
        task_start_s=task_start_s,
        map_s=map_s,
        rider_cost=MAP_MORE * WAVE_S / (JOBS - 1) / map_s,
    )


def run_all(options: RunOptions) -> Outcome:
    found = {
        size: compare(options, f"{size} MB", partial(setting, sized(load_of(size), options.size)))
        for size in SIZES_MB
    }
    findings = [_fastest(found)]
    for size, claims in CLAIMS.items():
        findings += judged(claims, found[size], f"{size} MB: ")
    chart = multiples_chart(
        "s3-blocks", "Smaller and larger blocks", {f"{size} MB": found[size] for size in CLAIMS}
    )
    tables = [results(f"Blocks of {size} MB", runs) for size, runs in found.items()]
    tables.append(dependence("What a task costs to start", "", _by_start(options, found)))
    return Outcome(tuple(findings), tuple(tables), (chart,), NOTES)


def _fastest(found: Mapping[int, Runs]) -> Finding:
    """Whether the larger the blocks, the sooner all is done, for every scheduler."""
    tets = {
        name: [interval(values(found[size][name], "TET")).mean for size in SIZES_MB]
        for name in found[64]
    }
    ordered = all(small > middle > large for small, middle, large in tets.values())
    small, middle, large = tets[WHOLE]
    return Finding(
        "TET of S³ with 32, 64 and 128 MB",
        "falls for all schedulers",
        f"{small:,.0f}, {middle:,.0f}, {large:,.0f} s",
        whether(ordered),
    )


def _by_start(options: RunOptions, found: Mapping[int, Runs]) -> Iterator[tuple[str, ...]]:
    for size in CLAIMS:
        yield from both_rows(f"{size} MB, {TASK_START_S:g} s", first_of(found[size]))
        for start_s in TASK_STARTS_S:
            label = f"{size} MB, {start_s:g} s"
            build = partial(setting, sized(load_of(size, start_s), options.size))
            yield from both_rows(label, compare(options, label, build, FEWER_SEEDS))


NOTES = (
    "Smaller blocks make everything slower and larger ones faster, as printed, and S³ stays ahead "
    "of FIFO. Against MRShare the directions are those of s3-sparse, for the same reason: even "
    "with 32 MB a batch of three takes less than the gap of 465 s (390 s), so that nothing waits, "
    "while S³ pays for 26 sub-jobs",
    "With 128 MB S³ is said to be only slightly ahead of FIFO. Here it is well ahead, as three "
    "jobs one after another still take longer than the gap; where tasks start dearer, and jobs "
    "over large blocks are shorter, it is less",
)

EXPERIMENT = Experiment(
    "s3-blocks",
    "Shared scans over smaller and larger blocks",
    "S³ §V.F, figures 4(d) and 4(e)",
    run_all,
    {
        **CHOSEN,
        "segment": "5 blocks per slot whatever their size: 26, 13 and 7 sub-jobs",
        "a job alone": ", ".join(f"{size} MB {load_of(size).alone_s:.0f} s" for size in SIZES_MB),
    },
)
