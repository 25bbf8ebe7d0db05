"""However a process ends: it ends, and the next start removes what it left."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from long_forms import some_of
from waiting import wait_until

import queryard

PREAMBLE = """
import sys, threading, time
import queryard
qy = queryard.connect(sys.argv[1], slots=2, memory="200 MB", temp=sys.argv[2])
LONG = "SELECT count(*), sum(hash(words, range)::HUGEINT) FROM facts, range(3000)"
SPILL = (
    "SELECT sum(n) FROM (SELECT row_number() OVER (ORDER BY words || range, id) AS n "
    "FROM facts, range(4))"
)
"""


def start(data: Path, temp: Path, code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-c", PREAMBLE + textwrap.dedent(code), data, temp],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], patience_s: float = 30.0) -> tuple[str, str]:
    try:
        return process.communicate(timeout=patience_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        out, err = process.communicate()
        pytest.fail(f"the process did not end\n{out}\n{err}")


@pytest.mark.parametrize(
    "code",
    some_of(
        [
            "qy.submit(LONG); time.sleep(0.3)",
            "handles = [qy.submit(LONG) for _ in range(5)]; time.sleep(0.3)",
            "qy.submit('CREATE TEMP TABLE t AS ' + LONG); time.sleep(0.3)",
            "answer = qy.sql('SELECT f.*, range FROM facts f, range(100)'); time.sleep(0.3)",
            "qy.submit(LONG)",
            "pass",
            "qy.sql('SELECT 1').fetchall()",
            "qy.create_function('f', lambda x: x, ['BIGINT'], 'BIGINT'); "
            "qy.submit('SELECT sum(f(id)) FROM facts, range(100)'); time.sleep(0.3)",
            "h = qy.submit(LONG); threading.Thread(target=h.wait, daemon=True).start()",
            "h = qy.submit(SPILL); time.sleep(0.5)",
            "del qy",
            "qy.close(); qy.close()",
            "qy2 = queryard.connect(sys.argv[1], slots=2); qy2.submit(LONG); qy.submit(LONG)",
        ],
        5,
    ),
)
def test_leaving_the_interpreter(data, tmp_path, code):
    process = start(data, tmp_path / "temp", code)
    _, err = finish(process)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    assert "Fatal" not in err
    assert list((tmp_path / "temp").iterdir()) == []


def test_leaving_by_an_exception(data, tmp_path):
    process = start(
        data, tmp_path / "temp", "qy.submit(LONG); time.sleep(0.2); raise SystemExit(3)"
    )
    _, err = finish(process)
    assert process.returncode == 3, err
    assert list((tmp_path / "temp").iterdir()) == []


def test_an_interrupt_while_waiting_cancels_the_query(data, tmp_path):
    code = """
    print("ready", flush=True)
    try:
        qy.sql(LONG).fetchall()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    print(qy.sql("SELECT 42").fetchall(), flush=True)
    """
    process = start(data, tmp_path / "temp", code)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "ready"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = finish(process)
    assert out.split("\n")[:2] == ["interrupted", "[(42,)]"], (out, err)
    assert process.returncode == 0


def test_files_of_a_killed_process_go_with_the_next_start(data, tmp_path):
    temp = tmp_path / "temp"
    code = """
    qy.sql("CREATE TEMP TABLE t AS FROM facts")
    handles = [qy.submit(SPILL) for _ in range(10)]
    print("ready", flush=True)
    time.sleep(60)
    """
    process = start(data, temp, code)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "ready"
    wait_until(lambda: list(temp.rglob("*.tmp")))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert list(temp.iterdir()), "the killed process should have left something"
    with queryard.connect(data, slots=2, temp=temp) as qy:
        assert len(list(temp.iterdir())) == 1, "only the folder of this process"
        assert qy.sql("SELECT count(*) FROM dims").fetchall() == [(1000,)]
    assert list(temp.iterdir()) == []


def test_a_start_leaves_the_living_alone(data, tmp_path):
    temp = tmp_path / "temp"
    code = """
    handle = qy.submit(SPILL)
    print("ready", flush=True)
    print(handle.result(60).fetchall(), flush=True)
    """
    process = start(data, temp, code)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "ready"
    with queryard.connect(data, slots=2, temp=temp):
        assert len(list(temp.iterdir())) == 2
        out, err = finish(process, 60.0)
        assert process.returncode == 0, err
        rows = 400_000 * 4
        assert out.strip() == f"[({rows * (rows + 1) // 2},)]"


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_forked_child_may_leave_without_hurting_its_parent(data, tmp_path):
    code = """
    import os
    print(qy.sql("SELECT count(*) FROM dims").fetchall())
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        sys.exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
    print(qy.sql("SELECT count(*) FROM dims").fetchall())
    qy.sql("CREATE TEMP TABLE t AS FROM dims")
    print(qy.sql("SELECT count(*) FROM t").fetchall())
    """
    process = start(data, tmp_path / "temp", code)
    out, err = finish(process)
    assert process.returncode == 0, err
    assert out.split() == ["[(1000,)]"] * 3
