"""What a worker has found of each candidate, whatever it answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from queryard.portfolio.present import Untried
from queryard.portfolio.scores import Objective
from queryard.portfolio.trials import Trial


class Verdict(NamedTuple):
    """The metrics of each candidate that was tried, and what is wrong with the others."""

    trials: Mapping[str, Trial]
    vectors: Mapping[str, Mapping[str, float]]
    # The metrics of the same queries, had all of them ended when the question was asked.
    lost: Mapping[str, float]
    dropped: Mapping[str, str]


def verdict(objective: Objective, names: Sequence[str], found: object, asked_s: float) -> Verdict:
    """What a worker has found, whatever it is; it may take a moment with a long queue."""
    trials: dict[str, Trial] = {}
    vectors: dict[str, dict[str, float]] = {}
    dropped = dict.fromkeys(names, "it was not tried")
    for each in found if isinstance(found, list) else ():
        if isinstance(each, Untried) and each.name in dropped:
            dropped[each.name] = each.reason
        elif isinstance(each, Trial) and each.name in dropped:
            vector = objective.vector(each.schedule)
            if all(math.isfinite(value) and value >= 0 for value in vector.values()):
                trials[each.name], vectors[each.name] = each, vector
                del dropped[each.name]
            else:
                dropped[each.name] = "its schedule has no score"
    one = next(iter(trials.values()), None)
    lost = {} if one is None else objective.vector(one.schedule.ended_by(asked_s))
    return Verdict(trials, vectors, lost, dropped)
