"""Predictors of task times, on recorded tasks and on a workload like POSUM's.

Every task is predicted when it begins, from tasks that had ended by then. The error is
|predicted - actual| / max(actual, 0.1 s). Compared are tasks that all four predictors had an idea
of; their variants are judged on those of them for which they have one, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from pathlib import Path

from queryard.core.model import MAP, REDUCE, Kind
from queryard.estimate.tasks import PREDICTORS, Asked, Seen, class_of, make_predictor
from queryard.figures.palette import policy_colour
from queryard.figures.panels import Axis, Line, Panel
from queryard.metrics.response import quantile
from queryard.workload.traces import TaskRecord, Trace, read_trace

from ..outcome import Chart, Experiment, Finding, Outcome, Table, Wish, without_traces
from .jobs import posum_tasks

LEAST_S = 0.1
COMPARED = tuple(PREDICTORS)
MAIN = ("basic", "standard", "detailed", "regression")
# What POSUM printed for its own tasks (table 5.3): mean relative errors.
PRINTED: Mapping[tuple[str, Kind], float] = {
    ("basic", MAP): 0.679,
    ("standard", MAP): 0.350,
    ("detailed", MAP): 0.350,
    ("basic", REDUCE): 1.126,
    ("standard", REDUCE): 5.472,
    ("detailed", REDUCE): 72.458,
}


Errors = dict[str, list[float]]


def replayed(tasks: Iterable[tuple[float, Seen]]) -> dict[Kind, Errors]:
    """The errors of all predictors on tasks as they came, by kind."""
    predictors = {name: make_predictor(name) for name in COMPARED}
    errors: dict[Kind, Errors] = {kind: {name: [] for name in COMPARED} for kind in (MAP, REDUCE)}
    ends: list[tuple[float, int, Seen]] = []
    for number, (start_s, seen) in enumerate(sorted(tasks, key=lambda item: item[0])):
        while ends and ends[0][0] <= start_s:
            ended = heappop(ends)[2]
            for predictor in predictors.values():
                predictor.learn(ended)
        guesses = {name: predictor.predict(seen.asked) for name, predictor in predictors.items()}
        if all(guesses[name] is not None for name in MAIN):
            for name, guess in guesses.items():
                if guess is not None:
                    error = abs(guess - seen.seconds) / max(seen.seconds, LEAST_S)
                    errors[seen.asked.kind][name].append(error)
        heappush(ends, (start_s + seen.seconds, number, seen))
    return errors


def recorded(trace: Trace) -> list[tuple[float, Seen]]:
    """The tasks of a trace as questions and answers."""
    arrivals = {arrival.query.id: arrival.query for arrival in trace.workload.arrivals}
    by_job: dict[str, list[TaskRecord]] = {}
    for task in trace.tasks:
        by_job.setdefault(task.job, []).append(task)
    left = {
        job: sum(task.output_bytes or 0.0 for task in tasks if task.kind == MAP)
        for job, tasks in by_job.items()
    }
    is_spark = trace.format.startswith("Spark")
    found = []
    for job, tasks in by_job.items():
        query_id, _, name = job.partition("/")
        query = arrivals[query_id]
        spec = next(item for item in query.jobs if item.name == name)
        maps = [task for task in tasks if task.kind == MAP]
        reduces = len(tasks) - len(maps)
        shuffled = left[job]
        if is_spark and spec.upstream:
            shuffled = sum(
                task.output_bytes or 0.0
                for before in spec.upstream
                for task in by_job.get(f"{query_id}/{before}", ())
            )
        known = all(task.input_bytes is not None for task in maps)
        asked = Asked(
            job,
            MAP,
            class_of(query, spec),
            query.tenant,
            map_bytes=sum(task.input_bytes or 0.0 for task in maps) if known else None,
            map_tasks=len(maps),
            reduces=reduces,
            shuffled_bytes=shuffled or None,
        )
        for task in tasks:
            if task.start_s is None or task.seconds <= 0:
                continue
            question = asked._replace(
                kind=task.kind,
                input_bytes=task.input_bytes if task.kind == MAP else None,
                is_local=None if not task.locality else task.locality == "local",
            )
            seen = Seen(question, task.seconds, task.output_bytes, task.shuffle_s, task.merge_s)
            found.append((task.start_s, seen))
    return found


def _public(folder: Path) -> Iterable[tuple[str, list[tuple[float, Seen]]]]:
    """Recorded tasks of Spark and of Hadoop, one after another."""
    for title, pattern in (("Spark", "spark-eventlogs/*/*"), ("Rumen", "hadoop-rumen/*trace*")):
        tasks: list[tuple[float, Seen]] = []
        begin_s = 0.0
        for file in sorted(folder.glob(pattern)):
            trace = read_trace(file)
            of_file = recorded(trace)
            if not of_file:
                continue
            shift = begin_s - min(start for start, _ in of_file)
            prefix = f"{file.name}:"
            tasks += [
                (
                    start + shift,
                    seen._replace(asked=seen.asked._replace(job=prefix + seen.asked.job)),
                )
                for start, seen in of_file
            ]
            begin_s = max(start + shift + seen.seconds for start, seen in of_file) + 1.0
        if tasks:
            yield title, tasks


def run(wish: Wish) -> Outcome:
    sources: list[tuple[str, list[tuple[float, Seen]]]] = []
    notes = []
    if wish.traces is not None:
        sources += _public(wish.traces)
    if not sources:
        needs = "spark-eventlogs/ or hadoop-rumen/"
        notes += [f"recorded tasks are {note}" for note in without_traces(wish, needs).notes]
    for seed in range(wish.seeds):
        sources.append((f"POSUM-like, seed {seed}", posum_tasks(seed)))
    gathered: dict[str, dict[Kind, Errors]] = {}
    for title, tasks in sources:
        wish.tell(f"{title}: {len(tasks):,} tasks")
        errors = replayed(tasks)
        group = gathered.setdefault(
            title.partition(",")[0],
            {kind: {name: [] for name in COMPARED} for kind in (MAP, REDUCE)},
        )
        for kind, of_kind in errors.items():
            for name, values in of_kind.items():
                group[kind][name] += values
    tables = [_table(title, errors) for title, errors in gathered.items()]
    findings = [*_printed(gathered.get("POSUM-like", {})), *_targets(gathered)]
    charts = tuple(_chart(title, errors) for title, errors in gathered.items())
    return Outcome(tuple(findings), tuple(tables), charts, tuple(notes))


def _spread(values: Sequence[float]) -> tuple[float, float, float]:
    """(mean, median, p99)."""
    ordered = sorted(values)
    return sum(ordered) / len(ordered), quantile(ordered, 0.5), quantile(ordered, 0.99)


def _table(title: str, errors: Mapping[Kind, Errors]) -> Table:
    rows = []
    for kind, of_kind in errors.items():
        for name, values in of_kind.items():
            if values:
                spread = (f"{value:.3g}" for value in _spread(values))
                rows.append((f"{kind}, {name}", f"{len(values):,}", *spread))
    columns = ("kind, predictor", "tasks", "mean", "median", "p99")
    return Table(f"Relative errors: {title}", columns, tuple(rows))


def _printed(errors: Mapping[Kind, Errors]) -> Iterable[Finding]:
    for (name, kind), printed in PRINTED.items():
        values = errors.get(kind, {}).get(name, [])
        if values:
            what = f"{name}: mean relative error of {kind}s"
            yield Finding(what, f"{printed:.3g}", f"{_spread(values)[0]:.3g}")


def _targets(gathered: Mapping[str, Mapping[Kind, Errors]]) -> Iterable[Finding]:
    """Whether the regression is what it is meant to be."""
    for title, errors in gathered.items():
        for kind, of_kind in errors.items():
            if not of_kind["regression"]:
                continue
            ours, standard = _spread(of_kind["regression"]), _spread(of_kind["standard"])
            yield Finding(
                f"{title}, {kind}s: regression against Standard (mean, median), its p99",
                "below, below, below 5",
                f"{ours[0]:.2f} : {standard[0]:.2f}, {ours[1]:.2f} : {standard[1]:.2f}, "
                f"{ours[2]:.2f}",
                ours[0] < standard[0] and ours[1] < standard[1] and ours[2] < 5,
            )


def _chart(title: str, errors: Mapping[Kind, Errors]) -> Chart:
    """The share of tasks below an error, a line a predictor."""
    panels = []
    for kind, of_kind in errors.items():
        lines = []
        for place, (name, values) in enumerate(of_kind.items()):
            if not values:
                continue
            ordered = sorted(values)
            shares = [step / 200 for step in range(201)]
            x = tuple(max(1e-3, quantile(ordered, share)) for share in shares)
            y = tuple(100 * share for share in shares)
            lines.append(Line(name, x, y, policy_colour(place)))
        if lines:
            x_axis = Axis("relative error", 1e-3, 1e2, "log")
            y_axis = Axis("share of tasks (%)", 0.0, 100.0)
            panels.append(Panel(f"{title}: {kind}s", x_axis, y_axis, lines=tuple(lines)))
    return Chart(f"predictors-{title.lower()}", f"Prediction errors, {title}", tuple(panels))


EXPERIMENT = Experiment(
    "predictors",
    "How well task times are predicted",
    "POSUM §3.2 and tables 5.2 and 5.3",
    run,
    {
        "class of a job": "its name (Hadoop), or its query's description and its place (Spark)",
        "past jobs": "20 of a class, 20 of a tenant",
        "first waves": "none: reduces start when all maps are done, as in the paper's final runs",
    },
)
