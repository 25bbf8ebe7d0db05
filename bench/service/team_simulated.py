"""The load of `team` under one policy, in simulation: what the policy does, without the server.

A machine of which other programs use a part cannot tell a policy from noise; this can. Queries are
divisible, take about what was measured alone (log-normal, 0.2), and estimates err by 0.3; a slot
comes back after so many seconds. Beside the policy stands processor sharing, as a fluid that loses
nothing: about what plain DuckDB does at best.

python -m bench.service.team_simulated [--profile marshal] [--returns 0.01] [--slots 2]: half a
minute, after `bench.service.team` has measured what templates take alone.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Mapping, Sequence
from random import Random

from bench.live import mixes
from bench.live.setting import Setting, schema, setting
from bench.live.verdict import Figure, show
from queryard.core.model import Divisible, Job, Node, Query
from queryard.load import Request, draw, load_alone
from queryard.policies import resolve_profile
from queryard.sim.conditions import Conditions
from queryard.sim.references import Demand, processor_sharing
from queryard.sim.run import build
from queryard.workload.model import Arrival, JobTruth, Workload

from .team import MOST, MOST_QUERIES, spec

SPREAD, ERROR = 0.2, 0.3
SEEDS = 6


def bench(chosen: Setting) -> None:
    given = chosen.given
    file = chosen.alone or chosen.data / f"team-alone-{given.size:g}-{chosen.slots}.json"
    work_s = {name: alone.work_s for name, alone in load_alone(file).alone.items()}
    load = spec(given.size, MOST_QUERIES)
    small = tuple(f"{schema(scale)}." for scale in mixes.scales(given.size)[:2])
    ours, shared = [], []
    for seed in range(chosen.seeds):
        drawn = draw(load, seed=seed, work_s=work_s, slots=chosen.slots)
        asked = [one for one in drawn if one.time_s <= given.seconds]
        luck = Random(f"{seed}/truth")
        work = {one.id: work_s[one.template] * math.exp(luck.gauss(0.0, SPREAD)) for one in asked}
        responses = _simulated(asked, work, chosen.slots, given.profile, given.returns, seed)
        ours.append(_figures(asked, responses, small))
        demands = [
            Demand(one.id, one.time_s, work[one.id], work[one.id] / chosen.slots) for one in asked
        ]
        shared.append(_figures(asked, processor_sharing(demands, chosen.slots), small))
    figures = [Figure(f"{what}, ms", [1e3 * one[what] for one in ours]) for what in ours[0]]
    for what in ours[0]:
        ratios = [one[what] / other[what] for one, other in zip(ours, shared, strict=True)]
        most = MOST if what.endswith("small queries") else None
        figures.append(Figure(f"{what}, of processor sharing's", ratios, most))
    title = f"20 tenants under {given.profile}, simulated"
    show(title, figures, chosen, size=given.size, returns=given.returns)


def _simulated(
    asked: Sequence[Request],
    work_s: Mapping[str, float],
    slots: int,
    profile: str,
    returns_s: float,
    seed: int,
) -> dict[str, float]:
    """Responses by request."""
    job = Job("all", divisible=Divisible(slots))
    arrivals = tuple(
        Arrival(
            Query(one.id, (job,), one.tenant, submit_s=one.time_s),
            {"all": JobTruth(work_s=work_s[one.id])},
        )
        for one in asked
    )
    driver = build(
        Workload("team", arrivals, ()),
        (Node("local", slots),),
        resolve_profile(profile),
        conditions=Conditions(revoke_delay_s=returns_s, progress_every_s=0.25),
        estimates=f"oracle:{ERROR}",
        seed=seed,
        keep_journal=False,
    )
    driver.run()
    return {one.id: driver.ends[one.id] - one.time_s for one in asked}


def _figures(
    asked: Sequence[Request], responses: Mapping[str, float], small: tuple[str, ...]
) -> dict[str, float]:
    short = sorted(responses[one.id] for one in asked if one.template.startswith(small))
    return {
        "mean of small queries": statistics.fmean(short),
        "p95 of small queries": short[int(len(short) * 0.95)],
        "mean of all": statistics.fmean(responses.values()),
        "largest": max(responses.values()),
    }


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", default="marshal")
    parser.add_argument("--returns", type=float, default=0.01, help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=200, help="default: %(default)s")
    parser.add_argument("--size", type=float, default=0.2, help="default: %(default)s")


def main(arguments: Sequence[str] | None = None) -> None:
    bench(setting("team_simulated", __doc__, arguments, _more, seeds=SEEDS))


if __name__ == "__main__":
    main()
