"""Settings of a connection: how its queries are scheduled. The client has no other way to say it.

They stand at the beginning of a text: DuckDB's parser knows no names with a dot there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ..query_settings import check_setting

_NAME = r"(queryard\.\w+)"
_STATEMENT = re.compile(
    rf"\s*(?:SET\s+(?:SESSION\s+)?{_NAME}\s*(?:=|\sTO\s)\s*('(?:[^']|'')*'|[\w.+-]+)"
    rf"|RESET\s+{_NAME}|SHOW\s+{_NAME})\s*(?:;|$)",
    re.IGNORECASE,
)


@dataclass
class Settings:
    """Values by name, as they were written.

    >>> settings = Settings()
    >>> settings.take("SET queryard.deadline = '10 s'; SELECT 42")
    ('SELECT 42', [], ['queryard.deadline'])
    >>> settings.values
    {'queryard.deadline': '10 s'}
    >>> settings.take("RESET queryard.deadline")
    ('', [], ['queryard.deadline'])
    """

    values: dict[str, str] = field(default_factory=dict)

    def take(self, sql: str) -> tuple[str, list[tuple[str, str]], list[str]]:
        """Do what stands at the beginning of a text.

        Returns the rest of it, names and values to be shown, and the names of what was set.
        """
        shown: list[tuple[str, str]] = []
        changed: list[str] = []
        while (found := _STATEMENT.match(sql)) is not None:
            to_set, value, to_reset, to_show = found.groups()
            sql = sql[found.end() :].lstrip()
            name = (to_set or to_reset or to_show).lower()
            value = _plain(value or "")
            check_setting(name, value)
            if to_show:
                shown.append((name, self.values.get(name, "")))
                continue
            changed.append(name)
            if value:
                self.values[name] = value
            else:
                self.values.pop(name, None)
        return sql, shown, changed


def _plain(value: str) -> str:
    if value.startswith("'"):
        return value[1:-1].replace("''", "'")
    return "" if value.lower() == "default" else value
