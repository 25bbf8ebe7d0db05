"""The portfolio without one of its mechanisms at a time."""

from __future__ import annotations

import pytest

from queryard.portfolio import Selector, selection
from research.ablation import FULL, VARIANTS, Variant, table


def test_scores_are_shown_over_those_of_the_whole_portfolio() -> None:
    shown = table(
        {
            FULL: {"one": [10.0, 20.0], "two": [5.0, 5.0]},
            "worse": {"one": [20.0, 40.0], "two": [10.0, 10.0]},
            "on one only": {"one": [10.0, 20.0]},
        }
    )
    assert shown.columns == ("portfolio", "all runs", "one", "two")
    assert shown.rows[0] == (FULL, "1.00 (1.00 to 1.00)", "1.00", "1.00")
    assert shown.rows[1] == ("worse", "2.00 (2.00 to 2.00)", "2.00", "2.00")
    assert shown.rows[2] == ("on one only", "1.00 (1.00 to 1.00)", "1.00", "")


def test_a_variant_is_in_place_only_while_it_runs() -> None:
    best, burst = Selector.best, selection.BURST
    for variant in VARIANTS.values():
        with variant.in_place():
            for owner, name, value in variant.patches:
                assert getattr(owner, name) is value
        assert (Selector.best, selection.BURST) == (best, burst)


def test_a_part_that_does_not_exist_cannot_be_replaced() -> None:
    with pytest.raises(AttributeError), Variant(patches=((selection, "GONE", 1),)).in_place():
        pass
