"""From a spec and a seed to the list of requests: the same seed is the same list.

Every property has a random stream of its own, so that changing one leaves the others as they are.
Shares are exact: a tenant with share 0.3 sends 30 of 100 queries, and only which ones is drawn.
Where arrivals are given as a load, times also depend on the measured work of the templates; tenants
and texts do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from random import Random

from queryard.core.errors import InvalidRecord

from .arrivals import count_of, in_bursts, times_by_load, times_by_rate
from .model import Amount, Arrivals, Asker, LoadSpec, Request

EXAMPLES = 3


def draw(
    spec: LoadSpec,
    *,
    seed: int | None = None,
    work_s: Mapping[str, float] | None = None,
    slots: int = 1,
    recorded: Sequence[Request] = (),
) -> tuple[Request, ...]:
    """The requests of a spec, in the order of their times, called r1, r2 …

    `work_s` are the core-seconds of templates and `slots` those of the machine; both are needed
    only for arrivals by load. `recorded` takes the place of a recording that the spec names.
    """
    chosen = spec.seed if seed is None else seed
    found: list[Request] = [] if spec.arrivals.kind != "recorded" else _limited(spec, recorded)
    for stream in _streams(spec):
        found.extend(_Drawing(spec, stream, chosen, work_s, slots).requests())
    ordered = sorted(found, key=lambda request: request.time_s)
    digits = len(str(len(ordered)))
    return tuple(replace(ask, id=f"r{i:0{digits}d}") for i, ask in enumerate(ordered, 1))


def examples(
    spec: LoadSpec, *, seed: int | None = None, recorded: Sequence[Request] = ()
) -> dict[str, tuple[str, ...]]:
    """Some texts of every template that occurs, to measure the template."""
    if any(_open_ended(stream) for stream in _streams(spec)):
        drawn = Random(f"{spec.seed if seed is None else seed}/examples")
        names = dict.fromkeys(name for asker in spec.askers for name in asker.mix)
        return {
            name: tuple(dict.fromkeys(spec.templates[name].text(drawn) for _ in range(EXAMPLES)))
            for name in names
        }
    unit_work = dict.fromkeys(spec.templates, 1.0)
    texts: dict[str, dict[str, None]] = {}
    for request in draw(spec, seed=seed, work_s=unit_work, recorded=recorded):
        texts.setdefault(request.template, {})[request.sql] = None
    return {name: tuple(found)[:EXAMPLES] for name, found in texts.items()}


def deal(shares: Sequence[float], count: int, rng: Random) -> list[int]:
    """So many indices into `shares`, each as often as its share says up to one, in random order.

    >>> sorted(deal([3.0, 1.0], 8, Random(1)))
    [0, 0, 0, 0, 0, 0, 1, 1]
    """
    bounds = list(accumulate(shares))
    start = rng.random()
    dealt, place = [], 0
    for number in range(count):
        at = (start + number) / count * bounds[-1]
        while place < len(bounds) - 1 and bounds[place] <= at:
            place += 1
        dealt.append(place)
    rng.shuffle(dealt)
    return dealt


@dataclass(frozen=True)
class _Stream:
    """Tenants that share one arrival process."""

    askers: tuple[Asker, ...]
    arrivals: Arrivals
    amount: Amount
    name: str = ""


def _streams(spec: LoadSpec) -> list[_Stream]:
    common = tuple(asker for asker in spec.askers if asker.arrivals is None)
    found = []
    if common and spec.arrivals.kind != "recorded":
        found.append(_Stream(common, spec.arrivals, spec.amount))
    found.extend(
        _Stream((asker,), asker.arrivals, asker.amount, asker.name)
        for asker in spec.askers
        if asker.arrivals is not None
    )
    return found


def _open_ended(stream: _Stream) -> bool:
    """Whether the number of queries depends on their work."""
    return stream.arrivals.load is not None and stream.amount.queries is None


def _limited(spec: LoadSpec, recorded: Sequence[Request]) -> list[Request]:
    """A recording up to the amount asked for, beginning when the spec says."""
    until_s = spec.amount.duration_s
    kept = [ask for ask in recorded if until_s is None or ask.time_s < until_s]
    start_s = spec.arrivals.start_s
    return [replace(ask, time_s=ask.time_s + start_s) for ask in kept[: spec.amount.queries]]


class _Drawing:
    """One stream being drawn."""

    def __init__(
        self,
        spec: LoadSpec,
        stream: _Stream,
        seed: int,
        work_s: Mapping[str, float] | None,
        slots: int,
    ) -> None:
        self._spec, self._stream, self._seed, self._slots = spec, stream, seed, slots
        self._work_s = work_s

    def requests(self) -> list[Request]:
        arrivals, amount = self._stream.arrivals, self._stream.amount
        mean_s = self._mean_work_s() if _open_ended(self._stream) else 1.0
        count = count_of(arrivals, amount, mean_s, self._slots)
        times_s: list[float] | None = None
        if arrivals.rate_per_s is not None:
            times_s = times_by_rate(arrivals, amount, self._rng("times"))
            count = len(times_s)
        assert count is not None
        asked = self._asked(count)
        if arrivals.load is not None:
            works_s = [self._work_of(request.template) for request in asked]
            times_s = times_by_load(arrivals, amount, works_s, self._slots, self._rng("times"))
        elif times_s is None:
            times_s = [number * arrivals.every_s for number in range(count)]
        if arrivals.kind == "bursty":
            times_s = in_bursts(times_s, arrivals.on_s, arrivals.off_s)
        return [
            replace(request, time_s=arrivals.start_s + time_s)
            for request, time_s in zip(asked, times_s, strict=True)
        ]

    def _asked(self, count: int) -> list[Request]:
        """The requests in the order of arrival, without times."""
        askers = self._stream.askers
        owners = deal([asker.share for asker in askers], count, self._rng("tenants"))
        by_tenant = [
            iter(self._requests_of(asker, owners.count(place)))
            for place, asker in enumerate(askers)
        ]
        return [next(by_tenant[owner]) for owner in owners]

    def _requests_of(self, asker: Asker, count: int) -> list[Request]:
        """The queries of one tenant."""
        names, tenant = list(asker.mix), asker.name
        templates = deal(list(asker.mix.values()), count, self._rng(f"{tenant}/templates"))
        due = deal([asker.deadlines, 1 - asker.deadlines], count, self._rng(f"{tenant}/deadlines"))
        factors, texts = self._rng(f"{tenant}/tightness"), self._rng(f"{tenant}/texts")
        found = []
        for place, number in zip(templates, due, strict=True):
            factor: float | None = factors.uniform(*asker.tightness)
            if number != 0 or asker.deadline_s is not None:
                factor = None
            found.append(
                Request(
                    id="",
                    time_s=0.0,
                    tenant=tenant,
                    template=names[place],
                    sql=self._text(asker, names[place], texts),
                    priority=asker.priority,
                    deadline_factor=factor,
                    deadline_s=asker.deadline_s if number == 0 else None,
                )
            )
        return found

    def _text(self, asker: Asker, template: str, rng: Random) -> str:
        """A text of a template: a new one, or one of its few variants, equal for all tenants."""
        if asker.variants is None:
            return self._spec.templates[template].text(rng)
        variant = rng.randrange(asker.variants)
        return self._spec.templates[template].text(Random(f"{self._seed}/{template}/{variant}"))

    def _mean_work_s(self) -> float:
        """The expected work of a query of the stream."""
        askers = self._stream.askers
        total = sum(asker.share for asker in askers)
        return sum(
            asker.share / total * weight / sum(asker.mix.values()) * self._work_of(name)
            for asker in askers
            for name, weight in asker.mix.items()
        )

    def _work_of(self, template: str) -> float:
        if self._work_s is None or template not in self._work_s:
            raise InvalidRecord(
                f"the load {self._spec.name!r} is given as a share of the machine, which needs the "
                f"work of {template!r}; measure it, or give a rate instead"
            )
        return self._work_s[template]

    def _rng(self, question: str) -> Random:
        return Random(f"{self._seed}/{self._stream.name}/{question}")
