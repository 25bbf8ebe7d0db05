"""TLS's comparisons on TPC-H stages with measured tasks, as a second truth.

The stages are those of Spark, published with Decima: every task has the time it took, stages read
no tables here, and nothing stays in memory. What is left of TLS is its order of queries and depth
first within them. Of LoDFA alone that leaves the order of the stages, so that what was printed of
it, data in memory included, is not set beside it. Data sets have 2, 10, 50 or 100 GB: there is no
200 GB, and no fifth size for five times Q21.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from queryard.metrics import Summary
from queryard.workload import Workload
from queryard.workload.cluster import numbered, parse_nodes
from queryard.workload.generate import submit_poisson
from queryard.workload.mix import PRESETS
from queryard.workload.model import Arrival
from queryard.workload.traces import read_trace
from research.judging import beside
from research.numbers import as_percent
from research.outcome import (
    Experiment,
    Finding,
    Outcome,
    RunOptions,
    Table,
    of_seeds,
    without_traces,
)
from research.trials import Setting, change, parts, pick, run_one

from .chain_tree import group_slowdowns, ratio_findings
from .chain_tree import slowdown_table as shape_table
from .five_q21 import ends_of, ends_table, findings_of
from .lodfa import QUERIES as ALONE
from .lodfa import alone_table, responses_in
from .mixes import BINS, SINGLE, USUAL_TRAFFIC, WORKLOADS
from .plans import CHAINS, TREES
from .response import PRINTED, mean_s, response_chart, response_table
from .slowdown import slowdown_table
from .yard import SCHEDULERS, USUAL

# As many slots as there were executors when the tasks were measured.
NODES = parse_nodes("5x10")
SLOTS = sum(node.slots for node in NODES)
# Bin of table 4 -> the measured sizes nearest to it, in GB.
SIZES_GB: Mapping[str, tuple[int, ...]] = {
    "1": (2, 10),
    "2": (10,),
    "3": (50,),
    "4": (100,),
    "5": (100,),
}
BIN_TITLES = tuple(f"bin {b} ({' or '.join(map(str, SIZES_GB[b]))} GB)" for b in BINS)
LARGEST_GB = 100
GROUPS: Mapping[str, tuple[str, ...]] = {
    group: tuple(f"q{int(name[1:]):02}" for name in names)
    for group, names in (("chain", CHAINS), ("tree", TREES))
}
MOST_SEEDS = 3
# Their many short tasks take long to simulate: of the published number of queries, half.
PART = 0.5

Measured = Mapping[int, Mapping[str, Arrival]]
"""Size in GB -> class -> one of the 22 queries."""


def read_measured(folder: Path) -> Measured:
    """The stages of all sizes; empty if some are missing."""
    sizes_gb = sorted({gb for of_bin in SIZES_GB.values() for gb in of_bin})
    files = {gb: folder / "decima-tpch" / f"tpch-{gb}g.json.gz" for gb in sizes_gb}
    if not all(file.exists() for file in files.values()):
        return {}
    return {
        gb: {arrival.query.class_name: arrival for arrival in read_trace(file).workload.arrivals}
        for gb, file in files.items()
    }


# --- what is built -------------------------------------------------------------------------


def mix_setting(name: str, measured: Measured, seed: int, size: float) -> Setting:
    """A mix of table 4 by the nearest measured sizes, at the load of the other experiments.

    QMix is Facebook's of the same seed, with single stages in the place of some queries.
    """
    bins = PRESETS[name.lower()].bins
    dealt = [b.name for b in bins for _ in range(parts(round(b.share), size))]
    rng = Random(f"{seed}/measured")
    rng.shuffle(dealt)
    arrivals = [
        _renamed(
            rng.choice(list(measured[rng.choice(SIZES_GB[size_bin])].values())), query_id, size_bin
        )
        for query_id, size_bin in zip(numbered("q", len(dealt)), dealt, strict=True)
    ]
    if name == "QMix":
        for place in Random(f"{seed}/single").sample(range(len(dealt)), parts(SINGLE, size)):
            arrivals[place] = single_stage(arrivals[place])
    timed = submit_poisson(arrivals, USUAL_TRAFFIC.load * SLOTS, Random(f"{seed}/arrivals"))
    return _setting(name, timed)


def crowd_setting(measured: Measured, seed: int) -> Setting:
    """The chains and trees at 100 GB, all at once in an order that is drawn."""
    wanted = [name for names in GROUPS.values() for name in names]
    chosen = [a for name, a in measured[LARGEST_GB].items() if name in wanted]
    Random(f"{seed}/crowd").shuffle(chosen)
    return _setting("crowd", chosen)


def q21_setting(measured: Measured, seed: int) -> Setting:
    """Q21 of every size at once, in an order that is drawn."""
    chosen = [_renamed(of_size["q21"], f"{gb}") for gb, of_size in measured.items()]
    Random(f"{seed}/order").shuffle(chosen)
    return _setting("four", chosen)


def alone_setting(measured: Measured, query: str) -> Setting:
    """One query on the idle cluster."""
    return _setting(query, [measured[LARGEST_GB][f"q{int(query[1:]):02}"]])


def single_stage(arrival: Arrival) -> Arrival:
    """A query of nothing but that stage of another with the most work that waits for no other."""
    query = arrival.query
    first = [job for job in query.jobs if not job.upstream]
    job = max(first, key=lambda job: (arrival.truth[job.name].total_work_s(job), job.name))
    truth = {job.name: arrival.truth[job.name]}
    return replace(arrival, query=replace(query, jobs=(job,)), truth=truth)


def _renamed(arrival: Arrival, query_id: str, size_bin: str = "") -> Arrival:
    return replace(arrival, query=replace(arrival.query, id=query_id), size_bin=size_bin)


def _setting(name: str, arrivals: Sequence[Arrival]) -> Setting:
    return Setting(Workload(name, tuple(arrivals)), NODES, estimates=USUAL.estimates)


# --- what comes out ------------------------------------------------------------------------


def run(options: RunOptions) -> Outcome:
    measured = read_measured(options.traces) if options.traces is not None else {}
    if not measured:
        return without_traces(options, "decima-tpch/")
    few = min(MOST_SEEDS, options.seeds)
    runs = {name: _mix_runs(options, name, measured, few) for name in WORKLOADS}
    options.tell("chains and trees")
    crowd = group_slowdowns(
        (crowd_setting(measured, seed) for seed in range(options.seeds)), GROUPS
    )
    options.tell("Q21 in four sizes, and queries alone")
    ends = ends_of(q21_setting(measured, seed) for seed in range(options.seeds))
    alone = responses_in(lambda query, seed: alone_setting(measured, query), ALONE, options.seeds)
    findings = (
        *(finding for name, of_name in runs.items() for finding in _findings(name, of_name)),
        *ratio_findings(crowd),
        *findings_of(ends, "Q21 in four sizes: ", "four"),
    )
    tables = (
        *_tables(runs, few),
        shape_table("Mean slowdown by shape", crowd),
        ends_table("Q21 in four sizes at once, response in seconds", ends, tuple(measured)),
        alone_table(f"Response in seconds, alone at {LARGEST_GB} GB, by order only", alone),
    )
    titles = [title.replace(" (", "\n(") for title in BIN_TITLES]
    chart = response_chart("tls-measured", "Mean response on measured stages", runs, titles)
    return Outcome(findings, tables, (chart,), NOTES)


def _findings(name: str, runs: Mapping[str, Sequence[Summary]]) -> list[Finding]:
    means = pick(runs, mean_s)
    found = []
    for other, printed in PRINTED[name].items():
        ours = change(means["TLS"], means[other])
        what = f"{name}: mean response, TLS against {other}"
        found.append(beside(what, printed, ours, as_percent))
    return found


def _tables(runs: Mapping[str, Mapping[str, Sequence[Summary]]], seeds: int) -> list[Table]:
    tables = (
        response_table(runs, BIN_TITLES),
        slowdown_table("Mean slowdown in each bin", runs, "mean", BIN_TITLES),
    )
    return [replace(table, title=f"{table.title} ({of_seeds(seeds)})") for table in tables]


def _mix_runs(
    options: RunOptions, name: str, measured: Measured, seeds: int
) -> dict[str, list[Summary]]:
    found: dict[str, list[Summary]] = {scheduler: [] for scheduler in SCHEDULERS}
    for seed in range(seeds):
        options.tell(f"{name}, seed {seed}")
        setting = mix_setting(name, measured, seed, PART * options.size)
        alone_s = setting.alone_s(seed)
        for scheduler, profile in SCHEDULERS.items():
            found[scheduler].append(run_one(setting, profile, seed, alone_s))
    return found


NOTES = (
    "Against HFS the printed sizes come out here. Most of the work is in stages with more tasks "
    "than there are slots: a query under HFS gets a part of what it could use, and takes longer",
    "TLS slows chains less than trees: of the eight, the two with the most work are trees (Q21 and "
    "Q17), and it serves less work first",
    "Small queries gain most. Of bin 5 there is one query a run: on Facebook and QMix it is no "
    "sooner done under TLS than under HCS",
    "Of Q21 in several sizes, response and the smallest are as printed in direction, and response "
    "nearly in size. Throughput is level with that of HFS, where tls-five-q21 has it behind: these "
    "stages fill the cluster nearly to the end",
    "LoDFA alone has but its order of stages here: it is level with HCS and up to 6 % ahead of "
    "HFS. What was printed of it rests on data in memory, and is not set beside this",
)

EXPERIMENT = Experiment(
    "tls-measured",
    "TLS on measured TPC-H stages: three mixes, chains and trees, Q21",
    "TLS §2.2 and §5.2 to §5.5, with the task times of Decima's TPC-H",
    run,
    {
        "cluster": "50 slots, as many as executors when the tasks were measured",
        "sizes": "the measured ones nearest to each bin: 2 or 10, 10, 50, 100, 100 GB",
        "arrival rate": "0.8 of what all slots can do",
        "queries": f"half of the published number, over at most {MOST_SEEDS} seeds",
        "Q21 in several sizes": "2, 10, 50 and 100 GB, the measured ones, for 10 to 200 GB",
        "single jobs of QMix": "a query's stage with the most work that waits for none, alone",
    },
    needs_traces=True,
)
