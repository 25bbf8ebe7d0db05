"""Puts the helpers of the tests on the path, so that every folder can use them."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "core"), str(HERE / "sim")]
