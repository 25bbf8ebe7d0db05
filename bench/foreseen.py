"""How well the work of a family's queries is foreseen before they run, with an empty history.

Run by itself: `python -m bench.foreseen FAMILY --data DIR [--slots 2] [--repeats 5] [--json FILE]`
(`python -m bench.families` makes the data).

Real work is the CPU time of plain DuckDB with one thread, warm: the median of the repeats. The
repeat error is how far a single run is from that median, on average. Predictions are made as when
all queries are submitted at once: each *on submission*, then each from its *plan*, before any has
run; statistics are those that a session collects by itself in its first second. A factor of error
is the larger of predicted over real and real over predicted.

One predictor is asked, as in a session. *Seen templates*: it learns the first query of each
template that has several, and predicts the others. Errors count for those above 0.2 s.

The file has everything, so that a model can be fitted from it: what the prediction was made of
(`features`), DuckDB's plan, and with `--profile` the rows and seconds of each operator as they
were. With `--slots` above 1 it also has the times with so many threads. A family for reporting
must not be fitted to: it runs only with `--frozen`, which names the commit of the coefficients.

With `--plan staged` the sizes of staged jobs are compared instead (`bench/staged_sizes.py`): rows
and bytes of each job, as q-errors.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import platform
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Console
from rich.progress import track
from rich.table import Table

from queryard.core.errors import QueryardError
from queryard.engine.calibration import machine_rates
from queryard.engine.planning import Planner
from queryard.engine.syntax.classify import classify
from queryard.live.estimates.prediction import Predictor
from queryard.live.request import QueryRequest
from queryard.sql.catalog import Catalog, open_catalog
from queryard.sql.statistics.quick import quick_statistics

from . import staged_sizes
from .accuracy import accuracy, relative_error, repeat_error
from .families import Family, FamilyError, Query, family
from .real_work import measured

# Relative errors of shorter queries are those of the clock and of fixed costs.
LONG_S = 0.2
BY = ("submission", "plan")
# Where the output is no terminal.
WIDTH = 130


@dataclass
class Row:
    """One query: what it took, what was expected of it, and what that took."""

    name: str
    template: str
    sql: str
    expected_s: dict[str, float] = field(default_factory=dict)
    predicting_ms: dict[str, float] = field(default_factory=dict)
    features: dict[str, Any] | None = None
    plan: Any = None
    profile: Any = None
    work_s: float = 0.0
    repeat_error: float = 0.0
    runs: dict[str, list[float]] = field(default_factory=dict)
    seen_s: float | None = None

    def factor(self, by: str) -> float:
        """Predicted over real work."""
        return self.expected_s[by] / self.work_s


def asked(query: Query) -> QueryRequest:
    """As a session gets it."""
    return QueryRequest(query.sql, classify(query.sql), (), "native")


def predict(catalog: Catalog, queries: Sequence[Query]) -> list[Row]:
    """Predict every query on submission, then each from its plan; nothing runs."""
    predictor, planner = Predictor(catalog, machine_rates()), Planner(catalog)
    peer = _peer(catalog)
    rows = []
    for query in queries:
        began = time.thread_time()
        first = predictor.first(asked(query))
        spent_ms = (time.thread_time() - began) * 1e3
        row = Row(query.name, query.template, query.sql)
        row.expected_s["submission"], row.predicting_ms["submission"] = first.work_s, spent_ms
        rows.append(row)
    for row in track(rows, "planning", transient=True):
        request = asked(Query(row.name, row.sql, row.template))
        # The first plan over a table reads its footer: on this side it is not measured.
        row.plan = _explained(peer, row.sql)
        began = time.thread_time()
        _explained(peer, row.sql)
        row.predicting_ms["DuckDB's planning"] = (time.thread_time() - began) * 1e3
        began = time.thread_time()
        refined = predictor.refine(request)
        row.predicting_ms["plan"] = (time.thread_time() - began) * 1e3
        row.expected_s["plan"] = row.expected_s["submission"] if refined is None else refined.work_s
        found = planner.features(request.statements[-1])
        row.features = None if found is None else dataclasses.asdict(found)
    peer.close()
    predictor.close()
    planner.close()
    return rows


def turns_of(queries: Sequence[Query]) -> list[int]:
    """How many queries of the same template come before each."""
    before: Counter[str] = Counter()
    turns = []
    for query in queries:
        turns.append(before[query.template])
        before[query.template] += 1
    return turns


def _peer(catalog: Catalog) -> duckdb.DuckDBPyConnection:
    """Plain DuckDB with one thread, and with its plans at hand."""
    peer = duckdb.connect(config={"threads": 1})
    peer.execute("SET parquet_metadata_cache = true; SET enable_progress_bar = false")
    for table in catalog.tables.values():
        peer.execute(f'CREATE VIEW "{table.name}" AS FROM {table.relation}')
    return peer


def _explained(peer: duckdb.DuckDBPyConnection, sql: str) -> Any:
    found = peer.execute(f"EXPLAIN (FORMAT json) {sql}").fetchall()
    return json.loads(dict(found)["physical_plan"])


def measure(catalog: Catalog, rows: Sequence[Row], slots: int, repeats: int) -> None:
    """Run every query on plain DuckDB with one thread, and with as many as there are slots."""
    texts = {row.name: row.sql for row in rows}
    for threads in dict.fromkeys((1, slots)):
        found = measured(catalog, texts, threads, repeats)
        for row in rows:
            cpu_s, wall_s = found[row.name]
            row.runs[f"cpu_s_{threads}"], row.runs[f"wall_s_{threads}"] = cpu_s, wall_s
            if threads == 1:
                row.work_s, row.repeat_error = statistics.median(cpu_s), repeat_error(cpu_s)


def add_profiles(catalog: Catalog, rows: Sequence[Row]) -> None:
    """The true rows and the time of each operator, one run each."""
    peer = _peer(catalog)
    for row in track(rows, "profiling", transient=True):
        found = peer.execute(f"EXPLAIN (ANALYZE, FORMAT json) {row.sql}").fetchall()
        row.profile = json.loads(found[0][1])
    peer.close()


def foresee_seen(catalog: Catalog, queries: Sequence[Query], rows: Sequence[Row]) -> None:
    """Learn the first query of each template, and predict the others."""
    predictor = Predictor(catalog, machine_rates())
    turns = turns_of(queries)
    for turn, query, row in zip(turns, queries, rows, strict=True):
        if turn == 0:
            predictor.refine(asked(query))
            predictor.learn(asked(query), row.work_s)
    for turn, query, row in zip(turns, queries, rows, strict=True):
        if turn:
            request = asked(query)
            row.seen_s = (predictor.refine(request) or predictor.first(request)).work_s
    predictor.close()


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """All figures of a family."""
    actual = [row.work_s for row in rows]
    long = [row for row in rows if row.seen_s is not None and row.work_s > LONG_S]
    return {
        "queries": len(rows),
        "work_s": {"sum": sum(actual), "median": statistics.median(actual), "most": max(actual)},
        "repeat_error": statistics.fmean(row.repeat_error for row in rows),
        "foreseen": {
            by: accuracy([row.expected_s[by] for row in rows], actual)._asdict() for by in BY
        },
        "predicting_ms": {
            what: {
                "median": statistics.median(row.predicting_ms[what] for row in rows),
                "most": max(row.predicting_ms[what] for row in rows),
            }
            for what in (*BY, "DuckDB's planning")
        },
        "seen_templates": {
            "queries": len(long),
            "error": relative_error(
                [row.seen_s or 0.0 for row in long], [row.work_s for row in long]
            ),
            "repeat_error": statistics.fmean(row.repeat_error for row in long) if long else 0.0,
        },
    }


def show(title: str, rows: Sequence[Row], figures: dict[str, Any], console: Console) -> None:
    """Every query, the worst miss first, then the figures."""
    table = Table(title=title)
    table.add_column("query")
    for column in ("real s", "±", "on submission", "factor", "from plan", "factor", "ms", "seen"):
        table.add_column(column, justify="right")
    for row in sorted(rows, key=lambda row: -max(row.factor("plan"), 1 / row.factor("plan"))):
        table.add_row(
            row.name,
            f"{row.work_s:.3f}",
            f"{row.repeat_error:.0%}",
            f"{row.expected_s['submission']:.3f}",
            f"{row.factor('submission'):.2f}",
            f"{row.expected_s['plan']:.3f}",
            f"{row.factor('plan'):.2f}",
            f"{row.predicting_ms['plan']:.1f}",
            "" if row.seen_s is None else f"{row.seen_s / row.work_s:.2f}",
        )
    console.print(table)
    work, seen = figures["work_s"], figures["seen_templates"]
    print(
        f"{figures['queries']} queries, {work['sum']:.1f} s of work, median {work['median']:.3f}, "
        f"most {work['most']:.2f}; repeat error {figures['repeat_error']:.1%}"
    )
    for by, found in figures["foreseen"].items():
        print(
            f"{by:10} rank correlation {found['correlation']:.3f}, factor of error: median "
            f"{found['median']:.2f}, 90th percentile {found['ninth_decile']:.2f}, "
            f"worst {found['worst']:,.1f}, bias {found['bias']:.2f}"
        )
    for what, ms in figures["predicting_ms"].items():
        print(f"{what:17} {ms['median']:.2f} ms of CPU in the median, {ms['most']:.1f} at most")
    if seen["queries"]:
        print(
            f"seen templates with other literals, {seen['queries']} above {LONG_S:g} s: mean "
            f"relative error {seen['error']:.1%}, repeat error {seen['repeat_error']:.1%}"
        )


def foresee(chosen: Family, folder: Path, slots: int, repeats: int, profile: bool) -> list[Row]:
    """Predict all queries of a family, run them, and predict those of seen templates again."""
    catalog, queries = open_catalog(None, chosen.places(folder)), chosen.queries(folder)
    for key in track(list(catalog.tables), "samples", transient=True):
        quick_statistics(catalog, key)
    rows = predict(catalog, queries)
    measure(catalog, rows, slots, repeats)
    foresee_seen(catalog, queries, rows)
    if profile:
        add_profiles(catalog, rows)
    return rows


def foresee_staged(chosen: Family, folder: Path, slots: int, file: Path | None) -> None:
    """Show how well sizes of staged jobs are foreseen, and keep it in the file, if one is given."""
    jobs, whole = staged_sizes.sized_jobs(chosen, folder, slots)
    if not jobs:
        raise FamilyError(f"{chosen.name}: no query of it can be split into tasks")
    figures = staged_sizes.summary(jobs)
    staged_sizes.show(chosen.name, jobs, whole, figures, _console())
    if file is not None:
        kept = {"family": chosen.name, "data": str(folder.absolute()), "duckdb": duckdb.__version__}
        kept |= staged_sizes.as_json(jobs, whole, figures)
        file.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.foreseen",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("family", help="tpch, ssb, db_benchmark, drawn:SEED, tpcds")
    parser.add_argument("--data", type=Path, required=True, help="the folder with its tables")
    parser.add_argument("--slots", type=int, default=2, help="threads of a second measurement")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--profile", action="store_true", help="keep DuckDB's profile of each")
    parser.add_argument("--json", type=Path, help="keep everything in this file")
    parser.add_argument("--frozen", help="the commit with the frozen coefficients")
    parser.add_argument("--plan", choices=("native", "staged"), default="native")
    given = parser.parse_args(arguments)
    if given.repeats < 1 or given.slots < 1:
        parser.error("--repeats and --slots must be at least 1")
    try:
        chosen = family(given.family)
        chosen.check_frozen(given.frozen)
        if given.plan == "staged":
            foresee_staged(chosen, given.data, given.slots, given.json)
            return
        rows = foresee(chosen, given.data, given.slots, given.repeats, given.profile)
    except QueryardError as error:
        raise SystemExit(f"error: {error}") from error
    figures = summary(rows)
    show(chosen.name, rows, figures, _console())
    if given.json:
        kept = {
            "family": chosen.name,
            "data": str(given.data.absolute()),
            "frozen": given.frozen,
            "python": platform.python_version(),
            "duckdb": duckdb.__version__,
            "rates": dataclasses.asdict(machine_rates()),
            "figures": figures,
            "queries": [dataclasses.asdict(row) for row in rows],
        }
        given.json.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)


if __name__ == "__main__":
    main()
