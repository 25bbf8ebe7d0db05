"""The order of what happens in one instant of simulated time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# The cluster changes first, then work ends, then queries arrive, then timers fire.
CLUSTER, WORK, USERS, TIMERS = range(4)

# Post something that will happen: (time, one of the above, what).
Post = Callable[[float, int, Any], None]
