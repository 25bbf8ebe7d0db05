"""One colour means one thing in an image, for colour-blind readers too."""

from __future__ import annotations

import doctest
import math
from itertools import combinations

import pytest

from queryard.figures import palette
from queryard.figures.palette import (
    LATE,
    POLICIES,
    PORTFOLIOS,
    SEQUENCE,
    SLOT_COLOURS,
    TENANTS,
    WASTED,
    colouring,
    faded,
)

# Machado, Oliveira and Fernandes 2009, full severity, on linear RGB.
SIGHTS = {
    "usual": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
}
TO_XYZ = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
WHITE = (0.9505, 1.0, 1.089)

Three = tuple[float, float, float]


def times(matrix: tuple[Three, Three, Three], vector: Three) -> Three:
    a, b, c = (sum(x * y for x, y in zip(row, vector, strict=True)) for row in matrix)
    return a, b, c


def lab(colour: str, sight: str) -> Three:
    """CIE L*a*b* of a colour as seen with one kind of sight."""
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    r, g, b = (s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares)
    seen = times(SIGHTS[sight], (r, g, b))
    x, y, z = (min(1.0, max(0.0, s)) for s in seen)
    parts = [v / w for v, w in zip(times(TO_XYZ, (x, y, z)), WHITE, strict=True)]
    fx, fy, fz = (math.cbrt(v) if v > 0.008856 else 7.787 * v + 16 / 116 for v in parts)
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def apart(one: str, other: str) -> float:
    """The least distance of two colours over all kinds of sight; about 2 can just be seen."""
    return min(math.dist(lab(one, sight), lab(other, sight)) for sight in SIGHTS)


def test_no_two_families_share_a_colour() -> None:
    tints = [faded(colour) for colour in (*TENANTS, LATE)]
    families = [POLICIES, PORTFOLIOS, TENANTS, tuple(SLOT_COLOURS.values()), (LATE,), (WASTED,)]
    every = [colour for family in families for colour in family] + tints
    assert len(set(every)) == len(every)


def test_policies_stay_apart_from_tenants_and_queries() -> None:
    fills = (*TENANTS, *SEQUENCE)
    assert min(apart(line, fill) for line in POLICIES for fill in fills) > 10


@pytest.mark.parametrize("family", [POLICIES, TENANTS])
def test_the_first_of_a_family_stay_apart_from_each_other(family: tuple[str, ...]) -> None:
    assert min(apart(*pair) for pair in combinations(family[:3], 2)) > 25
    assert min(apart(*pair) for pair in combinations(family[:4], 2)) > 12
    usual = [math.dist(lab(a, "usual"), lab(b, "usual")) for a, b in combinations(family, 2)]
    assert min(usual) > 15


def test_late_stays_apart_from_everything_else() -> None:
    others = (*POLICIES, *PORTFOLIOS, *TENANTS, *SLOT_COLOURS.values(), WASTED)
    assert min(apart(LATE, other) for other in others) > 15
    assert min(apart(faded(LATE), faded(tenant)) for tenant in TENANTS) > 5


def test_few_queries_have_a_colour_each() -> None:
    few = colouring({f"q{n}": f"t{n % 2}" for n in range(len(TENANTS))})
    assert few.by == "query"
    assert len({few.of(f"q{n}") for n in range(len(TENANTS))}) == len(few.keys) == len(TENANTS)


def test_many_queries_have_the_colours_of_their_tenants() -> None:
    many = colouring({f"q{n}": "even" if n % 2 == 0 else "odd" for n in range(100)})
    assert (many.by, [key.name for key in many.keys]) == ("tenant", ["even", "odd"])
    assert many.of("q2") == many.of("q4") != many.of("q3")


def test_many_queries_of_one_tenant_have_a_sequence_of_colours() -> None:
    many = colouring({f"query-{n}-with-a-long-name": "default" for n in range(100)})
    assert (many.by, len(set(many.colours.values()))) == ("query", 100)
    assert [key.name for key in many.keys][::4] == [
        "query-0-wi…long-name (submitted first)",
        "query-99-w…long-name (submitted last)",
    ]


def test_the_examples_in_the_documentation_hold() -> None:
    assert doctest.testmod(palette).failed == 0
