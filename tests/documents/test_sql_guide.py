"""What docs/sql.md shows is what happens."""

from __future__ import annotations

import contextlib
import io
import warnings
from itertools import pairwise
from pathlib import Path

import pytest
from blocks import ROOT, blocks_of

from queryard.sql.catalog import open_catalog

BLOCKS = blocks_of("docs/sql.md")
PROGRAMS = [pair for pair in pairwise(BLOCKS) if pair[0].language == "python"]


def test_there_are_programs():
    assert len(PROGRAMS) >= 2


@pytest.mark.parametrize("pair", PROGRAMS, ids=range(len(PROGRAMS)))
def test_programs_print_what_stands_below_them(pair, monkeypatch: pytest.MonkeyPatch):
    program, output = pair
    monkeypatch.chdir(ROOT)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas prefers SQLAlchemy
        exec(compile(program.text, "block", "exec"), {"__name__": "block"})
    assert output.language == ""
    assert printed.getvalue() == output.text


def test_the_catalog_file_can_be_opened(tmp_path: Path):
    (text,) = [block.text for block in BLOCKS if block.language == "toml"]
    for file in ("customers-1.csv", "customers-2.csv", "archive/old.csv", "events.txt"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("id,name\n1,a\n")
    # Databases and Parquet are other tests' business.
    lines = [line for line in text.splitlines() if ".parquet" not in line and ".duckdb" not in line]
    (tmp_path / "catalog.toml").write_text("\n".join(lines))
    catalog = open_catalog(tmp_path / "catalog.toml")
    assert {"sales.customers", "events", "archive.old"} <= set(catalog)
