"""Settings of one client: applied to whichever instance runs its query, and to nothing else.

A pooled instance serves one query at a time. A query with settings has a connection of its own
there, on which they are made again; settings of the whole instance are reset afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from queryard.sql.catalog.quoting import literal

from ..syntax.classify import Classified
from .instance import Connection

_SCOPES = ("global", "session", "local", "persist")
# They name schemas and databases, which must be there first.
_LATE = frozenset({"schema", "search_path"})
# Pragmas that change the one connection they are given on.
_SWITCHES = ("enable_", "disable_")
# Settings of the progress display; Queryard reads the progress itself.
_SHOWN = frozenset({"enable_progress_bar", "enable_progress_bar_print", "progress_bar_time"})
_OF_INSTANCES = ("checkpoint", "logging", "object_cache")


_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting by its name, with the statement that makes it."""

    name: str
    sql: str

    @property
    def is_late(self) -> bool:
        """Whether tables and schemas must be there before it."""
        return self.name == "search_path"

    @property
    def names(self) -> frozenset[str]:
        """The schemas and databases that one of them names."""
        return frozenset(_WORD.findall(self.sql.lower())) - {"set", "use", "search_path", "schema"}


Settings = tuple[Setting, ...]


def noted(
    settings: Settings, statement: Classified, value: Callable[[str], str] | None = None
) -> Settings:
    """The settings of a client after a statement of it; `value` says what one is set to by now.

    An expression may mean something else on another connection: its value is taken.

    >>> from queryard.engine.syntax.classify import classify
    >>> made = ()
    >>> for each in classify("SET TimeZone = 'UTC'; SET default_order = 'desc'; RESET timezone"):
    ...     made = noted(made, each)
    >>> [setting.name for setting in made]
    ['default_order']
    """
    name = _name(statement)
    if name is None:
        return settings
    others = tuple(setting for setting in settings if setting.name != name)
    if statement.words[0] == "reset":
        return others
    if value is not None and "(" in statement.words and "=" in statement.words:
        return (*others, Setting(name, f"SET {name} = {literal(value(name))}"))
    return (*others, Setting(name, statement.sql))


def _name(statement: Classified) -> str | None:
    """What a statement sets; None if other connections do not need it."""
    words = statement.words
    if statement.kind == "LOAD" and words[0] == "load":
        return f"extension {words[1]}"
    if statement.kind == "PRAGMA":
        is_switch = words[1].startswith(_SWITCHES) and not words[1].endswith(_OF_INSTANCES)
        shown = words[1].endswith("progress_bar")
        return f"pragma {words[1].partition('_')[2]}" if is_switch and not shown else None
    if statement.kind != "SET":
        return None
    if words[0] == "use":
        return "search_path"
    named = [word.strip('"') for word in words[1:] if word not in _SCOPES]
    if named[0] == "variable":
        return None
    if named[:2] == ["time", "zone"]:
        return "timezone"
    if named[0] in _SHOWN:
        return None
    return "search_path" if named[0] in _LATE else named[0]


def sets_variable(statement: Classified) -> bool:
    """Whether it sets a variable, which `getvariable` reads on the same connection only."""
    return statement.kind == "SET" and "variable" in statement.words[:3]


def apply(connection: Connection, settings: Iterable[Setting]) -> None:
    """Make settings on a connection; an error is DuckDB's own."""
    for setting in settings:
        connection.run(setting.sql)


def reset(connection: Connection, settings: Iterable[Setting]) -> None:
    """Take settings of the instance off again; those of a connection went with it."""
    for setting in settings:
        if " " not in setting.name and not setting.is_late:
            connection.run(f"RESET {setting.name}")
