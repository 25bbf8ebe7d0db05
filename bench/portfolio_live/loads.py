"""Three loads whose phases ask for different policies; all work is in shares of the machine.

- dashboards by day ("small queries fast"): dashboards and analysts, with reports; then a nightly
  batch; then dashboards and reports.
- a deadline batch ("deadlines first"): small and middle queries; then a batch as well, of which the
  large queries are due first.
- a flood by one tenant ("fair to tenants"): three tenants; then one of them asks at once for more
  than the machine can do in the rest of the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from random import Random

from queryard.load import Request
from queryard.workload import tpch

# Queries of each kind; `texts` compares comments of so many days.
SMALL_ONES = (1, 3, 4, 6, 10, 12, 14, 19)
MIDDLE_ONES = (1, 3, 5, 6, 7, 9, 18, 21)
TEXT_DAYS = 150


@dataclass(frozen=True)
class Kinds:
    """Templates by size: TPC-H in two schemas, and one that is larger than all of them."""

    small: tuple[str, ...]
    middle: tuple[str, ...]
    large: tuple[str, ...]

    @classmethod
    def of(cls, small: str, middle: str) -> Kinds:
        return cls(
            tuple(f"{small}.q{number:02d}" for number in SMALL_ONES),
            tuple(f"{middle}.q{number:02d}" for number in MIDDLE_ONES),
            (f"{middle}.texts",),
        )


def text_of(template: str, rng: Random) -> str:
    """One query of a template, with parameters of its own."""
    place, _, name = template.partition(".")
    if name == "texts":
        begin = date(1992, 6, 1) + timedelta(days=rng.randrange(1000))
        end = begin + timedelta(days=TEXT_DAYS)
        return f"""
            SELECT o_orderpriority, count(*) AS lines,
                   avg(levenshtein(o_comment, l_comment)) AS apart
            FROM {place}.orders JOIN {place}.lineitem ON o_orderkey = l_orderkey
            WHERE o_orderdate >= DATE '{begin}' AND o_orderdate < DATE '{end}'
            GROUP BY ALL ORDER BY ALL"""
    return tpch.in_schema(tpch.draw_query(int(name[1:]), rng), place).strip()


def examples(kinds: Kinds, texts: int = 3) -> dict[str, list[str]]:
    """Some texts of every template, to measure what each takes alone."""
    rng = Random("examples")
    every = (*kinds.small, *kinds.middle, *kinds.large)
    return {name: [text_of(name, rng) for _ in range(texts)] for name in every}


@dataclass(frozen=True)
class Machine:
    """What queries take alone, in core-seconds by template, on so many slots."""

    kinds: Kinds
    work_s: Mapping[str, float]
    slots: int


class Drawn:
    """Requests as they are drawn; `phase_s` is the length of a phase."""

    def __init__(self, name: str, machine: Machine, phase_s: float, seed: int) -> None:
        self.machine = machine
        self.kinds = machine.kinds
        self.phase_s = phase_s
        self.rng = Random(f"{name}/{seed}")
        self.requests: list[Request] = []

    def stream(
        self, tenant: str, templates: Sequence[str], load: float, begin: float, end: float
    ) -> None:
        """Queries that come by a Poisson process, from one phase to another."""
        mean_s = sum(self.machine.work_s[name] for name in templates) / len(templates)
        rate = load * self.machine.slots / mean_s
        at_s = begin * self.phase_s + self.rng.expovariate(rate)
        while at_s < end * self.phase_s:
            self.ask(tenant, self.rng.choice(templates), at_s)
            at_s += self.rng.expovariate(rate)

    def batch(
        self, tenant: str, templates: Sequence[str], load: float, begin: float
    ) -> list[Request]:
        """As much as keeps the machine busy for this share of a phase, all at once."""
        left_s = load * self.phase_s * self.machine.slots
        asked = []
        while left_s > 0:
            name = self.rng.choice(templates)
            left_s -= self.machine.work_s[name]
            asked.append(self.ask(tenant, name, begin * self.phase_s))
        return asked

    def ask(self, tenant: str, template: str, at_s: float) -> Request:
        name = f"r{len(self.requests):04d}"
        request = Request(name, at_s, tenant, template, text_of(template, self.rng))
        self.requests.append(request)
        return request

    def due(self, asked: Sequence[Request], spare: float) -> None:
        """Deadlines that can all be met, the largest queries first, with some time to spare."""
        by_work = sorted(asked, key=lambda each: (-self.machine.work_s[each.template], each.id))
        until_s = 0.0
        due = {}
        for each in by_work:
            until_s += self.machine.work_s[each.template] / self.machine.slots
            due[each.id] = spare * until_s + 0.3
        self.requests = [
            replace(each, deadline_s=due[each.id]) if each.id in due else each
            for each in self.requests
        ]


def dashboards(machine: Machine, phase_s: float, seed: int) -> list[Request]:
    drawn = Drawn("dashboards", machine, phase_s, seed)
    drawn.stream("boards", drawn.kinds.small, 0.35, 0.0, 1.0)
    drawn.stream("analysts", drawn.kinds.middle, 0.15, 0.0, 1.0)
    drawn.batch("reports", drawn.kinds.large, 0.5, 0.2)
    drawn.batch("nightly", (*drawn.kinds.middle, *drawn.kinds.large), 0.8, 1.0)
    drawn.stream("boards", drawn.kinds.small, 0.1, 1.0, 2.0)
    drawn.stream("boards", drawn.kinds.small, 0.4, 2.0, 3.0)
    drawn.batch("reports", drawn.kinds.large, 0.3, 2.1)
    return drawn.requests


def deadlines(machine: Machine, phase_s: float, seed: int) -> list[Request]:
    drawn = Drawn("deadlines", machine, phase_s, seed)
    drawn.stream("web", drawn.kinds.small, 0.25, 0.0, 3.0)
    drawn.stream("lab", drawn.kinds.middle, 0.2, 0.0, 3.0)
    asked = drawn.batch("closing", (*drawn.kinds.middle, *drawn.kinds.large), 1.0, 1.0)
    drawn.due(asked, 1.2)
    return drawn.requests


def flood(machine: Machine, phase_s: float, seed: int) -> list[Request]:
    drawn = Drawn("flood", machine, phase_s, seed)
    drawn.stream("web", drawn.kinds.small, 0.12, 0.0, 3.0)
    drawn.stream("lab", drawn.kinds.middle, 0.2, 0.0, 3.0)
    drawn.stream("bulk", drawn.kinds.small, 0.1, 0.0, 1.0)
    drawn.batch("bulk", (*drawn.kinds.small, *drawn.kinds.small, *drawn.kinds.middle), 1.2, 1.0)
    return drawn.requests


LOADS = {
    "dashboards": (dashboards, "small queries fast"),
    "deadlines": (deadlines, "deadlines first"),
    "flood": (flood, "fair to tenants"),
}
