"""What a comparison showed, in words."""

from __future__ import annotations

from collections.abc import Sequence

from queryard.core import readable
from queryard.core.readable import seconds, several

from .scores import ERROR_CUT, RECORDED, Scores

BASELINE = "fifo"


def verdict(
    rows: Sequence[Scores], references: Sequence[Scores] = (), baseline: str = BASELINE
) -> str:
    """A few sentences: the policy with the fastest answers, the deadlines missed, the ideals.

    Ratios are to the baseline where it took part, else to the slowest. Where all queries are
    online, what counts is not the exact answer but how soon a good one is there.
    """
    all_online = all(row.queries and row.online == row.queries for row in rows)
    recorded = [row for row in references if row.name == RECORDED]
    references = [row for row in references if row.name != RECORDED]
    sentences = [
        *(_recorded(row, rows) for row in recorded),
        _idle(rows) if recorded else "",
        "" if all_online else _response(rows, references, baseline),
        _error(rows, baseline),
        _ahead(rows, references),
        _deadlines(rows),
        _failures(rows),
    ]
    return " ".join(filter(None, sentences))


def _recorded(recorded: Scores, rows: Sequence[Scores]) -> str:
    """What was, and what each policy would have made of it."""
    missing = any(row.queries > recorded.queries for row in rows)
    others = [
        f"under {row.name} {seconds(row.mean_response_s)} s"
        + (f" (of {several(row.queries - row.unfinished, 'query')})" if missing else "")
        for row in rows
        if row.mean_response_s is not None
    ]
    was = f"As recorded, mean response was {seconds(recorded.mean_response_s)} s"
    if missing:
        was += f" (of {several(recorded.queries, 'query')} with a known end)"
    return f"{'; '.join([was, ', '.join(others)])}." if others else f"{was}."


def _idle(rows: Sequence[Scores]) -> str:
    """That policies have nothing to decide, where all queries take as long as they do alone."""
    if not rows or {readable.ratio(row.mean_slowdown) for row in rows} != {"1.00"}:
        return ""
    never = {readable.ratio(row.max_slowdown) for row in rows} == {"1.00"}
    waits = "No query ever waits for another" if never else "Queries hardly ever wait"
    can = "cannot differ" if never else "can hardly differ"
    order = "" if _alike(rows) else ", but by the order of a query's own jobs"
    smaller = "; try a smaller cluster (--nodes, or a --trace load= of 1 or more)"
    advice = smaller if rows[0].queries > 1 else ""
    return (
        f"{waits}, so that policies {can} here{order}, and what was recorded differs for other "
        f"reasons{advice}."
    )


def _alike(rows: Sequence[Scores]) -> bool:
    """Whether all have the same mean response, as far as it is shown."""
    return len({readable.seconds(row.mean_response_s) for row in rows}) == 1


def _response(rows: Sequence[Scores], references: Sequence[Scores], baseline: str) -> str:
    timed = [(row.mean_response_s, row) for row in rows if row.mean_response_s is not None]
    if not timed:
        return "No query gave a result."
    if len(timed) == 1:
        sentence = f"{timed[0][1].name} answers in {seconds(timed[0][0])} s on average"
    elif found := _lowest(timed, baseline):
        best, ratio = found
        sentence = f"{_subject(best, 'has', 'have')} the lowest mean response: {ratio}"
    else:
        sentence = f"All answer in {seconds(timed[0][0])} s on average"
    ideals = [
        f"{row.name} {seconds(row.mean_response_s)} s"
        for row in references
        if row.mean_response_s is not None
    ]
    return f"{sentence} ({', '.join(ideals)})." if ideals else f"{sentence}."


def _error(rows: Sequence[Scores], baseline: str) -> str:
    timed = [(row.mean_error_cut_s, row) for row in rows if row.mean_error_cut_s is not None]
    if not timed:
        return ""
    online = timed[0][1].online
    error = f"the error of the {online} online queries" if online > 1 else "the online error"
    cut = f"{error} by {ERROR_CUT:.0%}"
    if len(timed) == 1:
        return f"{timed[0][1].name} reduces {cut} in {seconds(timed[0][0])} s on average."
    if found := _lowest(timed, baseline):
        best, ratio = found
        return f"{_subject(best, 'reduces', 'reduce')} {cut} soonest: in {ratio}."
    return f"All reduce {cut} in {seconds(timed[0][0])} s on average."


def _lowest(timed: Sequence[tuple[float, Scores]], baseline: str) -> tuple[list[str], str] | None:
    """The fastest policies, and "41.3 s, 0.31 of fifo"; None if all times read the same."""
    best_s = min(value_s for value_s, _ in timed)
    slowest_s, slowest = max(timed, key=lambda pair: pair[0])
    if seconds(slowest_s) == seconds(best_s):
        return None
    best = [row.name for value_s, row in timed if seconds(value_s) == seconds(best_s)]
    base_s, base = next((pair for pair in timed if pair[1].name == baseline), (slowest_s, slowest))
    if base.name in best:
        base_s, base = slowest_s, slowest
    return best, f"{seconds(best_s)} s, {best_s / base_s:.2f} of {base.name}"


def _ahead(rows: Sequence[Scores], references: Sequence[Scores]) -> str:
    """How a policy can have a lower mean response than every ideal: by sharing scans."""
    ideals = {row.mean_response_s: row.name for row in references if row.mean_response_s}
    if not ideals:
        return ""
    least_s = min(ideals)
    means_s = {row.name: row.mean_response_s for row in rows if row.scan_bytes_saved}
    ahead = [name for name, mean_s in means_s.items() if mean_s is not None and mean_s < least_s]
    if not ahead:
        return ""
    return f"{_subject(ahead, 'is', 'are')} ahead of {ideals[least_s]}, which shares no scans."


def _deadlines(rows: Sequence[Scores]) -> str:
    judged = [(row.deadlines_missed, row) for row in rows if row.deadlines_missed is not None]
    if not judged:
        return ""
    least = min(missed for missed, _ in judged)
    most, worst = max(judged, key=lambda pair: pair[0])
    of_all = f"{least} of {worst.deadlines}"
    if len(judged) == 1:
        return f"It misses {of_all} deadlines."
    if least == most:
        return f"All miss {of_all} deadlines."
    best = [row.name for missed, row in judged if missed == least]
    ending = f"the fewest deadlines: {of_all}; {worst.name} the most: {most}."
    return f"{_subject(best, 'misses', 'miss')} {ending}"


def _subject(names: Sequence[str], one: str, several: str) -> str:
    """Names and the verb that goes with their number."""
    return f"{_listed(names)} {one if len(names) == 1 else several}"


def _listed(names: Sequence[str]) -> str:
    """Names in a sentence; the rest of a long list are only counted.

    >>> _listed(["a"]), _listed(["a", "b", "c"]), _listed(["a", "b", "c", "d", "e"])
    ('a', 'a, b and c', 'a, b and 3 others')
    """
    if len(names) == 1:
        return names[0]
    if len(names) > 4:
        return f"{', '.join(names[:2])} and {len(names) - 2} others"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _failures(rows: Sequence[Scores]) -> str:
    left = [f"{row.name} {row.unfinished}" for row in rows if row.unfinished]
    return f"Queries without a result: {', '.join(left)}." if left else ""
