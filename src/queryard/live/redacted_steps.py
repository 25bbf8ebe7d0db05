"""Steps of the kernel without the values that errors quote."""

from __future__ import annotations

from typing import Any

from queryard.core.journal import Step
from queryard.engine.syntax.redaction import without_values


def without_causes(step: Step) -> Step:
    """A step whose events tell errors without values; commands repeat the causes of events."""
    causes = {cause for event in step.events if (cause := getattr(event, "cause", ""))}
    if not causes:
        return step
    longest_first = sorted(causes, key=len, reverse=True)
    return step._replace(
        events=tuple(_changed(event, longest_first) for event in step.events),
        commands=tuple(_changed(command, longest_first) for command in step.commands),
    )


def _changed(item: Any, causes: list[str]) -> Any:
    told: str = getattr(item, "cause", "")
    for cause in causes:
        told = told.replace(cause, without_values(cause))
    return item._replace(cause=told) if told != getattr(item, "cause", "") else item
