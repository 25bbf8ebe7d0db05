"""Puts helpers of tests, and `bench`, on the path; a slow machine is no reason to fail a test.

And an end to every hang.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "core"), str(HERE / "sim"), str(HERE.parent)]

import hangs  # noqa: E402 - on the path from here on

# A process started in the background of a script ignores Ctrl-C, and so do the programs it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Hypothesis draws fewer examples where the long forms of tests are left out, and always the same:
# the short form says whether a change broke something; the long form looks for the unknown.
for profile, examples in (("short", 30), ("long", 100)):
    settings.register_profile(
        profile,
        max_examples=examples,
        deadline=None,
        derandomize=profile == "short",
        suppress_health_check=[HealthCheck.too_slow],
    )


# After so many seconds a test that shows no end is ended, with its process.
SHORT_S, LONG_S = 300.0, 3600.0


def pytest_configure(config: pytest.Config) -> None:
    hangs.keep_output()
    settings.load_profile("short" if config.option.markexpr == "not long" else "long")


@pytest.fixture(autouse=True)
def no_hang(request):
    """A hang ends the run with all stacks, instead of waiting for ever."""
    with hangs.ended_after(LONG_S if request.node.get_closest_marker("long") else SHORT_S):
        yield
