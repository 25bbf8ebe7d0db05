"""The specs in examples/ and docs/ can be read and drawn."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from queryard.load import draw, examples, read_spec

ROOT = Path(__file__).parents[2]
SPECS = sorted((ROOT / "examples" / "load").glob("*.toml"))


@pytest.mark.parametrize("file", SPECS, ids=lambda file: file.stem)
def test_every_example_is_a_load(file: Path):
    spec = read_spec(file)
    work_s = dict.fromkeys(spec.templates, 0.1)
    requests = draw(spec, work_s=work_s, slots=2)
    assert {ask.tenant for ask in requests} == {asker.name for asker in spec.askers}
    assert {ask.template for ask in requests} <= set(examples(spec))


def test_the_shortest_spec_of_the_guide(tmp_path: Path):
    guide = (ROOT / "docs" / "load.md").read_text("utf-8")
    (text,) = re.findall(r"^```toml\n(.*?)^```$", guide, re.M | re.S)
    (tmp_path / "spec.toml").write_text(text)
    requests = draw(read_spec(tmp_path / "spec.toml"))
    assert sorted(ask.template for ask in requests) == [f"s.q{n:02d}" for n in range(1, 23)]


def test_every_key_of_a_spec_is_in_the_guide():
    from queryard.workload.load import read

    guide = (ROOT / "docs" / "load.md").read_text("utf-8")
    keys = {*read.SPEC_FIELDS, *read.DATA_FIELDS, *read.TENANT_FIELDS, *read.ARRIVAL_FIELDS}
    keys |= {key for own in read.ARRIVAL_FIELDS.values() for key in own}
    assert [key for key in sorted(keys) if f"`{key}`" not in guide] == []
