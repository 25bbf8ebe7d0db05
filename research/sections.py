"""What is said of experiments that have ended, well or not, and of several together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from queryard.core.errors import QueryardError

from .outcome import Experiment, Joint, Outcome, of_seeds


@dataclass(frozen=True, slots=True)
class Section:
    """An outcome and how it came about; `failure` says why there is none."""

    name: str
    title: str
    source: str
    command: str
    outcome: Outcome = field(default_factory=Outcome)
    how: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    failure: str = ""
    seeds: int = 0


def section_of(experiment: Experiment, outcome: Outcome, seeds: int, wall_s: float) -> Section:
    return Section(
        experiment.name,
        experiment.title,
        experiment.source,
        _command(experiment.name),
        outcome,
        f"asked for {of_seeds(seeds)}; ran for {wall_s:,.0f} s",
        experiment.parameters,
        seeds=seeds,
    )


def failed_section(experiment: Experiment, error: Exception, wall_s: float) -> Section:
    return Section(
        experiment.name,
        experiment.title,
        experiment.source,
        _command(experiment.name),
        how=f"failed after {wall_s:,.0f} s",
        failure=reason(error),
    )


def reason(error: Exception) -> str:
    """Why it failed, in a line; of errors that are no user's, with their kind."""
    told = " ".join(str(error).split())
    return told if isinstance(error, QueryardError) else f"{type(error).__name__}: {told}"


def joint_sections(joints: Iterable[Joint], sections: Sequence[Section]) -> list[Section]:
    """What can be said now that could not before the last of the sections."""
    by_name = {section.name: section for section in sections}
    found = []
    for joint in joints:
        members = [by_name[name].outcome for name in joint.of if name in by_name]
        is_new = bool(sections) and sections[-1].name in joint.of
        if is_new and len(members) == len(joint.of) and all(of.material for of in members):
            command = _command(*joint.of)
            outcome = joint.judge(members)
            found.append(Section(joint.name, joint.title, joint.source, command, outcome))
    return found


def _command(*names: str) -> str:
    return f"python -m research {' '.join(names)}"
