"""What a comparison found: scores, a table, sentences, plain data and a figure."""

from __future__ import annotations

import html
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.text import Text

from .portfolios import portfolio_facts, portfolio_tables, scores_by_objective
from .runs import PolicyResult, Reference, save_figures
from .scores import Scores, medians, scores_of_run
from .settings import Settings, describe, differences, setting
from .sources import Source
from .table import best_of, comparison_html, comparison_table
from .verdict import verdict

WIDTH = 80  # of the table as text


@dataclass(frozen=True, slots=True)
class SeedRun:
    """All policies on the workload of one seed, and the references."""

    source: Source
    settings: Settings
    results: tuple[PolicyResult, ...]
    references: tuple[Reference, ...]

    @property
    def rows(self) -> list[Scores]:
        """A row per policy; with its nodes where the number of nodes changed under any policy."""
        rows = [scores_of_run(result.name, result.summary) for result in self.results]
        start = len(self.source.workload.nodes)
        if all(result.nodes.least == result.nodes.most == start for result in self.results):
            return rows
        return [
            replace(
                row,
                mean_nodes=result.nodes.mean,
                most_nodes=int(result.nodes.most),
                node_hours=result.summary.cost.node_hours,
            )
            for row, result in zip(rows, self.results, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        rows, ideals = self.rows, [reference.scores for reference in self.references]
        return {
            **setting(self.source.workload, self.settings),
            "policies": [
                {"policy": row.name, "scores": row.to_json(), "summary": result.summary.to_json()}
                for row, result in zip(rows, self.results, strict=True)
            ],
            "references": [row.to_json() for row in ideals],
            "verdict": verdict(rows, ideals),
            "portfolios": portfolio_facts(self.results),
            "notes": _notes(self.source, rows),
        }


def _notes(source: Source, rows: Sequence[Scores]) -> list[str]:
    counted = [(row.most_nodes, row.name) for row in rows if row.most_nodes is not None]
    if not counted:
        return list(source.notes)
    most, name = max(counted, key=lambda pair: pair[0])
    return [
        *source.notes,
        f"nodes came and went, and there were up to {most:,} (under {name}); slowdowns and ideals "
        f"are for the {len(source.workload.nodes):,} at the start",
    ]


class Comparison:
    """Policies side by side. Shown in a prompt or a notebook, it is the table and the verdict.

    `scores` has the numbers of the table by policy, `references` those of the ideals; over several
    seeds both are medians. `results` has everything else by policy: all metrics (`summary`), the
    journal, a portfolio's decisions; it is of the first seed, and `runs` has every seed.
    """

    def __init__(self, runs: Sequence[SeedRun]) -> None:
        self.runs = tuple(runs)
        first = self.runs[0]
        by_policy = zip(*(run.rows for run in self.runs), strict=True)
        ideals = ([reference.scores for reference in run.references] for run in self.runs)
        self.scores = {rows[0].name: medians(rows) for rows in by_policy}
        self.references = {rows[0].name: medians(rows) for rows in zip(*ideals, strict=True)}
        self.results = {result.name: result for result in first.results}

    @property
    def title(self) -> str:
        """The workload and its cluster in a line."""
        title = describe(self.runs[0].source.workload)
        return title if len(self.runs) == 1 else f"{title}; medians over {len(self.runs)} seeds"

    @property
    def verdict(self) -> str:
        """What the numbers say, in a few sentences."""
        return verdict(*self._rows())

    @property
    def notes(self) -> list[str]:
        """What a reader should know of the workload and its nodes."""
        return _notes(self.runs[0].source, [*self.scores.values()])

    def best(self, metric: str = "mean response") -> str | None:
        """The policy with the best value of a metric; None if no policy has a value.

        The metrics are "mean response", "p95 response", "mean slowdown", "max slowdown", "error",
        "deadlines missed", "makespan", "slots used", "fairness" and "node-hours".
        """
        return best_of(metric, [*self.scores.values()])

    def table(self) -> str:
        """The table as text."""
        return _text(self._table())

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data: what `queryard compare --json` prints.

        Over several seeds: the medians, the verdict on them, and under `seeds` the data of each.
        """
        if len(self.runs) == 1:
            return self.runs[0].to_dict()
        rows, references = self._rows()
        return {
            "policies": [{"policy": row.name, "scores": row.to_json()} for row in rows],
            "references": [row.to_json() for row in references],
            "verdict": self.verdict,
            "seeds": [run.to_dict() for run in self.runs],
        }

    def figure(self, path: Path | str) -> None:
        """Draw the runs of the first seed into a file (.html, .png, .svg or .pdf)."""
        first = self.runs[0]
        save_figures([path], describe(first.source.workload), first.results, first.references)

    def _rows(self) -> tuple[list[Scores], list[Scores]]:
        return [*self.scores.values()], [*self.references.values()]

    def _table(self) -> Group:
        objectives: Mapping[str, Mapping[str, float]] = {}
        if len(self.runs) == 1:
            objectives = scores_by_objective(self.runs[0].results)
        return comparison_table(self.title, *self._rows(), objectives)

    def __rich__(self) -> Group:
        """All of it: table, circumstances, verdict, what portfolios did, and notes."""
        first = self.runs[0]
        shown: list[RenderableType] = [self._table()]
        if circumstances := differences(first.settings, first.source.trace):
            shown.append(Text(f"With {circumstances}.", style="dim"))
        shown.append(Text(self.verdict))
        if len(self.runs) == 1:
            shown += portfolio_tables(first.results)
        shown += [Text(f"Note: {note}.", style="dim") for note in self.notes]
        return Group(*shown)

    def __repr__(self) -> str:
        return _text(self.__rich__())

    def _repr_html_(self) -> str:
        table = comparison_html(self.title, *self._rows())
        return f"{table}\n<p>{html.escape(self.verdict)}</p>"


def _text(shown: RenderableType) -> str:
    out = io.StringIO()
    Console(file=out, width=WIDTH, color_system=None, force_jupyter=False).print(shown)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())
