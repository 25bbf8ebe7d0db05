"""Orders that drift with time decide as their papers' rules say, applied to all candidates."""

from __future__ import annotations

import pytest

from bench.exactness import RULES, closed_queue


@pytest.mark.parametrize("profile", RULES)
@pytest.mark.parametrize("candidates", [39, 100])
def test_every_decision_is_the_one_of_the_rule(profile: str, candidates: int):
    outcome = closed_queue(profile, candidates, launches=600)
    assert outcome.decisions >= 600
    assert outcome.share == 0.0
