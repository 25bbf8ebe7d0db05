"""Parts that remember something: a fork goes its own way and leaves the original alone."""

from __future__ import annotations

import pytest
from kernel_driver import Yard

from queryard.core.model import Job, Node, Phase, Split, Table

NODES = [Node("a", 2), Node("b", 2), Node("c", 1)]
TABLE = Table("t", tuple(Split(1.0, ("a",)) for _ in range(6)))


def busy(profile: object) -> Yard:
    yard = Yard(profile, NODES, [TABLE])
    for number in range(12):
        jobs = [
            (Job("left", scans=("t",), map=Phase(6)), 3.0 + number % 4),
            (Job("right", scans=("t",), map=Phase(6), reduce=Phase(2)), 2.0, 1.5),
            (Job("join", upstream=("left", "right"), map=Phase(3)), 1.0 + number % 3),
        ]
        deadline_s = 40.0 * number if number % 3 else None
        yard.submit(f"q{number}", jobs, 5.0 * number, deadline_s=deadline_s)
    return yard


@pytest.mark.parametrize(
    "profile",
    [
        "tls",
        "srtf",
        "largest-slowdown",
        "locf",
        "edls-pr",
        "tenant-tls",
        {"order": "qef", "provisioning": {"name": "dlx", "period_s": 7.0, "maximum": 3}},
        {"order": "edf", "provisioning": {"name": "-x", "period_s": 7.0, "minimum": 2}},
    ],
    ids=str,
)
def test_a_fork_goes_on_as_the_original_would_and_changes_nothing_in_it(profile: object):
    undisturbed = busy(profile).run()
    original = busy(profile).run(31.0)
    before = len(original.launches)
    twin = original.fork().run()
    assert len(original.launches) == before
    original.run()
    assert original.launches == undisturbed.launches
    assert before < len(twin.launches)
    assert twin.launches == original.launches
    assert twin.ends == original.ends == undisturbed.ends
    assert len(original.ends) == 12
