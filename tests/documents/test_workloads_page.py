"""The workloads that the page of the format shows can be loaded, and its program runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from blocks import blocks_of

from queryard.workload import load_workload


def test_the_workloads_of_the_format_can_be_loaded_and_its_program_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    found = blocks_of("docs/workloads.md")
    assert {"toml", "python"} <= {block.language for block in found}
    for number, block in enumerate(found):
        if block.language == "python":
            exec(compile(block.text, "block", "exec"), {"__name__": "block"})
        elif block.language == "toml":
            file = tmp_path / f"{number}.toml"
            file.write_text(block.text, "utf-8")
            assert load_workload(file).arrivals
