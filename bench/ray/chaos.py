"""Chaos: nodes of a Ray cluster are killed and added again, while eight tenants ask.

First the cluster is asked as much as it can answer, for a moment; half of that is the load of two
runs with the same arrivals: a quiet one, and one in which every 40 s a node is killed with all its
processes and another one added. Every answer is compared with plain DuckDB's. At the end nothing
may be left: objects, actors, temporary files, processes, threads, open files. Targets: no wrong
answer, no leak, mean response at most 2.5 of the quiet run's.

A native query of which rows were given out when its node died fails with `NodeGone`; such failures
are counted, and are no wrong answers. Any other failure is one.

python -m bench.ray.chaos [--seconds 600] [--every 40] [--quick]: 15 min, or 2 with --quick.
"""

from __future__ import annotations

import argparse
import faulthandler
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from rich.console import Console
from rich.table import Table

import queryard
from bench.soak.questions import Question, rows_of
from queryard.backends.ray.runs import NodeGone
from queryard.core.errors import QueryardError
from queryard.engine.plain import PlainDuckDB
from queryard.sql.catalog import open_catalog
from queryard.workload import tpch

from .left import Left, left_in
from .nodes import Nodes, all_joined, nodes

NODES = 3
TENANTS = 8
MOST = 2.5
LOAD = 0.5
MOST_UNDER_WAY = 200
PLANS = ("staged", "staged", "native", "auto")
SATURATE_S = 12.0
ADD_AFTER_S = 2.0
TELL_S = 10.0
# A query that takes longer hangs.
HANG_S = 120.0


@dataclass
class Outcomes:
    """What came of all questions of a run."""

    took_s: list[float] = field(default_factory=list)
    gone: int = 0
    wrong: list[str] = field(default_factory=list)
    kills: int = 0

    @property
    def mean_s(self) -> float:
        return statistics.fmean(self.took_s) if self.took_s else float("nan")


class Asking:
    """Asks a session questions, and compares answers."""

    def __init__(self, session: queryard.Session, questions: Sequence[Question]) -> None:
        self._session = session
        self._questions = questions

    def one(self, draw: Random, tenant: int, into: Outcomes) -> None:
        question, plan = draw.choice(self._questions), draw.choice(PLANS)
        began_s = time.monotonic()
        try:
            handle = self._session.submit(
                question.sql, plan=plan, tenant=f"tenant-{tenant}", time_limit=HANG_S
            )
            found = handle.take().arrow()
        except NodeGone:
            into.gone += 1
            return
        except QueryardError as error:
            into.wrong.append(f"{type(error).__name__}: {error} ({plan}: {question.sql[:80]!r})")
            return
        into.took_s.append(time.monotonic() - began_s)
        if not question.is_answered_by(found):
            into.wrong.append(f"another answer than DuckDB's ({plan}): {question.sql}")

    def most_per_s(self, seconds: float, seed: int) -> float:
        """How many questions per second are answered if every tenant asks all the time."""
        until_s = time.monotonic() + seconds
        each = [Outcomes() for _ in range(TENANTS)]

        def ask(tenant: int) -> None:
            draw = Random(f"most/{seed}/{tenant}")
            while time.monotonic() < until_s:
                self.one(draw, tenant, each[tenant])

        began_s = time.monotonic()
        with ThreadPoolExecutor(TENANTS) as pool:
            list(pool.map(ask, range(TENANTS)))
        answered = sum(len(found.took_s) for found in each)
        return answered / (time.monotonic() - began_s)

    def play(
        self, per_s: float, seconds: float, seed: int, tell: Callable[[Outcomes], None]
    ) -> Outcomes:
        """Let questions arrive at random for so long; a seed has the same at the same times."""
        draw = Random(f"arrivals/{seed}")
        into = Outcomes()
        began_s = told_s = time.monotonic()
        at_s = 0.0
        with ThreadPoolExecutor(MOST_UNDER_WAY) as pool:
            number = 0
            while (at_s := at_s + draw.expovariate(per_s)) < seconds:
                while (left_s := began_s + at_s - time.monotonic()) > 0:
                    time.sleep(min(left_s, 0.5))
                pool.submit(self.one, Random(f"{seed}/{number}"), number % TENANTS, into)
                number += 1
                if time.monotonic() > told_s + TELL_S:
                    told_s = time.monotonic()
                    tell(into)
        return into


def kill_meanwhile(
    playing: Future[Outcomes],
    cluster: Nodes,
    every_s: float,
    seed: int,
    say: Callable[[str], None],
) -> int:
    """Kill a node every so often and add another, until a run is over; how many were killed.

    Ray starts nodes in the main thread only.
    """
    draw = Random(f"kills/{seed}")
    killed = 0
    # The first one soon: a short run has some, too.
    wait_s = every_s / 4
    while not _over_within(playing, wait_s):
        wait_s = every_s - ADD_AFTER_S
        say("a node is killed")
        cluster.kill(draw.choice(cluster.alive))
        killed += 1
        _over_within(playing, ADD_AFTER_S)
        cluster.add(1)
    return killed


def _over_within(playing: Future[Outcomes], seconds: float) -> bool:
    wait([playing], seconds)
    return playing.done()


def main(given: Sequence[str] | None = None) -> None:
    options = _options(given)
    if options.quick:
        options.seconds, options.every, options.scale = 60.0, 20.0, 0.05
    faulthandler.dump_traceback_later(3 * options.seconds + 600.0, exit=True)
    console = Console(highlight=False)
    right = chaos(options, console)
    faulthandler.cancel_dump_traceback_later()
    sys.exit(0 if right else 1)


def chaos(options: argparse.Namespace, console: Console) -> bool:
    began_s = time.monotonic()

    def say(line: str) -> None:
        console.print(f"{time.monotonic() - began_s:6.0f} s  {line}", soft_wrap=True)

    def tell(found: Outcomes) -> None:
        say(
            f"{len(found.took_s)} answers, {len(found.wrong)} wrong, {found.gone} lost with their "
            f"node, mean {found.mean_s:.2f} s; {len(session.queries())} under way at "
            f"{len(session.host.backend.nodes)} nodes"
        )

    folder = options.data / f"sf{options.scale:g}"
    tpch.generate(folder, options.scale)
    questions = prepared(folder, options.seed)
    quiet_s = min(options.seconds, 180.0) / (2 if options.quick else 1)
    with tempfile.TemporaryDirectory(prefix="qyc-", dir="/tmp") as temporary:
        say(f"a cluster of {NODES} nodes with one slot each, on 127.0.0.1")
        with nodes(*[1] * NODES) as cluster:
            with queryard.connect(
                folder,
                backend="ray",
                address=cluster.address,
                memory="1 GB",
                temp=temporary,
                history=False,
                statistics="off",
            ) as session:
                all_joined(session, NODES)
                asking = Asking(session, questions)
                saturate_s = SATURATE_S / (2 if options.quick else 1)
                asking.most_per_s(saturate_s / 2, options.seed)  # warms what is to be measured
                most = asking.most_per_s(saturate_s, options.seed)
                say(f"answers {most:.1f} queries per second at most; the load is {LOAD:g} of it")
                quiet = asking.play(LOAD * most, quiet_s, options.seed, tell)
                before = left_in(session, cluster, Path(temporary))
                say(f"quiet: mean response {quiet.mean_s:.2f} s; now nodes are killed")
                with ThreadPoolExecutor(1) as pool:
                    playing = pool.submit(
                        asking.play, LOAD * most, options.seconds, options.seed, tell
                    )
                    kills = kill_meanwhile(playing, cluster, options.every, options.seed, say)
                    rough = playing.result()
                rough.kills = kills
                say("all has ended; what is left is looked at")
                leaks = settled(session, cluster, Path(temporary), before)
            leaks += [f"a process of a killed node: {name}" for name in cluster.left_of_killed()]
    return shown(quiet, rough, leaks, console)


def settled(session: queryard.Session, cluster: Nodes, temporary: Path, before: Left) -> list[str]:
    """What is left too much, once what ends by itself has had its time."""
    until_s = time.monotonic() + 30.0
    while True:
        found = left_in(session, cluster, temporary).more_than(before, NODES)
        if not found or time.monotonic() > until_s:
            return found
        time.sleep(0.5)


def prepared(folder: Path, seed: int) -> list[Question]:
    """Queries of TPC-H with plain DuckDB's answers, each with some parameters."""
    draw = Random(f"questions/{seed}")
    texts = [tpch.draw_query(number, draw) for number in tpch.queries()]
    with PlainDuckDB(open_catalog(folder), 2, 2 << 30) as duck:
        cursor = duck.cursor()
        found = [Question(text, rows_of(cursor.arrow(text))) for text in texts]
        cursor.close()
    return found


def shown(quiet: Outcomes, rough: Outcomes, leaks: Sequence[str], console: Console) -> bool:
    table = Table(title="Chaos", title_justify="left")
    for column in ("", "quiet", "nodes are killed"):
        table.add_column(column, justify="right" if column else "left")
    for what, value in (
        ("nodes killed", lambda found: f"{found.kills}"),
        ("answers", lambda found: f"{len(found.took_s)}"),
        ("wrong or failed", lambda found: f"{len(found.wrong)}"),
        ("rows lost with their node", lambda found: f"{found.gone}"),
        ("mean response, s", lambda found: f"{found.mean_s:.2f}"),
    ):
        table.add_row(what, value(quiet), value(rough))
    console.print(table)
    for line in (*quiet.wrong, *rough.wrong)[:20]:
        console.print(f"WRONG {line}", style="red", soft_wrap=True, markup=False)
    for line in leaks:
        console.print(f"LEAK {line}", style="red", soft_wrap=True, markup=False)
    ratio = rough.mean_s / quiet.mean_s
    console.print(f"mean response {ratio:.2f} of the quiet run; the target is at most {MOST:g}")
    console.print(f"{len(leaks)} leaks, {len(quiet.wrong) + len(rough.wrong)} wrong answers")
    return not leaks and not quiet.wrong and not rough.wrong and ratio <= MOST


def _options(given: Sequence[str] | None) -> argparse.Namespace:
    usual = Path(tempfile.gettempdir()) / "queryard-bench-ray"
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=600.0, help="with kills")
    parser.add_argument("--every", type=float, default=40.0, help="seconds between two kills")
    parser.add_argument("--scale", type=float, default=0.1, help="of TPC-H")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, default=usual, help="where data is made")
    parser.add_argument("--quick", action="store_true", help="a minute of chaos on little data")
    return parser.parse_args(given)


if __name__ == "__main__":
    main()
