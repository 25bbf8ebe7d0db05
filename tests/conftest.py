"""Puts helpers of tests, and `bench`, on the path; a slow machine is no reason to fail a test."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "core"), str(HERE / "sim"), str(HERE.parent)]

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


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("short" if config.option.markexpr == "not long" else "long")
