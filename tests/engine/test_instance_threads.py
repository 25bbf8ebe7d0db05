"""Instances have no threads of their own, unless they wait for other machines."""

from __future__ import annotations

import subprocess
import sys

import pytest

from queryard.engine.instances.instance import FETCHING_THREADS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")


COUNTED = """
import os, sys
from pathlib import Path
from queryard.engine.instances.instance import Instance

def threads():
    return len(os.listdir("/proc/self/task"))

folder = Path(sys.argv[1])
first = Instance(2, 64 << 20, folder)  # libraries start theirs with it
counts = [threads()]
instances = [Instance(2, 64 << 20, folder) for _ in range(3)]
for each in instances:
    each.expect("SELECT 'a:b' AS c FROM 'd.parquet'")
counts.append(threads())
for _ in range(2):
    instances[0].expect("FROM 'https://example.org/a.parquet'")
    counts.append(threads())
for each in (first, *instances):
    each.close()
counts.append(threads())
print(*counts)
"""


def test_an_instance_has_no_threads_until_it_reads_from_afar(tmp_path):
    # In a process of its own, where no thread of another test comes or goes.
    command = [sys.executable, "-c", COUNTED, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    before, idle, once, twice, after = map(int, ran.stdout.split())
    assert idle == before
    assert (once, twice) == (before + FETCHING_THREADS,) * 2
    assert after <= before
