"""Recorded work, each on a cluster that it fills to a given part.

Facebook's days are replayed as they were recorded. The queries of Spark logs and of Decima's TPC-H
stages are a stock from which a Poisson stream is drawn: the logs are of tests and benchmarks that
ask one query after another, and the arrivals of Decima's were not recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from queryard.workload import Workload
from queryard.workload.alone import capacity_slots
from queryard.workload.cluster import numbered, parse_nodes
from queryard.workload.generate import submit_poisson
from queryard.workload.model import Arrival
from queryard.workload.traces import ReadOptions, Use, read_trace, use_trace
from queryard.workload.traces.text import head
from queryard.workload.traces.use import with_deadlines
from research.outcome import RunOptions
from research.trials import Setting, parts

LOADS = (0.7, 0.95)
# POSUM §5.2.3: the share of queries with a deadline.
DEADLINES = 0.3
# No policy knows a task's time before it has run; all learn from those that have ended.
ESTIMATES = "regression"
# How many queries a stream has, and of all seeds how many: Decima's have 1,250 tasks each in the
# mean, and take 25 times as long to simulate.
STREAMS = {"Spark": (100, 1.0), "Decima": (40, 0.6)}
STREAM_NODES = parse_nodes("5x10")
# What deciding may take of a core: 0.5 % of the cluster; for days, what one can wait for.
STREAM_SHARE, DAY_SHARE = 0.25, 0.004
# The policy to begin with if no better one is known.
OTHER_FIRST = "fair"
# Of the work of a workload's queries: up to the median, to the ninth decile, above.
BINS = (("small", 0.5), ("medium", 0.9), ("large", 1.0))
FACEBOOK_2009 = "swim-facebook/FB-2009_samples_24_times_1hr_0.tsv"
FACEBOOK_2010 = "swim-facebook/FB-2010_samples_24_times_1hr_withInputPaths_0.first12h.tsv.gz"
MIB = 2.0**20


@dataclass(frozen=True, slots=True)
class Case:
    """A recorded workload at a load, drawn by a seed; its portfolios may take `share` of a core.

    `is_alike` says that all tasks of a job take the same time; `other_first` is with what another
    portfolio begins, to see how much the first candidate matters.
    """

    name: str
    load: float
    setting: Setting
    seed: int
    share: float = STREAM_SHARE
    is_alike: bool = False
    other_first: str | None = None

    @property
    def title(self) -> str:
        return f"{self.name}, {self.load:.0%}"


def streams(options: RunOptions) -> Iterator[Case]:
    """Spark's and Decima's queries, at both loads, for every seed."""
    assert options.traces is not None
    for name, stock in (("Spark", spark_stock(options.traces)), ("Decima", decima(options.traces))):
        if not stock:
            continue
        for load in LOADS:
            for seed in range(parts(options.seeds, STREAMS[name][1])):
                setting = stream(name, stock, load, seed, options.size)
                yield Case(name, load, setting, seed, other_first=OTHER_FIRST)


def stream(name: str, stock: Sequence[Arrival], load: float, seed: int, size: float) -> Setting:
    """Queries drawn from a stock, as a Poisson stream that fills a cluster to a part."""
    rng = Random(f"{seed}/{name}")
    drawn = [
        replace(arrival, query=replace(arrival.query, id=query_id, submit_s=0.0))
        for query_id in numbered("q", parts(STREAMS[name][0], size))
        for arrival in (rng.choice(stock),)
    ]
    slots = capacity_slots(STREAM_NODES)
    due = with_deadlines(drawn, DEADLINES, slots, seed)
    timed = submit_poisson(due, load * slots, Random(f"{seed}/{name}/arrivals"))
    return Setting(Workload(name, binned(timed)), STREAM_NODES, estimates=ESTIMATES)


def spark_stock(folder: Path) -> list[Arrival]:
    """Every query of every log that has measured tasks; a log that cannot be read is an error.

    Logs without any job are part of a collection for tests, and give none.
    """
    stock = []
    for place in sorted((folder / "spark-eventlogs").glob("*/*")):
        if place.name.startswith(".") or _is_empty(place):
            continue
        stock += [
            replace(arrival, query=replace(arrival.query, deadline_s=None, tenant="default"))
            for arrival in read_trace(place).workload.arrivals
            if arrival.work_s > 0
        ]
    return stock


def _is_empty(place: Path) -> bool:
    return place.is_file() and not head(place).strip()


def decima(folder: Path) -> list[Arrival]:
    """The 22 queries of TPC-H at four sizes."""
    stock = []
    for file in sorted((folder / "decima-tpch").glob("tpch-*.json.gz")):
        size = file.name.removeprefix("tpch-").partition(".")[0]
        for arrival in read_trace(file).workload.arrivals:
            query = replace(arrival.query, class_name=f"{arrival.query.class_name}-{size}")
            stock.append(replace(arrival, query=query))
    return stock


def days(options: RunOptions) -> Iterator[Case]:
    """Facebook's day of 2009 (64 MiB blocks) and half a day of 2010 (256 MiB), for every seed.

    Jobs come as recorded; a seed draws which of them have a deadline, and how near.
    """
    assert options.traces is not None
    for name, place, block_bytes, hours, first_s in (
        ("FB-2009", FACEBOOK_2009, 64 * MIB, 24.0, 49.0),
        ("FB-2010", FACEBOOK_2010, 256 * MIB, 12.0, 1.0),
    ):
        file = options.traces / place
        if not file.exists():
            continue
        for load in LOADS:
            use = Use(
                ReadOptions(block_bytes=block_bytes),
                load=load,
                deadlines=DEADLINES,
                # Hours count from midnight, when the first job was yet to come.
                until_s=hours * 3600 * min(1.0, options.size) - first_s,
            )
            for seed in range(options.seeds):
                workload = use_trace(file, use, seed=seed).workload
                workload = replace(workload, arrivals=binned(workload.arrivals))
                setting = Setting(workload, workload.nodes, estimates=ESTIMATES)
                yield Case(name, load, setting, seed, DAY_SHARE, is_alike=True)


def binned(arrivals: Sequence[Arrival]) -> tuple[Arrival, ...]:
    """The queries with the bin of their size, by the work they are."""
    works = sorted(arrival.work_s for arrival in arrivals)
    edges = [
        (name, works[min(len(works) - 1, int(share * len(works)))] if share < 1 else float("inf"))
        for name, share in BINS
    ]
    return tuple(
        replace(arrival, size_bin=next(name for name, most in edges if arrival.work_s <= most))
        for arrival in arrivals
    )
