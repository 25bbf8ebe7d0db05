"""Outcomes as a page with pictures, and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from queryard.figures.chart import save_chart

from .judging import FACTOR
from .outcome import Table
from .sections import Section

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.9rem; }
th, td { padding: 0.25rem 0.7rem; border-bottom: 1px solid #ddd; text-align: right; }
th:first-child, td:first-child { text-align: left; }
img { max-width: 100%; } .note { color: #666; } .failed { color: #b00; font-weight: bold; }
"""
_TITLE = "The papers, rerun"
LEGEND = (
    f"A result agrees if its direction is the printed one and its size is within a factor of "
    f"{FACTOR:g} of the printed size; where only a direction was printed, the direction alone is "
    "judged. There is no verdict where chance could decide it, as the interval reaches to the "
    "other side, or where nothing was printed. One seed gives no interval, and chance may have "
    "decided all of it."
)


class Report:
    """A page with all that has ended; it is replaced whole, so that it can be read at any time."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._drawn: set[str] = set()

    @property
    def page(self) -> Path:
        return self._folder / "index.html"

    def write(self, sections: Sequence[Section], ran: str) -> Path:
        """All sections and how they `ran`, with the images that were not drawn before."""
        parts = [f"<h1>{_TITLE}</h1>"]
        parts += [f'<p class="note">{escape(line)}</p>' for line in (ran, LEGEND)]
        parts.append(_contents(sections))
        for section in sections:
            self._draw(section)
            parts += _html_section(section)
        body = "\n".join(parts)
        beside = self.page.with_suffix(".html.part")
        beside.write_text(
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{_TITLE}</title>'
            f"<style>{_STYLE}</style><body>{body}</body></html>\n",
            encoding="utf-8",
        )
        beside.replace(self.page)
        return self.page

    def _draw(self, section: Section) -> None:
        for chart in section.outcome.charts:
            if chart.name not in self._drawn:
                image = self._folder / f"{chart.name}.png"
                save_chart(str(image), chart.title, chart.panels, chart.keys)
                self._drawn.add(chart.name)


def _html_section(section: Section) -> list[str]:
    outcome = section.outcome
    told = "; ".join(filter(None, (section.source, section.how)))
    parts = [
        f'<h2 id="{section.name}">{escape(section.title)}</h2>',
        f'<p class="note">{escape(told)}</p>',
    ]
    if section.failure:
        parts.append(f'<p class="failed">Failed: {escape(section.failure)}</p>')
    if outcome.findings:
        parts.append(_html_table(findings_table(section)))
    parts += map(_html_table, outcome.tables)
    parts += [
        f'<p><img src="{chart.name}.png" alt="{escape(chart.title)}"></p>'
        for chart in outcome.charts
    ]
    parts += [f'<p class="note">{escape(note)}.</p>' for note in outcome.notes]
    if section.parameters:
        rows = tuple(section.parameters.items())
        parts.append(_html_table(Table("What the source leaves open", ("", "chosen"), rows)))
    return parts


def _contents(sections: Sequence[Section]) -> str:
    links = "".join(
        f'<li><a href="#{section.name}">{escape(section.title)}</a>'
        f"{' (failed)' if section.failure else ''}</li>"
        for section in sections
    )
    return f"<ul>{links}</ul>"


def _html_table(table: Table) -> str:
    head = "".join(f"<th>{escape(title)}</th>" for title in table.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    return f"<h3>{escape(table.title)}</h3><table><tr>{head}</tr>{rows}</table>"


def findings_table(section: Section) -> Table:
    """What the paper printed beside what came out here."""
    rows = tuple(
        (
            item.what,
            item.paper,
            item.ours,
            item.verdict.value if item.verdict else "",
            item.note,
        )
        for item in section.outcome.findings
    )
    verdict = "verdict, by one seed" if section.seeds == 1 else "verdict"
    return Table("The paper and ours", ("", "paper", "ours", verdict, ""), rows)


def markdown(section: Section) -> str:
    """A section of a Markdown document."""
    outcome = section.outcome
    parts = [f"## {section.title}", f"`{section.command}`; {section.source}."]
    if section.failure:
        parts.append(f"Failed: {section.failure}.")
    if outcome.findings:
        parts.append(_markdown_table(findings_table(section)))
    parts += map(_markdown_table, outcome.tables)
    parts += [f"{note}." for note in outcome.notes]
    if section.parameters:
        chosen = "; ".join(f"{key}: {value}" for key, value in section.parameters.items())
        parts.append(f"Chosen where the source is silent: {chosen}.")
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: Table) -> str:
    head = "| " + " | ".join(table.columns) + " |"
    rule = "|" + "---|" * len(table.columns)
    rows = ["| " + " | ".join(row) + " |" for row in table.rows]
    return "\n".join([f"**{table.title}**", "", head, rule, *rows])
