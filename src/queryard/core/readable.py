"""Numbers and texts as people read them: of numbers three digits or so, no more.

`amounts` is the other direction: times and sizes as people write them.
"""

from __future__ import annotations

MISSING = "–"
UNSEEN = "\ufffd"


def printable(text: str) -> str:
    r"""A text of others as a terminal may be given it: what is no character to see is replaced.

    An escape sequence could move the cursor, or change what was printed before. Lines stay lines.

    >>> print(printable("SELECT 1 \x1b[2J\u202e\n\t-- caf\u00e9"))
    SELECT 1 �[2J�
     -- café
    """
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() or sign == "\n" else " " if sign.isspace() else UNSEEN
        for sign in text
    )


def several(number: float, what: str) -> str:
    """So many of something.

    >>> several(1.2, "row"), several(0, "row"), several(1234, "map task"), several(2, "query")
    ('1 row', '0 rows', '1,234 map tasks', '2 queries')
    """
    text = f"{number:,.0f}"
    if text == "1":
        return f"1 {what}"
    return f"{text} {what[:-1]}ies" if what.endswith("y") else f"{text} {what}s"


def seconds(value: float | None) -> str:
    """Seconds, without the unit.

    >>> seconds(3.14159), seconds(41.26), seconds(12345.6), seconds(None)
    ('3.14', '41.3', '12,346', '–')
    """
    return MISSING if value is None else _short(value)


def ratio(value: float | None) -> str:
    """A factor such as a slowdown.

    >>> ratio(1.0), ratio(13.52)
    ('1.00', '13.5')
    """
    return MISSING if value is None else _short(value)


def score(value: float | None) -> str:
    """What an objective comes to, which may be of any size.

    >>> score(20813.2), score(1.256), score(0.00123)
    ('20,813', '1.26', '0.00123')
    """
    if value is None or abs(value) >= 1 or not value:
        return ratio(value)
    return f"{value:.3g}"


def percent(value: float | None) -> str:
    """A share of 1.

    >>> percent(0.875), percent(1.0)
    ('87.5 %', '100.0 %')
    """
    return MISSING if value is None else f"{hundredths(value)} %"


def hundredths(value: float | None) -> str:
    """A share of 1 where the title says "%"."""
    return MISSING if value is None else f"{value * 100:.1f}"


def index(value: float | None) -> str:
    """A number between 0 and 1, such as Jain's."""
    return MISSING if value is None else f"{value:.3f}"


def count(value: int | None, of: int | None = None) -> str:
    """A count, of so many.

    >>> count(3, 30), count(12345)
    ('3 of 30', '12,345')
    """
    if value is None:
        return MISSING
    return f"{value:,}" if of is None else f"{value:,} of {of:,}"


def gigabytes(value: float | None) -> str:
    return MISSING if value is None else f"{value / 1e9:,.1f}"


def _short(value: float) -> str:
    for limit, digits in ((10, 2), (100, 1)):
        # Judged as it will be printed, so that 9.999 is 10.0 and not 10.00.
        if abs(round(value, digits)) < limit:
            return f"{value:.{digits}f}"
    return f"{value:,.0f}"


def size(value: float | None) -> str:
    """Bytes.

    >>> size(512), size(1536), size(2_345_678), size(12e9), size(None)
    ('512 B', '1.5 kB', '2.3 MB', '12.0 GB', '–')
    """
    if value is None:
        return MISSING
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= factor:
            return f"{value / factor:,.1f} {unit}"
    return f"{value:,.0f} B"
