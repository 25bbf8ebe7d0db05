"""Which profile should be the default of a session? Simulated on the workloads of one machine.

    python -m research.default_profile            all profiles, 30 seeds
    python -m research.default_profile --quick    5 seeds, two slots

Queries are divisible jobs that can use all slots; estimates err by a factor with a median of
1.5 and are corrected once a query has done more than was expected of it; slots come back 30 ms
after they are revoked. Two ideals are shown beside the profiles: processor sharing, which is about
what an engine does that runs all queries at once, and clairvoyant SRPT. Figures are means over the
seeds and their ratios to ideal sharing; "largest" of the long-tailed mix is the worst of them.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.table import Table

from queryard.core.model import Divisible, Job, Node, Query, Tenant
from queryard.policies import for_tenants, resolve_profile
from queryard.sim.conditions import Conditions
from queryard.sim.references import Demand, processor_sharing, shortest_remaining_first
from queryard.sim.run import simulate
from queryard.workload.model import Arrival, JobTruth, Workload

PROFILES = (
    "fifo",
    "query-fair",
    "hierarchical",
    "edf",
    "swrd",
    "srtf",
    "tls",
    "tenant-tls",
    "deadline-first",
    "marshal",
)
# |ln factor| has this median if the factor is off by 1.5 half of the time.
ERROR = math.log(1.5) / 0.6745
CONDITIONS = Conditions(revoke_delay_s=0.03, progress_every_s=0.25)
# Of the work of a long-tailed mix, in core-seconds at two slots: small, middling, large.
SMALL, MIDDLE, LARGE = (0.1, 1.0), (1.0, 10.0), (20.0, 120.0)
LOAD = 0.8


@dataclass(frozen=True)
class DrawnQuery:
    """A drawn query: its submission, core-seconds, tenant and deadline."""

    at_s: float
    work_s: float
    tenant: str = "default"
    deadline_s: float | None = None


@dataclass(frozen=True)
class Scenario:
    """A kind of workload, the shares of its tenants, and the figures to compute."""

    name: str
    draw: Callable[[random.Random, int], list[DrawnQuery]]
    measure: Callable[[Sequence[DrawnQuery], Sequence[float], int], dict[str, float]]
    tenants: Sequence[Tenant] = ()
    worst: frozenset[str] = field(default_factory=frozenset)


def at_once(draw: random.Random, slots: int) -> list[DrawnQuery]:
    """All of TPC-H at once: 22 queries of 0.5 to 8 core-seconds."""
    return [
        DrawnQuery(0.0, math.exp(draw.uniform(math.log(0.5), math.log(8.0)))) for _ in range(22)
    ]


def long_tailed(draw: random.Random, slots: int, count: int = 100) -> list[DrawnQuery]:
    """85 % small, 12 % middling, 3 % that take up to a minute alone; Poisson at 80 % load."""
    kinds = draw.choices((SMALL, MIDDLE, LARGE), (0.85, 0.12, 0.03), k=count)
    works = [
        math.exp(draw.uniform(math.log(low), math.log(high))) * slots / 2 for low, high in kinds
    ]
    gap_s = fmean(works) / (LOAD * slots)
    now, asked = 0.0, []
    for work_s in works:
        now += draw.expovariate(1.0 / gap_s)
        asked.append(DrawnQuery(now, work_s))
    return asked


def with_deadlines(draw: random.Random, slots: int) -> list[DrawnQuery]:
    """The same, and 30 % of them are due after 1 to 3 times what they take alone."""
    return [
        DrawnQuery(q.at_s, q.work_s, deadline_s=q.at_s + q.work_s / slots * draw.uniform(1.0, 3.0))
        if draw.random() < 0.3
        else q
        for q in long_tailed(draw, slots)
    ]


FLOODER, LIGHT = "flood", ("web", "lab")


def flooded(draw: random.Random, slots: int) -> list[DrawnQuery]:
    """One tenant asks for a hundred queries at once; two others for one now and then."""
    asked = [
        DrawnQuery(0.0, math.exp(draw.uniform(0.0, 2.3)) * slots / 2, FLOODER) for _ in range(100)
    ]
    for tenant in LIGHT:
        now = 1.0
        while now < 100.0:
            work_s = math.exp(draw.uniform(math.log(0.1), math.log(3.0))) * slots / 2
            asked.append(DrawnQuery(now, work_s, tenant))
            # At most 40 % of a third of the machine.
            now += draw.expovariate(0.4 / 3 / (0.85 * slots / 2) * slots)
    return asked


def responses(asked: Sequence[DrawnQuery], ends_s: Sequence[float], slots: int) -> dict[str, float]:
    """Mean response and slowdown, and the slowdown of the query with the most work."""
    taken = [end_s - q.at_s for q, end_s in zip(asked, ends_s, strict=True)]
    slowed = [taken_s * slots / q.work_s for q, taken_s in zip(asked, taken, strict=True)]
    largest = max(range(len(asked)), key=lambda i: asked[i].work_s)
    return {"response": fmean(taken), "slowdown": fmean(slowed), "largest": slowed[largest]}


def misses(asked: Sequence[DrawnQuery], ends_s: Sequence[float], slots: int) -> dict[str, float]:
    due = [(q.deadline_s, end_s) for q, end_s in zip(asked, ends_s, strict=True)]
    missed = [end_s > deadline_s for deadline_s, end_s in due if deadline_s is not None]
    return {"missed": fmean(missed), **responses(asked, ends_s, slots)}


def others(asked: Sequence[DrawnQuery], ends_s: Sequence[float], slots: int) -> dict[str, float]:
    """The response of the light tenants over what each gets alone on a third of the machine."""
    ratios = []
    for tenant in LIGHT:
        own = [(q, end_s) for q, end_s in zip(asked, ends_s, strict=True) if q.tenant == tenant]
        speed = slots / 3
        demands = [
            Demand(str(i), q.at_s, q.work_s, q.work_s / speed) for i, (q, _) in enumerate(own)
        ]
        alone = processor_sharing(demands, speed)
        ratios.append(fmean(end_s - q.at_s for q, end_s in own) / fmean(alone.values()))
    return {"others/alone": max(ratios), **responses(asked, ends_s, slots)}


SCENARIOS = (
    Scenario("22 at once", at_once, responses),
    Scenario("long-tailed", long_tailed, responses, worst=frozenset({"largest"})),
    Scenario(
        "three tenants",
        flooded,
        others,
        tuple(Tenant(name, guarantee=0.33) for name in (FLOODER, *LIGHT)),
    ),
    Scenario("deadlines", with_deadlines, misses),
)


def workload(asked: Iterable[DrawnQuery], slots: int) -> Workload:
    arrivals = []
    for number, q in enumerate(asked):
        query = Query(
            f"q{number}",
            (Job("work", divisible=Divisible(slots)),),
            tenant=q.tenant,
            submit_s=q.at_s,
            deadline_s=q.deadline_s,
        )
        arrivals.append(Arrival(query, {"work": JobTruth(work_s=q.work_s)}))
    return Workload("drawn", tuple(arrivals))


def ends(
    asked: Sequence[DrawnQuery], slots: int, profile: Mapping[str, Any], seed: int
) -> list[float]:
    """When each query ends under a profile."""
    run = simulate(
        workload(asked, slots),
        [Node("machine", slots)],
        profile,
        conditions=CONDITIONS,
        estimates=f"oracle:{ERROR}",
        seed=seed,
        keep_journal=False,
    )
    return [run.ends[f"q{number}"] for number in range(len(asked))]


def ideal_ends(asked: Sequence[DrawnQuery], slots: int, rule: Callable[..., Any]) -> list[float]:
    demands = [Demand(str(i), q.at_s, q.work_s, q.work_s / slots) for i, q in enumerate(asked)]
    taken = rule(demands, slots)
    return [q.at_s + taken[str(i)] for i, q in enumerate(asked)]


IDEALS = {"ideal sharing": processor_sharing, "clairvoyant SRPT": shortest_remaining_first}


def figures(
    scenario: Scenario, slots: int, seeds: int, profiles: Mapping[str, Any]
) -> dict[str, dict[str, float]]:
    """By profile or ideal, what is looked at: means over the seeds, or the worst of them."""
    seen: dict[str, list[dict[str, float]]] = {name: [] for name in (*IDEALS, *profiles)}
    for seed in range(seeds):
        asked = scenario.draw(random.Random(f"{scenario.name}:{seed}"), slots)
        for name, rule in IDEALS.items():
            done = ideal_ends(asked, slots, rule)
            seen[name].append(scenario.measure(asked, done, slots))
        for name, profile in profiles.items():
            tenants = scenario.tenants
            shared = for_tenants(profile, tenants) if tenants and by_tenant(profile) else profile
            done = ends(asked, slots, shared, seed)
            seen[name].append(scenario.measure(asked, done, slots))
    return {
        name: {
            key: (max if key in scenario.worst else fmean)(run[key] for run in runs)
            for key in runs[0]
        }
        for name, runs in seen.items()
    }


def by_tenant(profile: Mapping[str, Any]) -> bool:
    pools = profile.get("pools", {})
    return isinstance(pools, Mapping) and pools.get("by") == "tenant"


def show(console: Console, scenario: Scenario, slots: int, found: Mapping[str, Any]) -> None:
    table = Table(title=f"{scenario.name}, {slots} slots")
    keys = list(found["ideal sharing"])
    table.add_column("profile")
    for key in keys:
        table.add_column(key, justify="right")
        table.add_column("ratio", justify="right", style="dim")
    for name, values in found.items():
        cells = []
        for key in keys:
            base = found["ideal sharing"][key]
            cells += [f"{values[key]:.2f}", f"{values[key] / base:.2f}" if base else "-"]
        table.add_row(name, *cells, style="bold" if name == "marshal" else "")
    console.print(table)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few seeds, two slots only")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--profiles", default=",".join(PROFILES))
    given = parser.parse_args(argv)
    profiles = {name: resolve_profile(name) for name in given.profiles.split(",")}
    seeds = 5 if given.quick else given.seeds
    console = Console(width=max(130, Console().width))
    for slots in (2,) if given.quick else (2, 8):
        for scenario in SCENARIOS:
            show(console, scenario, slots, figures(scenario, slots, seeds, profiles))


if __name__ == "__main__":
    main()
