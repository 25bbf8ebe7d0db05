"""Puts the helpers of the tests on the path; a slow machine is no reason for a test to fail."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "core"), str(HERE / "sim")]

# Whoever is started in the background of a script ignores Ctrl-C, and so do the programs it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any-machine")
