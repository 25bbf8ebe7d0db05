"""Processes that try candidates out: the same trials, a cap on the share of a core, clean ends."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from queryard.core.errors import QueryardError
from queryard.core.scheduler import Scheduler
from queryard.policies import resolve_profile
from queryard.portfolio import (
    PortfolioSettings,
    Workers,
    candidates_of,
    simulate_portfolio,
    try_out,
)
from queryard.portfolio.processes import Allowance, Process, ready
from queryard.sim.run import build
from queryard.workload import Mix, generate, parse_nodes

NODES = parse_nodes("4x4")


@pytest.fixture(scope="module")
def kernel() -> Scheduler:
    workload = generate(Mix(queries=20, load=5.0, deadlines=0.3), 3, NODES)
    driver = build(workload, NODES, resolve_profile("fifo"))
    driver.run(max(arrival.query.submit_s for arrival in workload.arrivals) + 1.0)
    assert len(driver.scheduler.state.queries) > 10
    return driver.scheduler


def test_they_find_what_would_be_found_here(kernel: Scheduler) -> None:
    candidates = candidates_of()
    here = try_out(kernel, candidates)
    with Workers(2) as workers:
        for _ in range(2):
            there = workers.try_out(kernel, candidates)
            assert [trial.name for trial in there] == list(candidates)
            assert [trial.schedule for trial in there] == [trial.schedule for trial in here]
        (one,) = workers.try_out(kernel, candidates_of(("srtf",)))
        assert one.name == "srtf"


def test_a_run_is_the_same_with_them_and_without() -> None:
    workload = generate(Mix(queries=12, load=2.0, deadlines=0.3, block_bytes=1e9), 1, NODES)
    settings = PortfolioSettings(candidates_of(("fifo", "srtf", "edf")), period_s=20.0)
    alone = simulate_portfolio(workload, NODES, settings)
    with Workers(1) as workers:
        helped = simulate_portfolio(workload, NODES, settings, trials=workers)
    assert helped.run.ends == alone.run.ends
    assert [d.policy for d in helped.decisions] == [d.policy for d in alone.decisions]


def test_one_that_dies_is_replaced(kernel: Scheduler) -> None:
    with Workers(1) as workers:
        workers.try_out(kernel, candidates_of(("fifo",)))
        first = workers._processes[0]._process
        first.kill()
        first.wait()
        (found,) = workers.try_out(kernel, candidates_of(("fifo",)))
        assert found.complete
    assert workers._processes == []


def test_what_is_wrong_with_a_candidate_is_told(kernel: Scheduler) -> None:
    with Workers(1) as workers:
        with pytest.raises(QueryardError, match="unknown"):
            workers.try_out(kernel, {"odd": {"order": "no such order"}})
        assert workers.try_out(kernel, candidates_of(("fifo",)))


def test_a_share_of_a_core_is_kept_to(kernel: Scheduler) -> None:
    with Workers(1, share=0.2) as workers:
        workers.try_out(kernel, candidates_of(("fifo",)))  # it is started by now
        process = workers._processes[0]._process
        before_s = _cpu_s(process.pid)
        began_s = time.perf_counter()
        workers.try_out(kernel, candidates_of() | candidates_of(("capacity", "dfa", "lodfa")))
        wall_s = time.perf_counter() - began_s
        # Reading the kernel is not paced, and the clock of the kernel is coarse.
        assert _cpu_s(process.pid) - before_s <= 0.3 * wall_s + 0.1


def _cpu_s(pid: int) -> float:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        pytest.skip("no /proc here")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(("count", "share"), [(0, 1.0), (1, 0.0), (1, 1.5)])
def test_impossible_numbers_are_refused(count: int, share: float) -> None:
    with pytest.raises(QueryardError):
        Workers(count, share)


def _printed(script: Path) -> str:
    """What a script prints that ends well."""
    ended = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_an_unguarded_script_can_use_them(tmp_path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from queryard.policies import resolve_profile\n"
        "from queryard.portfolio import Workers, candidates_of\n"
        "from queryard.sim.run import build\n"
        "from queryard.workload import Mix, generate, parse_nodes\n"
        "print('begins')\n"
        "nodes = parse_nodes('2x2')\n"
        "driver = build(generate(Mix(queries=3), 1, nodes), nodes, resolve_profile('fifo'))\n"
        "driver.run(1.0)\n"
        "workers = Workers(1)\n"
        "print(len(workers.try_out(driver.scheduler, candidates_of(('fifo',)))))\n"
        # It does not close them: they end with it.
    )
    assert _printed(script) == "begins\n1\n"


def test_a_file_in_the_users_folder_is_not_taken_for_the_standard_library(
    kernel: Scheduler, tmp_path, monkeypatch
) -> None:
    (tmp_path / "random.py").write_text("raise RuntimeError('not this one')")
    monkeypatch.chdir(tmp_path)
    with Workers(1) as workers:
        assert workers.try_out(kernel, candidates_of(("fifo",)))


def test_ctrl_c_ends_trials_at_once(tmp_path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, signal, threading\n"
        "from queryard.policies import resolve_profile\n"
        "from queryard.portfolio import Workers, candidates_of\n"
        "from queryard.sim.run import build\n"
        "from queryard.workload import Mix, generate, parse_nodes\n"
        "nodes = parse_nodes('2x2')\n"
        "driver = build(generate(Mix(queries=9), 1, nodes), nodes, resolve_profile('fifo'))\n"
        "driver.run(1.0)\n"
        "workers = Workers(1)\n"
        "workers.try_out(driver.scheduler, candidates_of(('fifo',)))\n"
        "first = workers._processes[0]._process\n"
        "many = {f'tls {n}': resolve_profile('tls') for n in range(5000)}\n"
        "threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "try:\n"
        "    workers.try_out(driver.scheduler, many)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', first.poll() is not None)\n"
        "print(len(workers.try_out(driver.scheduler, candidates_of(('fifo',)))))\n"
    )
    assert _printed(script) == "interrupted True\n1\n"


class Code:
    """A request that is an expression: a worker cannot import this file."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return eval, (self._text,)


@pytest.fixture
def worker():
    pytest.importorskip("resource")
    made = Process(Allowance(cpu_s=0.1, memory_bytes=float(1 << 30)))
    yield made
    made.kill()


def test_one_that_spins_is_ended_by_the_system(worker: Process) -> None:
    assert worker.ask(ready).found is None
    with pytest.raises(EOFError, match="SIGXCPU, since it used too much processor time"):
        worker.ask(Code("lambda rest: sum(1 for _ in iter(int, 1))"))
    assert (worker.cpu_s() or 0.0) > 0.0


def test_many_requests_may_use_more_together_than_one() -> None:
    """The limit is one of a request, not of the life of a worker."""
    pytest.importorskip("resource")
    spin = (
        "lambda rest: sum(0 for time in [__import__('time')] "
        "for end in [time.process_time() + 0.3] "
        "for _ in iter(lambda: time.process_time() < end, False))"
    )
    worker = Process(Allowance(cpu_s=1.0))
    for _ in range(8):
        worker.ask(Code(spin))
    assert worker.ask(ready).cpu_s > 2.4
    worker.kill()


def test_one_that_wants_too_much_memory_gets_none_and_goes_on(worker: Process) -> None:
    with pytest.raises(QueryardError, match="MemoryError"):
        worker.ask(Code("lambda rest: len(bytearray(1 << 31))"))
    assert worker.ask(ready).found is None
