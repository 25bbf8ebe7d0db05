"""The page of policies lists all of them, and its profile can be used."""

from __future__ import annotations

from pathlib import Path

import pytest
from blocks import ROOT, blocks_of

from queryard.policies import catalogue, compose, load_profiles
from queryard.policies.compose import settings_of
from queryard.policies.parts import PARTS

PAGE = (ROOT / "docs/policies.md").read_text("utf-8")


def test_profiles_can_be_loaded(tmp_path: Path):
    texts = [block.text for block in blocks_of("docs/policies.md") if block.language == "toml"]
    assert texts
    for text in texts:
        file = tmp_path / "profiles.toml"
        file.write_text(text, "utf-8")
        for name, profile in load_profiles(file).items():
            assert compose(profile).name == name


def test_the_tables_list_every_policy():
    lines = PAGE.replace("\\|", "¦").splitlines()
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in lines]
    for info in catalogue():
        cells = [info.name, info.composition.replace("|", "¦"), info.summary]
        row = f"| `{cells[0]}` | {info.composition.replace('|', chr(92) + '|')} | {cells[2]} |"
        row += f" {info.citation} |" if info.citation else ""
        is_there = [*cells, info.citation] in rows or (not info.citation and cells in rows)
        assert is_there, f"docs/policies.md lacks the row {row}"


@pytest.mark.parametrize("decision", PARTS)
def test_the_table_of_parts_names_each_with_its_settings(decision: str):
    def written(value: object) -> str:
        if isinstance(value, str):
            return f'"{value}"'
        return f"{value:g}" if isinstance(value, int | float) else "none"

    def entry(part: type) -> str:
        settings = [f"{name} {written(p.default)}" for name, p in settings_of(part).items()]
        return f"`{part.name}`" + (f" ({', '.join(settings)})" if settings else "")

    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{decision}` |")]
    parts = f"| {', '.join(map(entry, PARTS[decision].values()))} |"
    assert row.endswith(parts), f"docs/policies.md: the row of `{decision}` must end in {parts}"
