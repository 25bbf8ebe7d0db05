"""Three tenants with a guarantee of a third each; one of them floods.

The flooding tenant submits at time 0 as much work as keeps the machine busy for half a minute. The
others submit small and medium queries now and then for as long, all in all 40 % of what their third
can do. Their mean response is divided by what each would get *alone at its guaranteed
share*: the same arrivals of that tenant only, on a machine of a third of the slots, served in the
best possible order (shortest remaining work first, clairvoyant, as a fluid) with the work that was
measured alone. A machine of two thirds of a core cannot be had to measure on, and this reference is
harder than any measurement could be: it knows every query's work and loses nothing. Processor
sharing at the same share, which is what an engine would do there, is shown as well; so is plain
DuckDB, which knows no tenants.

python -m bench.live.flood [--seeds 5]: about 40 s per run on two cores, two runs per seed.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from queryard.core.model import Tenant
from queryard.load import Alone, LoadSpec, Played, Request, draw, run
from queryard.sim.references import Demand, processor_sharing, shortest_remaining_first
from queryard.workload.load import Amount, Arrivals, Asker, Data

from . import mixes
from .setting import OURS, PLAIN, Setting, checked, in_turn, schema, setting
from .verdict import Figure, show

FLOODER, OTHERS = "flood", ("web", "lab")
GUARANTEE, OWN_LOAD = 1 / 3, 0.4
# How long the others submit, and for how long the flood would keep the machine busy.
ASKING_S, FLOOD_S = 30.0, 30.0
EVERY = tuple(f"q{number:02d}" for number in range(1, 23))


def spec(size: float, work_s: Mapping[str, float], slots: int, times: float) -> LoadSpec:
    """The load; how much the flooder asks for depends on the work of what it asks."""
    small, middle = schema(mixes.SMALL * size), schema(mixes.MIDDLE * size)
    flood = mixes.share_out({(middle, EVERY): 1.0})
    light = mixes.share_out({(small, EVERY): 0.7, (middle, EVERY): 0.3})
    mean_s = statistics.fmean(work_s.get(name, 1.0) for name in flood)
    askers = [
        Asker(
            Tenant(FLOODER, guarantee=GUARANTEE),
            flood,
            arrivals=Arrivals("at once"),
            amount=Amount(queries=max(len(flood), round(FLOOD_S * times * slots / mean_s))),
        )
    ]
    for name in OTHERS:
        arrivals = Arrivals("poisson", load=OWN_LOAD * GUARANTEE, start_s=1.0)
        amount = Amount(duration_s=ASKING_S * times)
        tenant = Tenant(name, guarantee=GUARANTEE)
        askers.append(Asker(tenant, light, arrivals=arrivals, amount=amount))
    return LoadSpec(
        name="flood",
        data=Data({schema(scale): scale for scale in mixes.scales(size)[:2]}),
        templates=mixes.templates(size),
        askers=tuple(askers),
        arrivals=Arrivals("at once"),
        amount=Amount(),
    )


def bench(chosen: Setting) -> None:
    size, times = chosen.given.scale_time or 1.0, 0.2 if chosen.quick else 1.0
    ground = chosen.ground(*mixes.scales(size)[:2])
    measured = chosen.measure(ground, [spec(size, {}, ground.slots, times)])
    load = spec(size, measured.work_s, ground.slots, times)
    by_tenant: dict[str, list[float]] = {name: [] for name in (*OTHERS, "sharing", PLAIN)}
    both = []
    for seed in range(chosen.seeds):
        asked = draw(load, seed=seed, work_s=measured.work_s, slots=ground.slots)
        played = in_turn(
            seed,
            {
                name: partial(run, asked, name, ground, measured.alone, tenants=load.tenants)
                for name in (OURS, PLAIN)
            },
        )
        checked(played)
        ratios = {}
        for tenant in OTHERS:
            best_s = alone_at_share(asked, tenant, measured.alone, ground.slots)
            ratios[tenant] = mean_s(played[OURS], tenant) / best_s
            by_tenant[tenant].append(ratios[tenant])
            print(
                f"  seed {seed}: {tenant} mean {mean_s(played[OURS], tenant):.3f} s; alone at its "
                f"share {best_s:.3f} s; plain DuckDB {mean_s(played[PLAIN], tenant):.3f} s",
                flush=True,
            )
        both.append(max(ratios.values()))
        shared = [
            mean_s(played[OURS], tenant)
            / alone_at_share(asked, tenant, measured.alone, ground.slots, processor_sharing)
            for tenant in OTHERS
        ]
        by_tenant["sharing"].append(max(shared))
        plain = [mean_s(played[OURS], t) / mean_s(played[PLAIN], t) for t in OTHERS]
        by_tenant[PLAIN].append(max(plain))
        last_s = {name: one.span_s for name, one in played.items()}
        print(f"  seed {seed}: last finish {last_s[OURS]:.1f} s, {last_s[PLAIN]:.1f} s", flush=True)
    figures = [
        Figure("mean response of alone at the share (the worse tenant)", both, 1.3),
        *(Figure(f"  {tenant}", by_tenant[tenant]) for tenant in OTHERS),
        Figure("the same, if alone the share were divided evenly", by_tenant["sharing"]),
        Figure("mean response of plain DuckDB's (the worse tenant)", by_tenant[PLAIN]),
    ]
    show("three tenants, one floods", figures, chosen, size=size)


def mean_s(played: Played, tenant: str) -> float:
    """The mean response of a tenant."""
    return statistics.fmean(
        outcome.response_s or 0.0 for outcome in played.outcomes if outcome.request.tenant == tenant
    )


def alone_at_share(
    asked: Sequence[Request],
    tenant: str,
    alone: Mapping[str, Alone],
    slots: int,
    rule: Callable[..., dict[str, float]] = shortest_remaining_first,
) -> float:
    """The mean response of a tenant that has its share of the slots to itself, and no more."""
    share = GUARANTEE * slots
    demands = [
        Demand(ask.id, ask.time_s, alone[ask.template].work_s, alone[ask.template].work_s / share)
        for ask in asked
        if ask.tenant == tenant
    ]
    return statistics.fmean(rule(demands, share).values())


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scale-time", type=float, help="shrink all data by this factor")


def main(arguments: Sequence[str] | None = None) -> None:
    bench(setting("flood", __doc__, arguments, _options))


if __name__ == "__main__":
    main()
