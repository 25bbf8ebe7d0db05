"""What a comparison showed, in words."""

from __future__ import annotations

from collections.abc import Sequence

from .readable import seconds
from .scores import Scores

BASELINE = "fifo"


def verdict(rows: Sequence[Scores], references: Sequence[Scores] = ()) -> str:
    """One to three sentences: who answers fastest, who keeps deadlines, how far the ideals are.

    Ratios are to `fifo` where it took part, else to the slowest.
    """
    sentences = [_response(rows, references), _deadlines(rows), _failures(rows)]
    return " ".join(filter(None, sentences))


def _response(rows: Sequence[Scores], references: Sequence[Scores]) -> str:
    timed = [(row.mean_response_s, row) for row in rows if row.mean_response_s is not None]
    if not timed:
        return "No query gave a result."
    best_s = min(value_s for value_s, _ in timed)
    if len(timed) == 1:
        sentence = f"{timed[0][1].name} answers in {seconds(best_s)} s on average"
    else:
        slowest_s, slowest = max(timed, key=lambda pair: pair[0])
        if seconds(slowest_s) == seconds(best_s):
            sentence = f"All answer in {seconds(best_s)} s on average"
        else:
            best = [row.name for value_s, row in timed if seconds(value_s) == seconds(best_s)]
            base_s, base = next((p for p in timed if p[1].name == BASELINE), (slowest_s, slowest))
            if base.name in best:
                base_s, base = slowest_s, slowest
            sentence = (
                f"{_listed(best)} {'has' if len(best) == 1 else 'have'} the lowest mean response: "
                f"{seconds(best_s)} s, {best_s / base_s:.2f} of {base.name}"
            )
    ideals = [
        f"{row.name} {seconds(row.mean_response_s)} s"
        for row in references
        if row.mean_response_s is not None
    ]
    return f"{sentence} ({', '.join(ideals)})." if ideals else f"{sentence}."


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
    return f"{_listed(best)} {'misses' if len(best) == 1 else 'miss'} {ending}"


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
