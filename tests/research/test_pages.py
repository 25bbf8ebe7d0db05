"""The stored pages: one per paper, a section per experiment."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from research import EXPERIMENTS, JOINTS, PAGES, PAPERS
from research.outcome import Finding, Outcome, Verdict
from research.pages import with_section
from research.report import markdown
from research.sections import Section, section_of

FOLDER = Path(__file__).parents[2] / "docs" / "experiments"
VERDICTS = {"", *(verdict.value for verdict in Verdict)}
PAGE = "# Paper\n\nWords.\n\n## One\n\nold\n\n## One more\n\nstays\n"


def section(title: str) -> Section:
    outcome = Outcome((Finding("it", "1", "2", Verdict.OTHER_SIZE),))
    return Section("one", title, "§1", "python -m research one", outcome)


def test_a_section_takes_the_place_of_the_one_of_its_title_and_the_rest_stays() -> None:
    page = with_section(PAGE, section("One"))
    assert page.startswith("# Paper\n\nWords.\n\n## One\n\n`python -m research one`; §1.\n")
    assert "| it | 1 | 2 | same direction, other size |  |" in page
    assert "old" not in page
    assert page.endswith("\n\n## One more\n\nstays\n")
    assert with_section(page, section("One")) == page


def test_a_new_section_is_put_at_the_end() -> None:
    assert with_section(PAGE, section("Two")).startswith(PAGE)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_experiment_has_its_section_in_the_stored_page(paper: str) -> None:
    text = (FOLDER / f"{paper}.md").read_text("utf-8")
    for item in (*EXPERIMENTS.values(), *JOINTS):
        if PAGES.get(item.name) == paper:
            assert f"\n## {item.title}\n" in text
            names = item.of if item in JOINTS else (item.name,)
            assert f"`python -m research {' '.join(names)}`; {item.source}." in text


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name in PAGES])
def test_the_stored_page_says_what_was_chosen_as_the_code_does(name: str) -> None:
    text = (FOLDER / f"{PAGES[name]}.md").read_text("utf-8")
    chosen = markdown(section_of(EXPERIMENTS[name], Outcome(), 5, 1.0)).splitlines()[-1]
    assert chosen in text


@pytest.mark.parametrize("paper", PAPERS)
def test_the_stored_verdicts_are_those_of_the_rule(paper: str) -> None:
    text = (FOLDER / f"{paper}.md").read_text("utf-8")
    tables = re.findall(
        r"^\|  \| paper \| ours \| verdict[^\n]*\n\|[-|]+\n((?:\|.*\n)+)", text, re.M
    )
    assert tables
    rows = [line[2:-2].split(" | ") for table in tables for line in table.splitlines()]
    assert {len(row) for row in rows} == {5}
    assert {row[3].strip() for row in rows} <= VERDICTS


def test_the_index_names_every_page_and_no_page_is_left_out() -> None:
    index = (FOLDER / "index.md").read_text("utf-8")
    assert {page.stem for page in FOLDER.glob("*.md")} == {"index", *PAPERS}
    assert all(f"({paper}.md)" in index for paper in PAPERS)


def test_results_are_put_into_pages(call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "research.EXPERIMENTS",
        {"tls-lodfa": replace(EXPERIMENTS["tls-lodfa"], run=lambda options: Outcome(notes=("x",)))},
    )
    (tmp_path / "tls.md").write_text("# TLS\n\nWords.\n")
    assert call("all", "--pages", tmp_path).code == 0
    page = (tmp_path / "tls.md").read_text()
    assert page.startswith("# TLS\n\nWords.\n\n## LoDFA on one query alone")
    assert "\n\nx.\n" in page
    for wrong in (("--seeds", 2), ("--size", 0.5)):
        ended = call("all", "--pages", tmp_path, *wrong)
        assert ended.code == 2
        assert "usual seeds and size" in ended.err
    assert call("all", "--pages", tmp_path / "none").code == 2
