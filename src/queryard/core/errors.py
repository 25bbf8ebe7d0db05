"""Errors a user can act on: each names the thing, the value and the remedy."""

from __future__ import annotations

from collections.abc import Iterable


class QueryardError(Exception):
    """Base of every error Queryard raises for a mistake in its input."""


class InvalidModel(QueryardError):
    """A node, table, job or query that cannot exist (a cycle, a negative size …)."""


class InvalidProfile(QueryardError):
    """A profile that names an unknown part or gives a part a wrong setting."""


class InvalidEvent(QueryardError):
    """An event that cannot have happened in the state it was fed to."""


class InvalidRecord(QueryardError):
    """A log or a workload file that cannot be read."""


def unknown_name(what: str, name: object, valid: Iterable[str]) -> str:
    """The message for a wrong name: what was given, a near name, and all valid ones.

    >>> unknown_name("policy", "fiar", ["fair", "fifo"])
    "unknown policy 'fiar'; did you mean 'fair'? (valid: fair, fifo)"
    >>> unknown_name("policy", "best", ["fair", "fifo"])
    "unknown policy 'best' (valid: fair, fifo)"
    """
    names = sorted(valid)
    near = near_name(str(name), names)
    hint = f"; did you mean {near!r}?" if near is not None else ""
    return f"unknown {what} {name!r}{hint} (valid: {', '.join(names) or 'none'})"


def near_name(name: str, valid: Iterable[str]) -> str | None:
    """The valid name that was probably meant, if one is near: a slip or two, or its beginning.

    One slip per three letters is near: a letter too many, too few, another one, or two swapped.

    >>> near_name("ordres", ["orders", "parts"]), near_name("line", ["lineitem", "orders"])
    ('orders', 'lineitem')
    >>> near_name("cat", ["dog", "cattle", "catalog"]), near_name("sales", ["tables"])
    (None, None)
    """
    folded = name.lower()
    names = sorted(valid)
    found = [(_slips(folded, other.lower()), other) for other in names]
    slips, nearest = min(found, default=(len(name), ""))
    if slips <= max(1, len(name) // 3) and slips < min(len(name), len(nearest)) - slips:
        return nearest
    longer = [other for other in names if len(name) > 2 and other.lower().startswith(folded)]
    return longer[0] if len(longer) == 1 else None


def _slips(one: str, other: str) -> int:
    """The optimal string alignment distance: insertions, deletions, changes and swaps."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(other, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]
