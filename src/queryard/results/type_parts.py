"""What a nested SQL type is made of, from its name."""

from __future__ import annotations

import re
from functools import lru_cache

_SUFFIX = re.compile(r"\[\d*\]$")
_MADE_OF = re.compile(r"(STRUCT|UNION|MAP)\((.*)\)", re.DOTALL)
_MEMBER = re.compile(r'("(?:[^"]|"")*"|\S+) (.*)', re.DOTALL)
_TOKEN = re.compile(r"""[^"'(),]+|"(?:[^"]|"")*"|'(?:[^']|'')*'|[(),]""")


@lru_cache(maxsize=1024)
def parts_of(sql_type: str) -> tuple[str, ...]:
    """The types inside: of a list one, of a map two, else those of its members.

    >>> parts_of("UUID[3][]"), parts_of("MAP(VARCHAR, DECIMAL(9,2)[])"), parts_of("DECIMAL(9,2)")
    (('UUID[3]',), ('VARCHAR', 'DECIMAL(9,2)[]'), ())
    >>> parts_of('''STRUCT("a, (b" BIT, c ENUM('x)', 'y'))''')
    ('BIT', "ENUM('x)', 'y')")
    """
    if _SUFFIX.search(sql_type):
        return (_SUFFIX.sub("", sql_type),)
    found = _MADE_OF.fullmatch(sql_type)
    if found is None:
        return ()
    parts = _split(found[2])
    return tuple(parts if found[1] == "MAP" else (_without_name(part) for part in parts))


def is_unnamed(sql_type: str) -> bool:
    """Whether it is a struct whose members have no names: a tuple, as `row(1, 2)`.

    >>> is_unnamed('STRUCT("" INTEGER, "" DATE)'), is_unnamed("STRUCT(a INTEGER)")
    (True, False)
    """
    return sql_type.startswith('STRUCT("" ') and not _SUFFIX.search(sql_type)


def _without_name(member: str) -> str:
    found = _MEMBER.fullmatch(member)
    return found[2] if found else ""


def _split(text: str) -> list[str]:
    """The parts between commas that are within no parentheses and no quotes."""
    found, depth = [""], 0
    for token in _TOKEN.findall(text):
        depth += (token == "(") - (token == ")")
        if token == "," and not depth:
            found.append("")
        else:
            found[-1] += token
    return [part.strip() for part in found]
