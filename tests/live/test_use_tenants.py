"""Tenants, limits and the policy of a session change while it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

import queryard
from queryard import QueryardError, Refused


def test_other_tenants_limits_and_policy_hold_from_now_on(tmp_path: Path):
    (tmp_path / "t.csv").write_text("n\n1\n")
    with queryard.connect(tmp_path, slots=1, memory="300 MB", tenants={"web": {"weight": 2}}) as qy:
        before = qy.submit("SELECT count(*) FROM range(30000000)", tenant="web")
        qy.use_tenants(
            {"web": {"limits": {"waiting": 0}}, "etl": {"guarantee": 0.5}}, {"waiting": 7}, "fair"
        )
        with pytest.raises(Refused, match="tenant 'web': the limit of waiting queries is 0"):
            qy.sql("SELECT 1", tenant="web")
        assert qy.sql("SELECT 1", tenant="etl").fetchall() == [(1,)]
        assert before.result().fetchall() == [(30000000,)]
        shared = qy.profile
        with pytest.raises(QueryardError, match="guarantees"):
            qy.use_tenants({"a": {"guarantee": 0.7}, "b": {"guarantee": 0.7}})
        with pytest.raises(Refused):
            qy.sql("SELECT 1", tenant="web")
        assert qy.profile == shared
        qy.use_tenants(None)
        assert qy.sql("SELECT 1", tenant="web").fetchall() == [(1,)]
        assert qy.profile["name"] == shared["name"] == "fair"
