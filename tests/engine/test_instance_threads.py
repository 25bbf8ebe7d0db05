"""Instances have no threads of their own, unless they wait for other machines."""

from __future__ import annotations

import os
import sys

import pytest

from queryard.engine.instance import FETCHING_THREADS, Instance

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


def test_an_instance_has_no_threads_until_it_reads_from_afar(tmp_path):
    first = Instance(2, 64 << 20, tmp_path)  # libraries start theirs with it
    before = threads()
    instances = [Instance(2, 64 << 20, tmp_path) for _ in range(3)]
    for each in instances:
        each.expect("SELECT 'a:b' AS c FROM 'd.parquet'")
    assert threads() == before
    for _ in range(2):
        instances[0].expect("FROM 'https://example.org/a.parquet'")
        assert threads() == before + FETCHING_THREADS
    for each in (first, *instances):
        each.close()
    assert threads() <= before
