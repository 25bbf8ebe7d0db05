"""`make demo-cluster`: two tenants on three nodes within this machine; one node is killed.

It makes data of TPC-H, starts a Ray cluster of three nodes on 127.0.0.1 and asks for half a minute:
a dashboard small questions one after another, reports large ones that are split over all nodes. In
the middle a node is killed, and later another one joins. Every answer is compared with plain
DuckDB's. At the end there is a figure of which tenant had which node's slots.

python -m bench.ray.demo [--figure queryard-demo-cluster.png] [--seconds 30] [--scale 0.3]
"""

from __future__ import annotations

import argparse
import faulthandler
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from rich.console import Console
from rich.table import Table

import queryard
from bench.soak.questions import Question, rows_of
from queryard.core.errors import QueryardError
from queryard.core.readable import several
from queryard.engine.plain import PlainDuckDB
from queryard.history.reading import HistoryReader
from queryard.metrics import RunRows, read_run
from queryard.sql.catalog import open_catalog
from queryard.workload import tpch

from .demo_figure import Mark, save_nodes_figure
from .nodes import Nodes, all_joined, nodes

NODES = 3
SMALL = (6, 14, 12)
LARGE = (1, 3, 5, 9, 10, 18, 21)
AT_ONCE = 3  # reports
TENANTS = {"dashboard": {"guarantee": 0.34}, "reports": {}}
KILL_AT, JOIN_AT = 0.35, 0.65  # shares of the time
TELL_S = 3.0
# A demonstration that takes longer hangs.
LIFE_S = 420.0


@dataclass
class AnsweredQuery:
    """What came of one question."""

    tenant: str
    began_s: float
    took_s: float
    wrong: str = ""


@dataclass
class Load:
    """Two tenants that ask until they are stopped; `told` are all questions that ended."""

    session: queryard.Session
    small: Sequence[Question]
    large: Sequence[Question]
    told: list[AnsweredQuery] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        self._begin(lambda: self._ask("dashboard", self.small, "native", pause_s=0.2, seed=0))
        for seed in range(AT_ONCE):
            self._begin(
                lambda seed=seed: self._ask("reports", self.large, "staged", 0.0, seed)  # type: ignore[misc]
            )

    def _begin(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _ask(
        self, tenant: str, questions: Sequence[Question], plan: str, pause_s: float, seed: int
    ) -> None:
        order = list(questions)
        Random(seed).shuffle(order)
        place = 0
        while not self._over.wait(pause_s):
            question = order[place % len(order)]
            place += 1
            began_s = time.monotonic()
            try:
                found = self.session.submit(question.sql, plan=plan, tenant=tenant).take().arrow()
                wrong = "" if question.is_answered_by(found) else "another answer than DuckDB's"
            except QueryardError as error:
                wrong = str(error)
            self.told.append(AnsweredQuery(tenant, began_s, time.monotonic() - began_s, wrong))


def main(given: Sequence[str] | None = None) -> None:
    options = _options(given)
    faulthandler.dump_traceback_later(LIFE_S, exit=True)
    console = Console(highlight=False)
    try:
        right = demonstrate(options, console)
    except QueryardError as error:
        console.print(f"error: {error}", style="red")
        right = False
    faulthandler.cancel_dump_traceback_later()
    sys.exit(0 if right else 1)


def demonstrate(options: argparse.Namespace, console: Console) -> bool:
    """Whether all answers were right."""
    say = _teller(console)
    folder = options.data / f"sf{options.scale:g}"
    say(f"data of TPC-H at scale {options.scale:g}, in {folder}")
    tpch.generate(folder, options.scale)
    small, large = (_answered(folder, numbers) for numbers in (SMALL, LARGE))
    with tempfile.TemporaryDirectory(prefix="queryard-demo-") as temporary:
        history = Path(temporary) / "history.sqlite"
        say(f"a Ray cluster of {NODES} nodes with one slot each, on 127.0.0.1")
        with nodes(*[1] * NODES) as cluster:
            with queryard.connect(
                folder,
                backend="ray",
                address=cluster.address,
                memory="1 GB",
                tenants=TENANTS,
                history=history,
                statistics="off",
            ) as session:
                all_joined(session, NODES)
                load = Load(session, small, large)
                marks = _played(load, cluster, session, options.seconds, say)
            say("all processes of the cluster end")
        with HistoryReader(history) as reader:
            record = reader.session()
            run = read_run(reader.journal(record.session))
    marks = [Mark(mark.what, mark.at_s - record.began_at) for mark in marks]
    save_nodes_figure(options.figure, run, marks)
    return _closing(load.told, run, options.figure, console)


def _answered(folder: Path, numbers: Sequence[int]) -> list[Question]:
    """Queries of TPC-H with plain DuckDB's answers."""
    with PlainDuckDB(open_catalog(folder), 2, 2 << 30) as duck:
        cursor = duck.cursor()
        texts = [tpch.query(number) for number in numbers]
        found = [Question(text, rows_of(cursor.arrow(text))) for text in texts]
        cursor.close()
    return found


def _played(
    load: Load,
    cluster: Nodes,
    session: queryard.Session,
    seconds: float,
    say: Callable[[str], None],
) -> list[Mark]:
    """Let the tenants ask, kill a node and add one; what happened when, by the clock."""
    marks: list[Mark] = []
    todo = [
        (KILL_AT * seconds, "a node is killed", lambda: cluster.kill(cluster.alive[-1])),
        (JOIN_AT * seconds, "another node is started", lambda: cluster.add(1)),
    ]
    say("the tenants begin to ask")
    load.start()
    began_s = told_s = time.monotonic()
    while (now_s := time.monotonic()) < began_s + seconds or (
        len(session.host.backend.nodes) < NODES and now_s < began_s + 2 * seconds
    ):
        if todo and now_s >= began_s + todo[0][0]:
            _, what, action = todo.pop(0)
            marks.append(Mark(what, time.time()))
            say(what)
            action()
        if now_s >= told_s + TELL_S:
            told_s = now_s
            overview = session.cluster()
            busy = sum(node.busy for node in overview.nodes)
            wrong = sum(bool(asked.wrong) for asked in load.told)
            slots = sum(node.slots for node in overview.nodes)
            say(f"{len(load.told)} answers, {wrong} wrong; {busy} of {slots} slots busy")
        time.sleep(0.1)
    load.stop()
    return marks


def _closing(
    told: Sequence[AnsweredQuery],
    run: RunRows,
    figure: Path,
    console: Console,
) -> bool:
    table = Table(title="What the tenants got", title_justify="left")
    for column in ("tenant", "answers", "as DuckDB's", "mean response", "longest"):
        table.add_column(column, justify="right" if column != "tenant" else "left")
    for tenant in TENANTS:
        of = [asked for asked in told if asked.tenant == tenant]
        took = [asked.took_s for asked in of] or [0.0]
        right = sum(not asked.wrong for asked in of)
        table.add_row(
            tenant,
            f"{len(of)}",
            f"{right}",
            f"{statistics.fmean(took):.2f} s",
            f"{max(took):.2f} s",
        )
    console.print(table)
    lost = sum(launch.outcome == "lost" for launch in run.launches)
    again = sum(row.retries for row in run.queries.values())
    begun = sum(lease.outcome == "lost" for lease in run.leases)
    console.print(
        f"Lost with the node: {several(lost, 'running task')}, {several(begun, 'running query')}; "
        f"{several(again, 'task')} ran again.",
        soft_wrap=True,
    )
    for asked in told:
        if asked.wrong:
            console.print(f"wrong: {asked.tenant}: {asked.wrong}", style="red")
    all_right = bool(told) and not any(asked.wrong for asked in told)
    if all_right:
        console.print("All answers are those of plain DuckDB.", style="green")
    console.print(f"Figure: {figure}")
    return all_right


def _teller(console: Console) -> Callable[[str], None]:
    began_s = time.monotonic()
    return lambda line: console.print(f"{time.monotonic() - began_s:6.1f} s  {line}")


def _options(given: Sequence[str] | None) -> argparse.Namespace:
    usual = Path(tempfile.gettempdir()) / "queryard-bench-ray"
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=30.0, help="how long the tenants ask")
    parser.add_argument("--scale", type=float, default=0.3, help="of TPC-H")
    parser.add_argument("--figure", type=Path, default=Path("queryard-demo-cluster.png"))
    parser.add_argument("--data", type=Path, default=usual, help="where data is made")
    return parser.parse_args(given)


if __name__ == "__main__":
    main()
