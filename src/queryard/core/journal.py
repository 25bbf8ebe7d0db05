"""The record of a run: every call of the kernel with its events and the commands they led to.

In JSON lines the first line says the version, the settings and what the kernel started from,
and each further line is one step. `replay` in `queryard.sim` feeds it to a fresh kernel.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .codec import decode, decode_command, decode_event, encode_named
from .commands import Command
from .errors import InvalidRecord
from .events import Event
from .state import Settings

VERSION = 1
# Values of settings that older journals do not name: what kernels did at that time.
BEFORE: Mapping[str, Any] = {"lease_span": "cluster"}


class Step(NamedTuple):
    """One call of `Scheduler.handle`: all events of an instant, and what was decided."""

    time_s: float
    events: tuple[Event, ...]
    commands: tuple[Command, ...]


@dataclass(slots=True)
class Journal:
    """A run's steps, with the settings and the profile its kernel was made with."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    profile: Mapping[str, Any] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def kernel_settings(self) -> Settings:
        """What its kernel was started with; a setting that is younger than the journal is off."""
        return decode(Settings, {**BEFORE, **self.settings}, "settings")

    def to_lines(self) -> Iterator[str]:
        head = {"queryard_journal": VERSION, "settings": self.settings, "profile": self.profile}
        yield json.dumps(head)
        for step in self.steps:
            yield json.dumps(
                {
                    "time_s": step.time_s,
                    "events": [encode_named(event) for event in step.events],
                    "commands": [encode_named(command) for command in step.commands],
                }
            )

    @classmethod
    def from_lines(cls, lines: Iterable[str]) -> Journal:
        """Read a journal; an unreadable line is named with its number."""
        journal: Journal | None = None
        for number, line in enumerate(lines, 1):
            where = f"line {number}"
            try:
                data = json.loads(line)
            except json.JSONDecodeError as error:
                raise InvalidRecord(f"{where}: not JSON ({error.msg})") from error
            if journal is None:
                journal = cls._from_head(data, where)
                continue
            journal.steps.append(cls._read_step(data, where))
        if journal is None:
            raise InvalidRecord("line 1: an empty file is not a journal")
        return journal

    @staticmethod
    def _read_step(data: Any, where: str) -> Step:
        if not isinstance(data, dict) or not {"time_s", "events", "commands"} <= data.keys():
            raise InvalidRecord(f"{where}: expected time_s, events and commands")
        time_s, events, commands = data["time_s"], data["events"], data["commands"]
        if isinstance(time_s, bool) or not isinstance(time_s, int | float):
            raise InvalidRecord(f"{where}: time_s must be a number, got {time_s!r}")
        if not isinstance(events, list) or not isinstance(commands, list):
            raise InvalidRecord(f"{where}: events and commands must be lists")
        return Step(
            time_s,
            tuple(decode_event(item, where) for item in events),
            tuple(decode_command(item, where) for item in commands),
        )

    @classmethod
    def _from_head(cls, data: Any, where: str) -> Journal:
        if not isinstance(data, dict) or "queryard_journal" not in data:
            raise InvalidRecord(f"{where}: not the first line of a journal")
        version = data["queryard_journal"]
        if version != VERSION or isinstance(version, bool):
            raise InvalidRecord(f"{where}: journal version {version!r}; this reads {VERSION}")
        settings, profile = data.get("settings", {}), data.get("profile", {})
        if not isinstance(settings, dict) or not isinstance(profile, dict):
            raise InvalidRecord(f"{where}: settings and profile must be tables")
        return cls(settings, profile)
