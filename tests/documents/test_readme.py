"""What the README shows is what happens, and it is short."""

from __future__ import annotations

import contextlib
import io
import re
from itertools import pairwise

import pytest
from blocks import ROOT, blocks_of

README = (ROOT / "README.md").read_text("utf-8")
PAGES = ("README.md", "docs/kernel.md")
PROGRAMS = [
    pair for page in PAGES for pair in pairwise(blocks_of(page)) if pair[0].language == "python"
]


@pytest.mark.parametrize("pair", PROGRAMS, ids=range(len(PROGRAMS)))
def test_programs_print_what_stands_below_them(pair, monkeypatch: pytest.MonkeyPatch):
    program, output = pair
    monkeypatch.chdir(ROOT)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program.text, "block", "exec"), {"__name__": "block"})
    assert output.language == ""
    assert printed.getvalue() == output.text


def test_there_are_programs():
    assert len(PROGRAMS) >= 3


@pytest.mark.parametrize(
    ("document", "most"),
    [("README.md", 8_000), ("ARCHITECTURE.md", 20_000), ("docs/glossary.md", 4_500)],
)
def test_it_stays_short(document: str, most: int):
    assert len((ROOT / document).read_bytes()) <= most


def documents() -> list[str]:
    return [
        str(file.relative_to(ROOT)) for file in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
    ]


@pytest.mark.parametrize("document", documents())
def test_links_lead_somewhere(document: str):
    text = (ROOT / document).read_text("utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target:
            assert (ROOT / document).parent.joinpath(target).exists(), target
