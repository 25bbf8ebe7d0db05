"""The policy and the metric that CONTRIBUTING adds can be added."""

from __future__ import annotations

import ast
from types import ModuleType

import pytest
from blocks import ROOT, blocks_of

from queryard.core.journal import Journal
from queryard.metrics.runs import read_run
from queryard.policies import catalogue
from queryard.policies.parts import PARTS
from queryard.policies.profiles import PROFILES

BLOCKS = [block.text for block in blocks_of("CONTRIBUTING.md") if block.language == "python"]


def block_with(text: str) -> str:
    (found,) = [block for block in BLOCKS if text in block]
    return found


def source(file: str) -> list[str]:
    return (ROOT / "src/queryard/policies" / file).read_text("utf-8").splitlines()


def module(name: str, text: str) -> ModuleType:
    """The module a block would be, were it written into its file."""
    made = ModuleType(name)
    made.__package__ = name.rpartition(".")[0]
    exec(compile(text, name, "exec"), made.__dict__)
    return made


def test_a_policy_in_five_steps(monkeypatch: pytest.MonkeyPatch):
    rule = module("queryard.policies.orders.least_attained", block_with("class LeastAttained"))
    part = rule.LeastAttained
    monkeypatch.setitem(PARTS["order"], part.name, part)
    listed = block_with('"summary"')
    assert listed.splitlines()[0] in source("profiles.py")
    profile = ast.literal_eval(listed.partition(" = ")[2])[-1]
    monkeypatch.setitem(PROFILES, profile["name"], {"origin": "new", **profile})
    assert profile["name"] in [info.name for info in catalogue()]
    tests = module("test_least_attained", block_with("def test_"))
    names = [name for name in vars(tests) if name.startswith("test_")]
    assert names
    for name in names:
        getattr(tests, name)()


def test_parts_are_registered_as_it_says():
    lines = block_with("ORDERS").splitlines()
    assert lines[0] == "from .orders.least_attained import LeastAttained"
    assert lines[2] in source("parts.py")


def test_a_metric():
    metric = module("queryard.metrics.revoked", block_with("def revoked_slots"))
    assert metric.revoked_slots(read_run(Journal())) == 0
