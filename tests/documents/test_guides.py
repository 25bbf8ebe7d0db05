"""What the guides in docs/ show is what happens."""

from __future__ import annotations

import contextlib
import io
import warnings
from itertools import pairwise
from pathlib import Path

import pytest
from blocks import ROOT, blocks_of

import queryard
from queryard.sql.catalog import open_catalog

GUIDES = {name: blocks_of(f"docs/{name}.md") for name in ("compare", "live", "sql")}
PROGRAMS = [
    pair for blocks in GUIDES.values() for pair in pairwise(blocks) if pair[0].language == "python"
]


def test_there_are_programs():
    assert len(PROGRAMS) >= 3


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
    (text,) = [block.text for block in GUIDES["sql"] if block.language == "toml"]
    for file in ("customers-1.csv", "customers-2.csv", "archive/old.csv", "events.txt"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("id,name\n1,a\n")
    # Databases and Parquet are other tests' business.
    lines = [line for line in text.splitlines() if ".parquet" not in line and ".duckdb" not in line]
    (tmp_path / "catalog.toml").write_text("\n".join(lines))
    catalog = open_catalog(tmp_path / "catalog.toml")
    assert {"sales.customers", "events", "archive.old"} <= set(catalog)


def test_the_catalog_file_with_tenants_can_be_opened(tmp_path: Path):
    (text,) = [block.text for block in GUIDES["live"] if block.language == "toml"]
    (tmp_path / "orders.csv").write_text("id,name\n1,a\n")
    (tmp_path / "catalog.toml").write_text(text.replace("16 GB", "1 GB"))
    with queryard.connect(tmp_path / "catalog.toml", history=False) as qy:
        assert qy.slots == 8
        assert qy.sql("FROM orders", tenant="sales/emea").fetchall() == [(1, "a")]
