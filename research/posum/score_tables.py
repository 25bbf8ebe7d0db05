"""The tables of `posum-scores`: all schedulers by all measures, beside what was printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from research.numbers import ROUNDED, as_percent
from research.outcome import Interval, Table, interval, of_seeds

from .published import PUBLISHED, Published, Score, score
from .schedulers import MODES, POLICIES, TITLES, Played, best_of, gap

Runs = Mapping[str, Sequence[Played]]


def _published(title: str) -> Mapping[str, Published]:
    return PUBLISHED.get(int(title.split()[-1]), {}) if title[-1].isdigit() else {}


def _seeds(groups: Mapping[str, Runs]) -> str:
    """On how many runs of each scheduler a table rests."""
    return of_seeds(min(len(of) for runs in groups.values() for of in runs.values()))


def parts_table(title: str, runs: Runs) -> Table:
    """The mixed score and its parts, with margins of 90 % as printed and ours at 95 %."""
    paper = _published(title)
    measures: tuple[tuple[Callable[[Played], float], Callable[[Published], Score]], ...] = (
        (lambda run: run.score("mixed"), lambda row: row.mixed),
        (lambda run: run.batch, lambda row: row.batch),
        (lambda run: run.deadline, lambda row: row.deadline),
    )
    rows = []
    for name in runs:
        cells = [TITLES[name]]
        for ours, theirs in measures:
            values = [ours(run) for run in runs[name]]
            if paper:
                cells.append(str(theirs(paper[name])))
            cells.append(str(score(values)))
            if ours is measures[0][0]:
                cells.append(interval(values).text(ROUNDED))
        rows.append(tuple(cells))
    columns = ["scheduler"]
    for measure in ("mixed", "batch", "deadline"):
        columns += [f"{measure}, paper"] * bool(paper) + [f"{measure}, ours"]
        columns += ["95 % interval"] * (measure == "mixed")
    told = f"{title.capitalize()}: scores ± 90 % ({_seeds({title: runs})})"
    return Table(told, tuple(columns), tuple(rows))


def objectives_table(groups: Mapping[str, Runs]) -> Table:
    """All schedulers by every objective, as the thesis weighs them."""
    rows = []
    for title, runs in groups.items():
        paper = _published(title)
        for name in runs:
            cells = [f"{title}, {TITLES[name]}"]
            # Of the parts that were printed, 100·S_B and V_D; the other one hardly counts.
            for objective, factor in (("batch", 10), ("deadline", 1000)):
                printed = f"{factor * paper[name].by(objective):,.0f}" if paper else ""
                values = [run.score(objective) for run in runs[name]]
                cells += [printed, interval(values).text(ROUNDED)]
            rows.append(tuple(cells))
    columns = (
        "workload, scheduler",
        "batch objective, paper",
        "ours (95 %)",
        "deadline objective, paper",
        "ours (95 %)",
    )
    told = f"Scores by the two other objectives ({_seeds(groups)})"
    return Table(told, columns, tuple(rows))


def hindsight_table(groups: Mapping[str, Runs]) -> Table:
    """The portfolio in the mode of an objective against the best policy for it in hindsight."""
    rows = []
    for title, runs in groups.items():
        paper = _published(title)
        for objective in [mode for mode in MODES if mode in runs]:
            best = best_of(runs, POLICIES, objective)
            found = gap_of(runs, objective, best, objective)
            printed = best_printed = ""
            if paper:
                named = min(POLICIES, key=lambda name: paper[name].by(objective))
                share = paper[objective].by(objective) / paper[named].by(objective)
                best_printed, printed = TITLES[named], as_percent(share - 1)
            rows.append(
                (
                    f"{title}, {objective} objective",
                    best_printed,
                    printed,
                    TITLES[best],
                    text_of(found),
                )
            )
    columns = (
        "workload, objective",
        "best policy, paper",
        "portfolio against it, paper",
        "best policy, ours",
        "portfolio against it, ours",
    )
    told = f"The best policy in hindsight, and the gap to it ({_seeds(groups)})"
    return Table(told, columns, tuple(rows))


def ours_table(groups: Mapping[str, Runs], ours: Runs) -> Table:
    """The published rule of the portfolio beside ours, in mixed mode."""
    rows = []
    for title, runs in groups.items():
        best = best_of(runs, POLICIES, "mixed")
        own = gap_of({**runs, "ours": ours[title]}, "ours", best, "mixed")
        scores = (runs[best], runs["mixed"], ours[title])
        rows.append(
            (
                f"{title} (best policy: {TITLES[best]})",
                *(interval([run.score("mixed") for run in of]).text(ROUNDED) for of in scores),
                text_of(gap_of(runs, "mixed", best, "mixed")),
                text_of(own),
            )
        )
    columns = (
        *("workload", "best policy", "published rule", "ours"),
        *("published, against the best", "ours, against the best"),
    )
    told = f"Our portfolio (margin, period by the queue): mixed ({_seeds(groups)})"
    return Table(told, columns, tuple(rows))


def gap_of(runs: Runs, name: str, best: str, objective: str) -> Interval | None:
    """How far a scheduler is above another on an objective."""
    ours, theirs = ([run.score(objective) for run in runs[scheduler]] for scheduler in (name, best))
    return gap(ours, theirs)


def text_of(found: Interval | None) -> str:
    return "no violation to compare with" if found is None else found.text(as_percent)
