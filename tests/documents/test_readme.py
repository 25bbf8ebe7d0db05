"""What the README shows is what happens."""

from __future__ import annotations

import contextlib
import io
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from blocks import ROOT, blocks_of

from queryard.policies import catalogue, compose, load_profiles
from queryard.policies.compose import settings_of
from queryard.policies.parts import PARTS
from queryard.workload import load_workload

README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = blocks_of("README.md")
PROGRAMS = [pair for pair in pairwise(BLOCKS) if pair[0].language == "python"]


def run(program: str) -> str:
    """What a program prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "block", "exec"), {"__name__": "block"})
    return printed.getvalue()


def test_there_are_programs():
    assert len(PROGRAMS) >= 2


@pytest.mark.parametrize("pair", PROGRAMS, ids=range(len(PROGRAMS)))
def test_programs_print_what_stands_below_them(pair, monkeypatch: pytest.MonkeyPatch):
    program, output = pair
    monkeypatch.chdir(ROOT)
    assert output.language == ""
    assert run(program.text) == output.text


def test_profiles_can_be_loaded(tmp_path: Path):
    texts = [block.text for block in BLOCKS if block.language == "toml"]
    assert texts
    for text in texts:
        file = tmp_path / "profiles.toml"
        file.write_text(text, "utf-8")
        for name, profile in load_profiles(file).items():
            assert compose(profile).name == name


def test_the_tables_list_every_policy():
    lines = README.replace("\\|", "¦").splitlines()
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in lines]
    for info in catalogue():
        cells = [info.name, info.composition.replace("|", "¦"), info.summary]
        assert [*cells, info.citation] in rows or (not info.citation and cells in rows)


@pytest.mark.parametrize("decision", PARTS)
def test_the_table_of_parts_names_each_with_its_settings(decision: str):
    def written(value: object) -> str:
        if isinstance(value, str):
            return f'"{value}"'
        return f"{value:g}" if isinstance(value, int | float) else "none"

    def entry(part: type) -> str:
        settings = [f"{name} {written(p.default)}" for name, p in settings_of(part).items()]
        return f"`{part.name}`" + (f" ({', '.join(settings)})" if settings else "")

    (row,) = [line for line in README.splitlines() if line.startswith(f"| `{decision}` |")]
    assert row.endswith(f"| {', '.join(map(entry, PARTS[decision].values()))} |")


def test_the_workloads_of_the_format_can_be_loaded_and_its_program_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    found = blocks_of("docs/workloads.md")
    assert {"toml", "python"} <= {block.language for block in found}
    for number, block in enumerate(found):
        if block.language == "python":
            run(block.text)
        elif block.language == "toml":
            file = tmp_path / f"{number}.toml"
            file.write_text(block.text, "utf-8")
            assert load_workload(file).arrivals


SHOWN = dict.fromkeys(block.text for block in (*BLOCKS, *blocks_of("docs/compare.md")))
COMPARED = [text for text in SHOWN if text.startswith("$ queryard compare")]


@pytest.mark.parametrize("shown", COMPARED, ids=range(len(COMPARED)))
def test_commands_print_what_stands_below_them(
    shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """But for spaces at the ends of lines."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (profiles,) = (block.text for block in BLOCKS if block.text.startswith("# my-profiles.toml"))
    (tmp_path / "my-profiles.toml").write_text(profiles, "utf-8")
    command, _, printed = shown.partition("\n")
    arguments = shlex.split(command.removeprefix("$ queryard"))
    ran = subprocess.run(
        [sys.executable, "-m", "queryard.cli", *arguments],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert [line.rstrip() for line in ran.stdout.splitlines()] == printed.splitlines()
