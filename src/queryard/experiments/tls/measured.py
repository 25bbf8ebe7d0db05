"""TLS's comparisons on TPC-H stages whose tasks were measured, as a second truth.

The stages are those of Spark, published with Decima: every task has the time it took, stages read
no tables here, and nothing stays in memory. What is left of TLS is its order of queries and depth
first within them.
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

from ..bars import bar_keys, bar_panel
from ..judging import remark, same_side
from ..outcome import (
    Chart,
    Experiment,
    Finding,
    Outcome,
    Table,
    Wish,
    interval,
    of_seeds,
    without_traces,
)
from ..trials import Setting, as_percent, change, parts, pick, run_one
from .chain_tree import group_slowdowns, ratio_findings, slowdown_table
from .mixes import USUAL_TRAFFIC
from .plans import CHAINS, TREES
from .response import PRINTED, mean_s
from .yard import SCHEDULERS, USUAL

# As many slots as there were executors when the tasks were measured.
NODES = parse_nodes("5x10")
SLOTS = sum(node.slots for node in NODES)
WORKLOADS = ("Bing", "Facebook")
# Bin of table 4 -> the measured sizes nearest to it.
SIZES: Mapping[str, tuple[str, ...]] = {
    "1": ("2g", "10g"),
    "2": ("10g",),
    "3": ("50g",),
    "4": ("100g",),
    "5": ("100g",),
}
GROUPS: Mapping[str, tuple[str, ...]] = {
    group: tuple(f"q{int(name[1:]):02}" for name in names)
    for group, names in (("chain", CHAINS), ("tree", TREES))
}
MOST_SEEDS = 3
# Their many short tasks take long to simulate: of the published number of queries, half.
PART = 0.5

Measured = Mapping[str, Sequence[Arrival]]
"""Size -> the 22 queries."""


def read_measured(folder: Path) -> Measured:
    """The stages of all sizes that are there; empty if some are missing."""
    files = {size: folder / "decima-tpch" / f"tpch-{size}.json.gz" for size in ("2g", "10g", "50g")}
    files["100g"] = folder / "decima-tpch" / "tpch-100g.json.gz"
    if not all(file.exists() for file in files.values()):
        return {}
    return {size: read_trace(file).workload.arrivals for size, file in files.items()}


def mix_setting(name: str, measured: Measured, seed: int, size: float) -> Setting:
    """A mix of table 4 by the nearest measured sizes, at the load of the other experiments."""
    bins = PRESETS[name.lower()].bins
    dealt = [b.name for b in bins for _ in range(parts(round(b.share), size))]
    rng = Random(f"{seed}/measured")
    rng.shuffle(dealt)
    arrivals = [
        _renamed(rng.choice(measured[rng.choice(SIZES[size_bin])]), query_id, size_bin)
        for query_id, size_bin in zip(numbered("q", len(dealt)), dealt, strict=True)
    ]
    timed = submit_poisson(arrivals, USUAL_TRAFFIC.load * SLOTS, Random(f"{seed}/arrivals"))
    return Setting(Workload(name, timed), NODES, estimates=USUAL.estimates)


def crowd_setting(measured: Measured, seed: int) -> Setting:
    """The chains and trees at 100 GB, all at once in an order that is drawn."""
    wanted = [name for names in GROUPS.values() for name in names]
    chosen = [arrival for arrival in measured["100g"] if arrival.query.class_name in wanted]
    Random(f"{seed}/crowd").shuffle(chosen)
    return Setting(Workload("crowd", tuple(chosen)), NODES, estimates=USUAL.estimates)


def _renamed(arrival: Arrival, query_id: str, size_bin: str) -> Arrival:
    return replace(arrival, query=replace(arrival.query, id=query_id), size_bin=size_bin)


def run(wish: Wish) -> Outcome:
    measured = read_measured(wish.traces) if wish.traces is not None else {}
    if not measured:
        return without_traces(wish, "decima-tpch/")
    few = min(MOST_SEEDS, wish.seeds)
    runs = {name: _mix_runs(wish, name, measured, few) for name in WORKLOADS}
    findings = []
    for name, of_name in runs.items():
        means = pick(of_name, mean_s)
        for other, printed in PRINTED[name].items():
            ours = change(means["TLS"], means[other])
            what = f"{name}: mean response, TLS against {other}"
            paper, agrees = as_percent(printed), same_side(printed, ours)
            note = remark(printed, ours)
            findings.append(Finding(what, paper, ours.text(as_percent), agrees, note))
    wish.tell("chains and trees")
    crowd = group_slowdowns((crowd_setting(measured, seed) for seed in range(wish.seeds)), GROUPS)
    findings += ratio_findings(crowd)
    rows = tuple(
        (name, *(interval(values).text() for values in pick(of_name, mean_s).values()))
        for name, of_name in runs.items()
    )
    tables = (
        Table(f"Mean response in seconds ({of_seeds(few)})", ("", *SCHEDULERS), rows),
        slowdown_table("Mean slowdown by shape", crowd),
    )
    values = {
        who: [interval(pick(runs[name], mean_s)[who]) for name in WORKLOADS] for who in SCHEDULERS
    }
    panel = bar_panel("Measured stages", "mean response (s)", WORKLOADS, values)
    title = "Mean response on measured stages"
    chart = Chart("tls-measured", title, (panel,), bar_keys(tuple(SCHEDULERS)))
    return Outcome(tuple(findings), tables, (chart,), NOTES)


def _mix_runs(wish: Wish, name: str, measured: Measured, seeds: int) -> dict[str, list[Summary]]:
    found: dict[str, list[Summary]] = {who: [] for who in SCHEDULERS}
    for seed in range(seeds):
        wish.tell(f"{name}, seed {seed}")
        setting = mix_setting(name, measured, seed, PART * wish.size)
        for who, profile in SCHEDULERS.items():
            found[who].append(run_one(setting, profile, seed))
    return found


NOTES = (
    "Against HFS the printed sizes come out here. Most of the work is in stages with more tasks "
    "than there are slots: a query under HFS gets a part of what it could use, and takes longer",
    "TLS slows chains less than trees: of the eight, the two with the most work are trees (Q21 and "
    "Q17), and it serves less work first",
)

EXPERIMENT = Experiment(
    "tls-measured",
    "TLS on measured TPC-H stages: response, chains and trees",
    "TLS §5.4 and §2.2, with the task times of Decima's TPC-H",
    run,
    {
        "cluster": "50 slots, as many as executors when the tasks were measured",
        "sizes": "the measured ones nearest to each bin: 2 or 10, 10, 50, 100, 100 GB",
        "arrival rate": "0.8 of what all slots can do",
        "queries": f"half of the published number, over at most {MOST_SEEDS} seeds",
    },
    needs_traces=True,
)
