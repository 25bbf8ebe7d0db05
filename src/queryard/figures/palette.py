"""Colours that stay apart for colour-blind readers and in grey print.

The named ones are Paul Tol's "muted" scheme and Okabe and Ito's; the sequence is viridis.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .panels import Key

DISTINCT = (
    "#332288",
    "#CC6677",
    "#117733",
    "#88CCEE",
    "#882255",
    "#999933",
    "#AA4499",
    "#44AA99",
    "#DDCC77",
)
SEQUENCE = (
    "#440154",
    "#482878",
    "#3E4989",
    "#31688E",
    "#26828E",
    "#1F9E89",
    "#35B779",
    "#6ECE58",
    "#B5DE2B",
    "#FDE725",
)
SLOT_COLOURS = {"map": "#0072B2", "reduce": "#E69F00", "lease": "#009E73"}
# Not among the distinct ones: a portfolio is seen beside the policies it chooses from.
PORTFOLIOS = ("#000000", "#CC3311", "#EE7733")
WASTED = "#BBBBBB"
INK = "#222222"
FAINT = "#777777"

SAMPLES = 5
NAME_LENGTH = 20


def policy_colour(place: int) -> str:
    return DISTINCT[place % len(DISTINCT)]


def policy_colours(names: Collection[str], portfolios: Collection[str] = ()) -> dict[str, str]:
    """A colour a policy, and others for those that are portfolios.

    >>> policy_colours(["a", "p", "b"], ["p"])
    {'a': '#332288', 'b': '#CC6677', 'p': '#000000'}
    """
    fixed = [name for name in names if name not in portfolios]
    chosen = [name for name in names if name in portfolios]
    return {name: policy_colour(place) for place, name in enumerate(fixed)} | {
        name: PORTFOLIOS[place % len(PORTFOLIOS)] for place, name in enumerate(chosen)
    }


def between(share: float) -> str:
    """The colour at a place (0 to 1) of the sequence.

    >>> between(0), between(1)
    ('#440154', '#FDE725')
    """
    place = share * (len(SEQUENCE) - 1)
    low = min(int(place), len(SEQUENCE) - 2)
    parts = []
    for at in (1, 3, 5):
        first, second = (int(SEQUENCE[low + step][at : at + 2], 16) for step in (0, 1))
        parts.append(round(first + (second - first) * (place - low)))
    return "#{:02X}{:02X}{:02X}".format(*parts)


def query_colours(queries: Sequence[str]) -> dict[str, str]:
    """A colour a query: distinct ones for a few, else by the order of submission."""
    if len(queries) <= len(DISTINCT):
        return dict(zip(queries, DISTINCT, strict=False))
    last = len(queries) - 1
    return {query: between(place / last) for place, query in enumerate(queries)}


def query_keys(colours: dict[str, str]) -> tuple[Key, ...]:
    """The legend of queries; of many, some from first to last."""
    queries = list(colours)
    if len(queries) <= len(DISTINCT):
        return tuple(Key(_short(query), colours[query]) for query in queries)
    last = len(queries) - 1
    shown = [queries[round(place * last / (SAMPLES - 1))] for place in range(SAMPLES)]
    hints = {0: " (first)", SAMPLES - 1: " (last submitted)"}
    return tuple(
        Key(_short(query) + hints.get(place, ""), colours[query])
        for place, query in enumerate(shown)
    )


def _short(name: str) -> str:
    if len(name) <= NAME_LENGTH:
        return name
    # Names of one series differ at their ends.
    begins = NAME_LENGTH // 2
    return f"{name[:begins]}…{name[begins + 1 - NAME_LENGTH :]}"
