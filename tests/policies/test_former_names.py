"""Names that policies and parts had before are still understood, in profiles and in journals."""

import pytest

from queryard.core.journal import Journal
from queryard.policies import catalogue, resolve_profile
from queryard.policies.catalogue import about
from queryard.policies.compose import compose
from queryard.policies.parts import FORMER_PARTS, PARTS
from queryard.policies.profiles import FORMER_PROFILES
from queryard.sim import replay, simulate
from queryard.workload import load_workload

FORMER = [(key, old, new) for key, names in FORMER_PARTS.items() for old, new in names.items()]


@pytest.mark.parametrize(("decision", "old", "new"), FORMER)
def test_a_former_name_of_a_part_makes_the_part_of_today(decision: str, old: str, new: str) -> None:
    assert old not in PARTS[decision]
    former, today = compose({decision: old}), compose({decision: {"name": new}})
    assert [type(part) for part in former.parts] == [type(part) for part in today.parts]
    assert new in about({decision: {"name": old}}).composition


@pytest.mark.parametrize(("old", "new"), FORMER_PROFILES.items())
def test_a_former_name_of_a_profile_is_the_profile_of_today(old: str, new: str) -> None:
    assert old not in {info.name for info in catalogue()}
    assert resolve_profile(old) == resolve_profile(new)
    assert resolve_profile({"base": old})["order"] == resolve_profile(new)["order"]


def test_a_journal_with_former_names_replays_as_it_was() -> None:
    workload = load_workload("examples/first.toml")
    for profile in ("cost-of-delay", "marshal"):
        journal = simulate(workload, workload.nodes, resolve_profile(profile)).journal
        text = "\n".join(journal.to_lines())
        for _, old, new in FORMER:
            text = text.replace(f'"{new}"', f'"{old}"')
        assert any(old in text for _, old, _ in FORMER)
        assert replay(Journal.from_lines(text.splitlines())) is None
