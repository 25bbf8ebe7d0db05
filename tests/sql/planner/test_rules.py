"""Every rule of the planner by its fixture: a file of rules/ per module of `queryard.sql.planner`.

A fixture has the rule in a sentence, `plans` (a statement and the jobs it becomes, with texts that
its tasks have or lack) and statements that are `refused`, each with the reason. The tables are
those of `planner_tables`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from planner_tables import paper_catalog

from queryard.sql.planner import (
    NotStageable,
    StagedPlan,
    join_order,
    plan_staged,
    pushdown,
    staging,
)

RULES = {
    file.stem: tomllib.loads(file.read_text("utf-8"))
    for file in sorted((Path(__file__).parent / "rules").glob("*.toml"))
}
# The rewriting rules, each with what the planner would do without it.
WITHOUT: dict[str, tuple[object, str, Callable[..., Any]]] = {
    "conditions": (pushdown, "factored", list),
    "distinct": (staging.DistinctInTwo, "run", lambda self, root: root),
    "join_order": (join_order, "_rank", lambda joined, cardinality: (0.0, 0.0)),
    "prune": (staging, "pruned", lambda root: root),
    "pushdown": (staging.Pushdown, "run", lambda self, root: root),
    "sideways": (staging.Sideways, "run", lambda self, root: root),
}


def cases(kind: str) -> list[Any]:
    return [
        pytest.param(case, id=f"{name}: {case.get('what', case['sql'])}")
        for name, fixture in RULES.items()
        for case in fixture.get(kind, ())
    ]


def violations(case: dict[str, Any]) -> list[str]:
    """In what a plan differs from the case."""
    found = plan_staged(case["sql"], paper_catalog(), **case.get("sizes", {}))
    jobs = [f"{job.operator}: {job.description}" for job in found.jobs]
    texts = "\n".join(task_texts(found))
    return [
        *([] if jobs == case["jobs"] else [f"the jobs are {jobs}"]),
        *(f"no task has {text!r}" for text in case.get("has", ()) if text not in texts),
        *(f"a task has {text!r}" for text in case.get("lacks", ()) if text in texts),
    ]


def task_texts(plan: StagedPlan) -> Iterator[str]:
    for job in plan.jobs:
        yield from (plan.task(job.name, "map", task).sql for task in range(job.map_tasks))
        yield from (plan.task(job.name, "reduce", task).sql for task in range(job.partitions))


@pytest.mark.parametrize("case", cases("plans"))
def test_a_statement_becomes_these_jobs(case: dict[str, Any]) -> None:
    assert violations(case) == []


@pytest.mark.parametrize("case", cases("refused"))
def test_a_statement_that_cannot_be_split_is_refused_with_the_reason(case: dict[str, Any]) -> None:
    with pytest.raises(NotStageable) as refused:
        plan_staged(case["sql"], paper_catalog())
    assert case["reason"] in refused.value.reason
    assert refused.value.reason in str(refused.value)


@pytest.mark.parametrize("name", RULES)
def test_a_fixture_is_that_of_a_module_and_says_its_rule(name: str) -> None:
    assert find_spec(f"queryard.sql.planner.{name}") is not None
    fixture = RULES[name]
    assert fixture["rule"].endswith(".")
    assert fixture.keys() <= {"rule", "plans", "refused"}
    assert fixture["plans"]


@pytest.mark.parametrize("name", WITHOUT)
def test_without_the_rule_its_fixture_fails(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*WITHOUT[name])
    for case in RULES[name]["plans"]:
        try:
            if violations(case):
                return
        except NotStageable:
            return
    pytest.fail(f"rules/{name}.toml does not show what {name} does")
