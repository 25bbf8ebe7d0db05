"""An online query names the sample that it goes round."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

import queryard
from queryard.core.model import Split
from queryard.engine.sampling import Sample
from queryard.live.work.online import OnlineWork


def work(sample: Any) -> OnlineWork:
    return OnlineWork("q", cast(Any, None), 2, 3, 0, cast(Sample, sample))


def test_the_job_scans_its_sample_part_by_part():
    parts = [SimpleNamespace(bytes=5.0), SimpleNamespace(bytes=7.0)]
    sample = SimpleNamespace(table="t", kind="random blocks", fingerprint="f", parts=parts)
    (job,) = work(sample).jobs()
    assert job.scans == ("t (random blocks)",)
    ((name, (fingerprint, table)),) = work(sample).tables().items()
    assert (name, fingerprint, table.name) == (job.scans[0], "f", name)
    assert table.splits == (Split(5.0), Split(7.0))


def test_a_program_scans_nothing():
    (job,) = work(None).jobs()
    assert job.scans == ()


def test_answers_are_exact_at_the_end_of_rounds(tmp_path: Any):
    duckdb = pytest.importorskip("duckdb")
    file = tmp_path / "t.parquet"
    duckdb.sql(f"COPY (SELECT i AS x FROM range(400000) r(i)) TO '{file}' (ROW_GROUP_SIZE 20000)")
    with queryard.connect(tmp_path, profile="online-rounds") as session:
        answers = list(session.online("SELECT sum(x) AS total FROM t"))
        assert answers[-1].exact
        assert answers[-1].rows() == [(400000 * 399999 // 2,)]
