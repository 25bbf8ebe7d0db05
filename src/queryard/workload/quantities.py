"""Counts as people read them."""

from __future__ import annotations


def several(number: float, what: str) -> str:
    """So many of something.

    >>> several(1.2, "row"), several(0, "row"), several(1234, "map task"), several(2, "query")
    ('1 row', '0 rows', '1,234 map tasks', '2 queries')
    """
    text = f"{number:,.0f}"
    if text == "1":
        return f"1 {what}"
    return f"{text} {what[:-1]}ies" if what.endswith("y") else f"{text} {what}s"
