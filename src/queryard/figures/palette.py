"""Colours of figures: one family per kind of thing, so that a colour means one thing in an image.

Policies are lines: dark, from blue to green and violet. Tenants and queries are filled: light.
Kinds of slots are browns. Red is for what is late, and for nothing else. The first four policies,
and the first four tenants, stay apart for colour-blind readers, as do policies from tenants
(`tests/figures/test_palette.py` simulates it).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from .panels import Key

POLICIES = (
    "#2B2A86",
    "#12857A",
    "#3B87DB",
    "#A04FB5",
    "#123F3C",
    "#6A6A94",
    "#5A1A6B",
    "#0A5FA8",
)
# Drawn with thicker lines, beside the policies that a portfolio chooses from.
PORTFOLIOS = ("#000000", "#6B6B6B", "#A3A3A3")
TENANTS = (
    "#7CC8EE",
    "#E3BC3F",
    "#5FB58F",
    "#CEE696",
    "#959447",
    "#C9A6E4",
    "#9CECDC",
    "#8FA3C4",
)
# Many queries in the order of their submission: from blue to yellow, none darker than a tenant.
SEQUENCE = ("#4F9FC9", "#55AEB0", "#5FB88C", "#93C872", "#C6D774", "#F2E28C")
LATE = "#D7191C"
SLOT_COLOURS = {"map": "#D6C7B2", "reduce": "#8B7765", "lease": "#54463A"}
# How queries were predicted, as dots; policies are never in the same image.
PREDICTED_BY = {
    "template": POLICIES[1],
    "plan": POLICIES[0],
    "bytes": POLICIES[2],
    "guess": POLICIES[3],
}
WASTED = "#BBBBBB"
INK = "#222222"
FAINT = "#777777"

SAMPLES = 5
NAME_LENGTH = 20
FADED = 0.65


def policy_colour(place: int) -> str:
    return POLICIES[place % len(POLICIES)]


def policy_colours(names: Collection[str], portfolios: Collection[str] = ()) -> dict[str, str]:
    """One colour per policy; portfolios have colours of their own.

    >>> policy_colours(["a", "p", "b"], ["p"])
    {'a': '#2B2A86', 'b': '#12857A', 'p': '#000000'}
    """
    fixed = [name for name in names if name not in portfolios]
    chosen = [name for name in names if name in portfolios]
    return {name: policy_colour(place) for place, name in enumerate(fixed)} | {
        name: PORTFOLIOS[place % len(PORTFOLIOS)] for place, name in enumerate(chosen)
    }


def tenant_colours(names: Sequence[str]) -> dict[str, str]:
    return {name: TENANTS[place % len(TENANTS)] for place, name in enumerate(names)}


def faded(colour: str) -> str:
    """A colour mixed with white.

    >>> faded("#000000")
    '#A6A6A6'
    """
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(part + (255 - part) * FADED):02X}" for part in parts)


def between(share: float) -> str:
    """The colour at a place (0 to 1) of the sequence.

    >>> between(0), between(1)
    ('#4F9FC9', '#F2E28C')
    """
    place = share * (len(SEQUENCE) - 1)
    low = min(int(place), len(SEQUENCE) - 2)
    parts = []
    for at in (1, 3, 5):
        first, second = (int(SEQUENCE[low + step][at : at + 2], 16) for step in (0, 1))
        parts.append(round(first + (second - first) * (place - low)))
    return "#{:02X}{:02X}{:02X}".format(*parts)


@dataclass(frozen=True, slots=True)
class Colouring:
    """What the colours of a Gantt chart stand for: queries, or the tenants of many queries."""

    by: Literal["query", "tenant"]
    subjects: Mapping[str, str]  # query -> query or tenant
    colours: Mapping[str, str]  # of the subjects

    def of(self, query: str) -> str:
        return self.colours.get(self.subjects.get(query, query), WASTED)

    @property
    def keys(self) -> tuple[Key, ...]:
        """The legend; of many queries, some from the first to the last."""
        names = list(self.colours)
        if len(names) <= len(TENANTS):
            return tuple(Key(_short(name), self.colours[name]) for name in names)
        last = len(names) - 1
        shown = [names[round(place * last / (SAMPLES - 1))] for place in range(SAMPLES)]
        hints = {0: " (submitted first)", SAMPLES - 1: " (submitted last)"}
        return tuple(
            Key(_short(name) + hints.get(place, ""), self.colours[name])
            for place, name in enumerate(shown)
        )


def colouring(tenants: Mapping[str, str]) -> Colouring:
    """The colours for queries, which are given with their tenants in the order of submission.

    A few queries have a colour each. Many have the colours of their tenants; queries of one tenant
    (or of more tenants than there are colours) change their colour in the order of submission.
    """
    queries = list(tenants)
    names = sorted(set(tenants.values()))
    if len(queries) <= len(TENANTS):
        return Colouring("query", {query: query for query in queries}, tenant_colours(queries))
    if 1 < len(names) <= len(TENANTS):
        return Colouring("tenant", tenants, tenant_colours(names))
    last = len(queries) - 1
    found = {query: between(place / last) for place, query in enumerate(queries)}
    return Colouring("query", {query: query for query in queries}, found)


def _short(name: str) -> str:
    if len(name) <= NAME_LENGTH:
        return name
    # Names of one series differ at their ends.
    begins = NAME_LENGTH // 2
    return f"{name[:begins]}…{name[begins + 1 - NAME_LENGTH :]}"
