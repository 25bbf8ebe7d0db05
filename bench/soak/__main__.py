"""The soak: rounds of mixed load, each in a session of its own; exits with 1 if anything is wrong.

    make soak                                an hour
    python -m bench.soak --seconds 20        a look

The first round is where memory and objects are measured from: what is loaded once is loaded then.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import queryard
from queryard.workload import tpch

from .clients import TENANTS, Client
from .faults import MARK, Faults
from .leftovers import Held, busy, growth, held, rss_bytes
from .questions import Questions, prepare

TELL_S = 10.0
# A client that does one thing for longer than this hangs.
HANG_S = 90.0
ROUND_S = 300.0


class Soak:
    """All rounds, and what went wrong."""

    def __init__(self, given: argparse.Namespace, folder: Path, temp: Path) -> None:
        self._given = given
        self._folder = folder
        self._temp = temp
        self._faults = Faults(given.seed, given.faults)
        self._questions: Questions = prepare(folder, given.slots, given.seed)
        self._began = time.monotonic()
        self._outcomes: Counter[str] = Counter()
        self._start: Held | None = None
        self.violations: list[str] = []
        threading.excepthook = self._escaped

    def run(self) -> bool:
        """Whether all was right."""
        seconds, rounds = self._given.seconds, self._given.rounds
        rounds = rounds or max(3, round(seconds / ROUND_S))
        with self._faults.inside():
            for number in range(rounds):
                self._round(number, seconds / rounds)
                self._look_back(number)
        self._summary(rounds)
        return not self.violations

    def _round(self, number: int, seconds: float) -> None:
        given = self._given
        session = queryard.connect(
            self._folder,
            slots=given.slots,
            memory=given.memory,
            temp=self._temp,
            tenants=TENANTS,
            history=self._temp / f"history-{number % 2}.sqlite",
        )
        seed = f"{given.seed}/{number}"
        clients = [Client(place, session, self._questions, seed) for place in range(given.clients)]
        try:
            for client in clients:
                client.start()
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                time.sleep(min(TELL_S, max(0.0, until - time.monotonic())))
                self._take_note(clients)
                self._tell(number, session, clients)
            for client in clients:
                client.stop()
            for client in clients:
                while not client.wait(1.0):
                    self._take_note(clients)
            self._take_note(clients)
            self._note(f"round {number}, idle session", busy(session))
        finally:
            session.close()
        for client in clients:
            self._outcomes.update(client.outcomes)

    def _look_back(self, number: int) -> None:
        """Nothing of a session may be left."""
        if self._start is None:
            self._start = held()
            return
        now, found = growth(self._start)
        self._note(f"after round {number}", found)
        print(
            f"after round {number}: {now.rss_bytes >> 20} MiB ({self._start.rss_bytes >> 20} after "
            f"the first), {sum(now.threads.values())} threads, {now.files} files, "
            f"{now.instances} instances, {sum(now.objects.values())} objects of Queryard's "
            f"({sum(self._start.objects.values())})",
            flush=True,
        )

    # --- telling -------------------------------------------------------------------------------

    def _take_note(self, clients: list[Client]) -> None:
        for client in clients:
            while client.violations:
                self._note(f"client {client.number}", [client.violations.pop()])
            if client.doing and time.monotonic() - client.since > HANG_S:
                self._hangs(client)

    def _note(self, where: str, found: list[str]) -> None:
        for what in found:
            self.violations.append(f"{where}: {what}")
            print(f"VIOLATION {where}: {what}", flush=True)

    def _hangs(self, client: Client) -> None:
        print(f"VIOLATION client {client.number} hangs in {client.doing}", flush=True)
        for view in client.session.queries():
            print(f"  {view}", flush=True)
            print(f"  {client.session.why(view.id)}", flush=True)
        faulthandler.dump_traceback(all_threads=True)
        os._exit(1)

    def _escaped(self, raised: Any) -> None:
        """An uncaught error, on any thread."""
        if MARK not in str(raised.exc_value):
            sys.__excepthook__(raised.exc_type, raised.exc_value, raised.exc_traceback)
            name = None if raised.thread is None else raised.thread.name
            self._note(f"thread {name}", [f"{raised.exc_type.__name__}: {raised.exc_value}"])

    def _tell(self, number: int, session: queryard.Session, clients: list[Client]) -> None:
        done = self._outcomes + sum((client.outcomes for client in clients), Counter())
        report = session.report()
        print(
            f"{time.monotonic() - self._began:6.0f} s, round {number}: {done.total():,} done, "
            f"{report.running} run, {report.waiting} wait, {report.bursts} bursts, "
            f"{report.restarts} of {report.sprints} sprints begun again, "
            f"{sum(self._faults.made.values())} faults, {rss_bytes() >> 20} MiB, "
            f"{threading.active_count()} threads, {len(self.violations)} violations",
            flush=True,
        )

    def _summary(self, rounds: int) -> None:
        print(f"\n{self._outcomes.total():,} done in {rounds} rounds; faults: {self._faults.made}")
        for name, count in sorted(self._outcomes.items()):
            print(f"  {count:8,} {name}")
        for violation in self.violations[:50]:
            print(f"VIOLATION {violation}")
        print("all as it must be" if not self.violations else f"{len(self.violations)} violations")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--rounds", type=int, help="sessions, one after another (default: by time)")
    parser.add_argument("--data", type=Path, help="TPC-H Parquet at --scale, made if not given")
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", type=float, default=0.02, help="how often a slot fails")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="queryard-soak-") as temporary:
        folder = given.data or Path(temporary) / "data"
        tpch.generate(folder, given.scale)
        right = Soak(given, folder, Path(temporary)).run()
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
