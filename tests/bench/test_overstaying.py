"""The clairvoyant scheduler whose slots overstay, worked out on paper."""

from __future__ import annotations

import pytest

from bench.live.overstaying import clairvoyant, earliest_deadline, least_laxity, shortest
from queryard.load import Alone, Request

ALONE = {"long": Alone(10.0, 20.0), "short": Alone(1.0, 2.0), "serial": Alone(4.0, 4.0)}


def ask(name: str, time_s: float, template: str, factor: float | None = None) -> Request:
    return Request(name, time_s, "default", template, "", deadline_factor=factor)


def test_without_steps_that_overstay_it_is_shortest_remaining_first():
    asked = [ask("a", 0.0, "long"), ask("b", 1.0, "short"), ask("c", 1.5, "serial")]
    # The serial query has one slot from 2 to 6, the long one the other.
    assert clairvoyant(asked, ALONE, 2, shortest, {}) == pytest.approx(
        {"a": 13.0, "b": 1.0, "c": 4.5}
    )


def test_one_slot_that_overstays_is_replaced_and_others_are_waited_for():
    asked = [ask("a", 0.0, "long"), ask("b", 1.0, "short")]
    # Three threads share two cores for 0.3 s, in which the short query does 0.2 of its 2 s.
    found = clairvoyant(asked, ALONE, 2, shortest, {"long": [0.3]})
    assert found["b"] == pytest.approx(0.3 + 1.8 / 2)
    assert found["a"] == pytest.approx(11.0), "no work is lost"


@pytest.mark.parametrize("rule", [earliest_deadline, least_laxity])
def test_a_deadline_that_cannot_be_met_delays_no_other(rule):
    asked = [ask("hopeless", 0.0, "long", 0.9), ask("due", 0.0, "short", 1.0)]
    found = clairvoyant(asked, ALONE, 2, rule, {})
    assert found == pytest.approx({"hopeless": 11.0, "due": 1.0})
