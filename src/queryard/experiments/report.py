"""Outcomes as a page with pictures, and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from queryard.figures.chart import save_chart

from .outcome import Experiment, Finding, Outcome, Table

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.9rem; }
th, td { padding: 0.25rem 0.7rem; border-bottom: 1px solid #ddd; text-align: right; }
th:first-child, td:first-child { text-align: left; }
img { max-width: 100%; } .note { color: #666; }
"""
_AGREES = {True: "yes", False: "no", None: ""}


def write_report(
    folder: Path, results: Mapping[str, tuple[Experiment, Outcome, float]], ran: str
) -> Path:
    """A page with all experiments, how they `ran`, and the images it shows; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = ["<h1>The papers, rerun</h1>", f'<p class="note">{escape(ran)}</p>', _contents(results)]
    for name, (experiment, outcome, wall_s) in results.items():
        parts.append(f'<h2 id="{name}">{escape(experiment.title)}</h2>')
        parts.append(f'<p class="note">{escape(experiment.source)}; ran for {wall_s:,.0f} s</p>')
        if outcome.findings:
            parts.append(_html_table(findings_table(outcome.findings)))
        parts += map(_html_table, outcome.tables)
        for chart in outcome.charts:
            image = f"{chart.name}.png"
            save_chart(str(folder / image), chart.title, chart.panels, chart.keys)
            parts.append(f'<p><img src="{image}" alt="{escape(chart.title)}"></p>')
        parts += [f'<p class="note">{escape(note)}.</p>' for note in outcome.notes]
        if experiment.parameters:
            rows = tuple((key, value) for key, value in experiment.parameters.items())
            parts.append(_html_table(Table("What the source leaves open", ("", "chosen"), rows)))
    page = folder / "index.html"
    body = "\n".join(parts)
    page.write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>The papers, rerun</title>'
        f"<style>{_STYLE}</style><body>{body}</body></html>\n",
        encoding="utf-8",
    )
    return page


def _contents(results: Mapping[str, tuple[Experiment, Outcome, float]]) -> str:
    links = "".join(
        f'<li><a href="#{name}">{escape(experiment.title)}</a></li>'
        for name, (experiment, _, _) in results.items()
    )
    return f"<ul>{links}</ul>"


def _html_table(table: Table) -> str:
    head = "".join(f"<th>{escape(title)}</th>" for title in table.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    return f"<h3>{escape(table.title)}</h3><table><tr>{head}</tr>{rows}</table>"


def findings_table(findings: Sequence[Finding]) -> Table:
    """What the paper printed beside what came out here."""
    rows = tuple(
        (item.what, item.paper, item.ours, _AGREES[item.agrees], item.note) for item in findings
    )
    return Table("The paper and ours", ("", "paper", "ours", "agrees", ""), rows)


def markdown(experiment: Experiment, outcome: Outcome) -> str:
    """An outcome as a section of a Markdown document."""
    parts = [
        f"## {experiment.title}",
        f"`queryard experiment {experiment.name}`; {experiment.source}.",
    ]
    if outcome.findings:
        parts.append(_markdown_table(findings_table(outcome.findings)))
    parts += map(_markdown_table, outcome.tables)
    parts += [f"{note}." for note in outcome.notes]
    if experiment.parameters:
        chosen = "; ".join(f"{key}: {value}" for key, value in experiment.parameters.items())
        parts.append(f"Chosen where the source is silent: {chosen}.")
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: Table) -> str:
    head = "| " + " | ".join(table.columns) + " |"
    rule = "|" + "---|" * len(table.columns)
    rows = ["| " + " | ".join(row) + " |" for row in table.rows]
    return "\n".join([f"**{table.title}**", "", head, rule, *rows])
