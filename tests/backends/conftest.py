"""Plans of many small tasks, and an end to every hang."""

from __future__ import annotations

from functools import partial

import hangs
import pytest

import queryard.sql.planner

from .limits import LIMIT_S, hard_limit


@pytest.fixture(autouse=True)
def no_hang(request):
    """A hang ends the run with all stacks, instead of waiting for ever."""
    marker = request.node.get_closest_marker("limit")
    limit_s = LIMIT_S if marker is None else marker.args[0]
    # A thread that never lets go of the interpreter keeps the first limit from acting.
    with hangs.ended_after(limit_s + 10.0), hard_limit(limit_s):
        yield


@pytest.fixture
def cut_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task per row group, and all joins shuffled."""
    plan = queryard.sql.planner.plan_staged
    small = partial(plan, target_bytes=1, partitions=3, broadcast_bytes=0)
    monkeypatch.setattr(queryard.sql.planner, "plan_staged", lambda *a, **k: small(*a))
