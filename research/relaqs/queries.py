"""The cluster and the queries of ReLAQS's evaluation (§6.1, §6.2).

Printed: 16 workers of 16 cores, TPC-H queries on data of up to 1 TB, 12 of them in about an hour,
Poisson arrivals with a mean gap of 120 s, batches of at least one second. A batch "can take a
minute or two"; how many there are is not printed. Under fair sharing an error falls by 70 % in
104 s and by 90 % in 245 s; with an error of 1/i (§4.4) these are 3.3 and 10 batches, so a batch
takes about 27 s there, and a query of a third of the hour has some 50 of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

from queryard.core.model import Divisible, Job, Query, TableInput
from queryard.sim import Conditions
from queryard.workload import Arrival, JobTruth, Workload, parse_nodes
from queryard.workload.cluster import numbered
from queryard.workload.error_curves import ERROR_CURVES, Points
from research.trials import Setting

GB = 1e9
CORES = 256
# A slot a core, as published; and four cores per slot, which takes a third of the time to run.
SINGLE_CORES, FOUR_CORES = "16x16", "16x4@4"
# MB of the tables at scale 1 (TPC-H §4.2.5): 956 in all.
LINEITEM, ORDERS, PARTSUPP, PART, CUSTOMER, SUPPLIER = 641, 149, 110, 30, 26, 2
ALL_MB = LINEITEM + ORDERS + PARTSUPP + PART + CUSTOMER + SUPPLIER
READ_MB = {
    1: LINEITEM,
    3: CUSTOMER + ORDERS + LINEITEM,
    5: CUSTOMER + ORDERS + LINEITEM + SUPPLIER,
    6: LINEITEM,
    11: PARTSUPP + SUPPLIER,
    16: PARTSUPP + PART + SUPPLIER,
    17: LINEITEM + PART,
    19: LINEITEM + PART,
}
# Both compare with an aggregate of their own data.
NESTED = frozenset({11, 17})
# Those of the workload; 17 is in its figure of prediction errors only, and comes once.
WORKLOAD = (1, 3, 5, 6, 11, 16, 19)
ROWS_PER_GB = 6e6 / 0.956
# Queries of which no error was measured are taken to be like this one.
NOT_MEASURED = "q14"


@dataclass(frozen=True, slots=True)
class Scene:
    """All that may be varied. Times are seconds, sizes GB.

    `hours` is what the work of all queries takes on all cores; `grown` the part of a nested
    query's work that grows from batch to batch. `errors` says how errors fall: by the law of the
    simulator, or as measured on a "shuffled" copy, on "blocks", or as one of `ERROR_CURVES`.
    """

    gap_s: float = 120.0
    queries: int = 12
    batches: int = 50
    overhead_s: float = 1.0
    least_gb: float = 100.0
    most_gb: float = 1000.0
    hours: float = 1.0
    grown: float = 0.5
    release_s: float = 0.5
    nodes: str = SINGLE_CORES
    equal: bool = False
    errors: str = ""


def core_s_per_gb(scene: Scene) -> float:
    """What a GB takes, so that the 12 published queries take as long as they did."""
    once = (*WORKLOAD, 17)
    usual = sum(READ_MB[number] for number in WORKLOAD) / len(WORKLOAD)
    read_mb = (sum(READ_MB[number] for number in once) + (12 - len(once)) * usual) / 12
    mean_gb = sum(sizes_gb(scene, 12)) / 12 * read_mb / ALL_MB
    return scene.hours * 3600 * CORES / (12 * mean_gb)


def sizes_gb(scene: Scene, count: int) -> list[float]:
    """Sizes of data sets, evenly spaced by their logarithm; a single one is in the middle."""
    span = math.log(scene.most_gb / scene.least_gb)
    places = [0.5] if count == 1 else [place / (count - 1) for place in range(count)]
    return [scene.least_gb * math.exp(place * span) for place in places]


def setting(scene: Scene, seed: int) -> Setting:
    """The queries of a seed. Other scenes have the same queries, and gaps in proportion."""
    rng = Random(f"{seed}/relaqs")
    numbers = [*WORKLOAD, 17, *rng.sample(WORKLOAD, 4)][: scene.queries]
    numbers += [rng.choice(WORKLOAD) for _ in range(scene.queries - len(numbers))]
    sizes = sizes_gb(scene, scene.queries)
    rng.shuffle(numbers)
    rng.shuffle(sizes)
    if scene.equal:
        numbers, sizes = [1] * len(numbers), [sizes_gb(scene, 1)[0]] * len(sizes)
    cost_s = core_s_per_gb(scene)
    submit_s = 0.0
    arrivals = []
    for name, number, size_gb in zip(numbered("q", len(sizes)), numbers, sizes, strict=True):
        read_gb = size_gb * READ_MB[number] / ALL_MB
        arrivals.append(_arrival(scene, name, number, read_gb, read_gb * cost_s, submit_s))
        submit_s += scene.gap_s * rng.expovariate(1.0)
    return Setting(
        Workload("ReLAQS", tuple(arrivals)),
        parse_nodes(scene.nodes),
        Conditions(revoke_delay_s=scene.release_s),
        # The schedulers compared go by answers and by slots held, and are told no more.
        estimates="observed",
    )


def _errors(scene: Scene, number: int) -> Points:
    """How the errors of a query were measured to fall; () for the law of the simulator."""
    if not scene.errors:
        return ()
    if scene.errors not in ("shuffled", "blocks"):
        return ERROR_CURVES[scene.errors]
    name = f"q{number}" if f"q{number}" in ERROR_CURVES else NOT_MEASURED
    return ERROR_CURVES[name if scene.errors == "shuffled" else f"{name} blocks"]


def _arrival(
    scene: Scene, name: str, number: int, read_gb: float, work_s: float, submit_s: float
) -> Arrival:
    nested = number in NESTED
    batches = scene.batches
    grown = scene.grown if nested else 0.0
    job = Job(
        "answer",
        inputs=(TableInput(f"tpch-{name}", read_gb * GB),),
        # Spark runs a mini-batch on all nodes.
        divisible=Divisible(CORES, batches, nested, span="cluster"),
    )
    truth = JobTruth(
        work_s=work_s * (1 - grown),
        growth_s=2 * work_s * grown / (batches * (batches + 1)),
        batch_overhead_s=scene.overhead_s,
        rows=read_gb * ROWS_PER_GB,
        errors=_errors(scene, number),
    )
    query = Query(name, (job,), submit_s=submit_s, kind="online", class_name=f"TPC-H {number}")
    return Arrival(query, {job.name: truth})
