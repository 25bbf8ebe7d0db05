"""The 22 queries with parameters drawn at random, as the specification (2.4) draws them.

The texts are those of `query`: the values by which the specification validates an answer are found
in them and replaced. Query 11 keeps the fraction of scale factor 1 here, too.

>>> from random import Random
>>> draw_query(1, Random(0)).splitlines()[-3]
"WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL '114' DAY"
>>> in_schema("SELECT count(*)\\nFROM orders, lineitem", "big").splitlines()[-1]
'FROM big.orders, big.lineitem'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import NamedTuple

from .data import TABLES
from .texts import query

REGIONS: Mapping[str, str] = {
    "ALGERIA": "AFRICA",
    "ARGENTINA": "AMERICA",
    "BRAZIL": "AMERICA",
    "CANADA": "AMERICA",
    "EGYPT": "MIDDLE EAST",
    "ETHIOPIA": "AFRICA",
    "FRANCE": "EUROPE",
    "GERMANY": "EUROPE",
    "INDIA": "ASIA",
    "INDONESIA": "ASIA",
    "IRAN": "MIDDLE EAST",
    "IRAQ": "MIDDLE EAST",
    "JAPAN": "ASIA",
    "JORDAN": "MIDDLE EAST",
    "KENYA": "AFRICA",
    "MOROCCO": "AFRICA",
    "MOZAMBIQUE": "AFRICA",
    "PERU": "AMERICA",
    "CHINA": "ASIA",
    "ROMANIA": "EUROPE",
    "SAUDI ARABIA": "MIDDLE EAST",
    "VIETNAM": "ASIA",
    "RUSSIA": "EUROPE",
    "UNITED KINGDOM": "EUROPE",
    "UNITED STATES": "AMERICA",
}
"""The region of every nation; the country code of a phone is 10 + the nation's place here."""
_NATIONS = tuple(REGIONS)
_SIZES = ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
_FINISHES = ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
_METALS = ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD")
_MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
_PACKED = (
    ("SM", "LG", "MED", "JUMBO", "WRAP"),
    ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"),
)
_WORDS = (
    ("special", "pending", "unusual", "express"),
    ("packages", "requests", "accounts", "deposits"),
)
_COLOUR_NAMES = (
    "almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood "
    "burnished chartreuse chiffon chocolate coral cornflower cornsilk cream cyan dark deep dim "
    "dodger drab firebrick floral forest frosted gainsboro ghost goldenrod green grey honeydew hot "
    "indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon medium metallic "
    "midnight mint misty moccasin navajo navy olive orange orchid pale papaya peach peru pink plum "
    "powder puff purple red rose rosy royal saddle salmon sandy seashell sienna sky slate smoke "
    "snow spring steel tan thistle tomato turquoise violet wheat white yellow"
)
_COLOURS = _COLOUR_NAMES.split()
_YEARS = (1993, 1997)

Values = Mapping[str, object]


class _Rule(NamedTuple):
    """What of a text is replaced (by the same with places in braces), and what goes there."""

    places: Mapping[str, str]
    draw: Callable[[Random], Values]


def draw_query(number: int, rng: Random) -> str:
    """Query 1 to 22 with parameters from `rng`; the same draws give the same text."""
    text, rule = query(number), _RULES[number]
    values = rule.draw(rng)
    wanted = re.compile("|".join(map(re.escape, rule.places)))
    return wanted.sub(lambda found: rule.places[found[0]].format(**values), text)


def in_schema(sql: str, schema: str) -> str:
    """A text of these with its tables in a schema.

    Tables are named only behind FROM and JOIN at the start of a line. Elsewhere `nation` is a
    column of queries 8 and 9.
    """
    return _SOURCES.sub(
        lambda line: line[1] + _TABLE.sub(lambda table: f"{schema}.{table[0]}", line[2]), sql
    )


_SOURCES = re.compile(r"^( *(?:FROM|LEFT OUTER JOIN) )(.*)$", re.MULTILINE)
_TABLE = re.compile(rf"\b(?:{'|'.join(TABLES)})\b")


def _month(rng: Random, first: tuple[int, int], last: tuple[int, int]) -> str:
    """The first day of a month, between two of (year, month)."""
    number = rng.randint(first[0] * 12 + first[1] - 1, last[0] * 12 + last[1] - 1)
    return f"{number // 12}-{number % 12 + 1:02d}-01"


def _year(rng: Random) -> str:
    return f"{rng.randint(*_YEARS)}-01-01"


def _brand(rng: Random) -> str:
    return f"Brand#{rng.randint(1, 5)}{rng.randint(1, 5)}"


def _joined(rng: Random, *syllables: Sequence[str]) -> str:
    return " ".join(rng.choice(words) for words in syllables)


def _q07(rng: Random) -> Values:
    first, second = rng.sample(_NATIONS, 2)
    return {"first": first, "second": second}


def _q08(rng: Random) -> Values:
    nation = rng.choice(_NATIONS)
    kind = _joined(rng, _SIZES, _FINISHES, _METALS)
    return {"nation": nation, "region": REGIONS[nation], "type": kind}


def _q12(rng: Random) -> Values:
    first, second = rng.sample(_MODES, 2)
    return {"first": first, "second": second, "date": _year(rng)}


def _q16(rng: Random) -> Values:
    sizes = ", ".join(map(str, rng.sample(range(1, 51), 8)))
    return {"brand": _brand(rng), "type": _joined(rng, _SIZES, _FINISHES), "sizes": sizes}


def _q19(rng: Random) -> Values:
    quantities = {"q1": rng.randint(1, 10), "q2": rng.randint(10, 20), "q3": rng.randint(20, 30)}
    return quantities | {"b1": _brand(rng), "b2": _brand(rng), "b3": _brand(rng)}


def _q22(rng: Random) -> Values:
    codes = rng.sample(range(10, 10 + len(_NATIONS)), 7)
    return {"codes": ", ".join(f"'{code}'" for code in codes)}


_RULES: Mapping[int, _Rule] = {
    1: _Rule({"'90' DAY": "'{days}' DAY"}, lambda rng: {"days": rng.randint(60, 120)}),
    2: _Rule(
        {"p_size = 15": "p_size = {size}", "%BRASS": "%{metal}", "'EUROPE'": "'{region}'"},
        lambda rng: {
            "size": rng.randint(1, 50),
            "metal": rng.choice(_METALS),
            "region": rng.choice(sorted(set(REGIONS.values()))),
        },
    ),
    3: _Rule(
        {"'BUILDING'": "'{segment}'", "1995-03-15": "1995-03-{day:02d}"},
        lambda rng: {"segment": rng.choice(_SEGMENTS), "day": rng.randint(1, 31)},
    ),
    4: _Rule({"1993-07-01": "{date}"}, lambda rng: {"date": _month(rng, (1993, 1), (1997, 10))}),
    5: _Rule(
        {"'ASIA'": "'{region}'", "1994-01-01": "{date}"},
        lambda rng: {"region": rng.choice(sorted(set(REGIONS.values()))), "date": _year(rng)},
    ),
    6: _Rule(
        {"1994-01-01": "{date}", "0.06": "0.0{cents}", "l_quantity < 24": "l_quantity < {most}"},
        lambda rng: {"date": _year(rng), "cents": rng.randint(2, 9), "most": rng.randint(24, 25)},
    ),
    7: _Rule({"FRANCE": "{first}", "GERMANY": "{second}"}, _q07),
    8: _Rule(
        {"BRAZIL": "{nation}", "AMERICA": "{region}", "ECONOMY ANODIZED STEEL": "{type}"}, _q08
    ),
    9: _Rule({"%green%": "%{colour}%"}, lambda rng: {"colour": rng.choice(_COLOURS)}),
    10: _Rule({"1993-10-01": "{date}"}, lambda rng: {"date": _month(rng, (1993, 2), (1995, 1))}),
    11: _Rule({"GERMANY": "{nation}"}, lambda rng: {"nation": rng.choice(_NATIONS)}),
    12: _Rule({"'MAIL', 'SHIP'": "'{first}', '{second}'", "1994-01-01": "{date}"}, _q12),
    13: _Rule(
        {"%special%requests%": "%{first}%{second}%"},
        lambda rng: {"first": rng.choice(_WORDS[0]), "second": rng.choice(_WORDS[1])},
    ),
    14: _Rule({"1995-09-01": "{date}"}, lambda rng: {"date": _month(rng, (1993, 1), (1997, 12))}),
    15: _Rule({"1996-01-01": "{date}"}, lambda rng: {"date": _month(rng, (1993, 1), (1997, 10))}),
    16: _Rule(
        {
            "Brand#45": "{brand}",
            "MEDIUM POLISHED": "{type}",
            "49, 14, 23, 45, 19, 3, 36, 9": "{sizes}",
        },
        _q16,
    ),
    17: _Rule(
        {"Brand#23": "{brand}", "MED BOX": "{container}"},
        lambda rng: {"brand": _brand(rng), "container": _joined(rng, *_PACKED)},
    ),
    18: _Rule({"> 300": "> {quantity}"}, lambda rng: {"quantity": rng.randint(312, 315)}),
    19: _Rule(
        {
            "l_quantity >= 1 AND l_quantity <= 1 +": "l_quantity >= {q1} AND l_quantity <= {q1} +",
            ">= 10 AND l_quantity <= 10 +": ">= {q2} AND l_quantity <= {q2} +",
            ">= 20 AND l_quantity <= 20 +": ">= {q3} AND l_quantity <= {q3} +",
            "Brand#12": "{b1}",
            "Brand#23": "{b2}",
            "Brand#34": "{b3}",
        },
        _q19,
    ),
    20: _Rule(
        {"forest%": "{colour}%", "1994-01-01": "{date}", "CANADA": "{nation}"},
        lambda rng: {
            "colour": rng.choice(_COLOURS),
            "date": _year(rng),
            "nation": rng.choice(_NATIONS),
        },
    ),
    21: _Rule({"SAUDI ARABIA": "{nation}"}, lambda rng: {"nation": rng.choice(_NATIONS)}),
    22: _Rule({"'13', '31', '23', '29', '30', '18', '17'": "{codes}"}, _q22),
}
