"""Reading the tables of a file field by field, so that every error names the line.

A table declares its fields first: a misspelt field is reported as unknown, with the valid names,
and not as a missing one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

from queryard.core.amounts import parse_bytes, parse_seconds
from queryard.core.errors import InvalidRecord, unknown_name
from queryard.core.positions import Path


@dataclass(frozen=True)
class Source:
    """A file's text, and how to find the line of a value in it once one is at fault."""

    name: str
    text: str
    find_lines: Callable[[str], Mapping[Path, int]]

    @cached_property
    def _lines(self) -> Mapping[Path, int]:
        return self.find_lines(self.text)

    def line_of(self, path: Path) -> int:
        """The line of a value, or of the innermost table around it that is written down."""
        while path not in self._lines:
            path = path[:-1]
        return self._lines[path]


class Fields:
    """One table of a file: its place, its name for people, and typed access to its fields."""

    def __init__(
        self, source: Source, path: Path, data: object, label: str, valid: Iterable[str]
    ) -> None:
        self.source, self.path, self.label = source, path, label
        if not isinstance(data, dict):
            self.fail(None, f"expected a table of fields, got {data!r}")
        self._data: dict[str, Any] = data
        names = tuple(valid)
        for name in data:
            if name not in names:
                self.fail(name, unknown_name("field", name, names))

    def fail(self, field: str | None, problem: str, path: Path = ()) -> NoReturn:
        """Raise the error that names file, line, table and field; `path` leads further inside."""
        at = self.path if field is None else (*self.path, field, *path)
        place = [self.source.name, f"line {self.source.line_of(at)}", self.label]
        if field is not None and field in self._data:
            place.append(field)
        raise InvalidRecord(f"{', '.join(filter(None, place))}: {problem}")

    def __contains__(self, field: str) -> bool:
        return field in self._data

    def __getitem__(self, field: str) -> Any:
        return self._data[field]

    def text(self, field: str, default: str | None = None) -> str:
        value = self._get(field, default)
        if not isinstance(value, str) or (not value and default is None):
            self.fail(field, f"expected a text in quotes, got {value!r}")
        return value

    def name(self, field: str, default: str | None = None) -> str:
        """A text that becomes a part of ids, in which '/' separates."""
        value = self.text(field, default)
        if not value or "/" in value:
            self.fail(field, f"a name may not be empty or contain '/', got {value!r}")
        return value

    def choice(self, field: str, valid: Sequence[str], default: str) -> str:
        value = self._get(field, default)
        if value not in valid:
            self.fail(field, unknown_name(field, value, valid))
        return str(value)

    def flag(self, field: str) -> bool:
        value = self._get(field, False)
        if not isinstance(value, bool):
            self.fail(field, f"expected true or false, got {value!r}")
        return value

    def whole(self, field: str, default: int | None = None, least: int = 1) -> int:
        value = self._get(field, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.fail(field, f"expected a whole number of at least {least}, got {value!r}")
        return value

    def number(self, field: str, default: float, least: float = -math.inf) -> float:
        value = self._get(field, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fail(field, f"expected a number, got {value!r}")
        if not (math.isfinite(value) and value >= least):
            bound = "" if least == -math.inf else f" of at least {least:g}"
            self.fail(field, f"expected a finite number{bound}, got {value!r}")
        return float(value)

    def positive(self, field: str, default: float) -> float:
        """A number above 0, such as a speed or a weight."""
        value = self.number(field, default)
        if not value > 0:
            self.fail(field, f"must be above 0, got {value!r}")
        return value

    def share(self, field: str, default: float) -> float:
        """A number between 0 and 1."""
        value = self.number(field, default)
        if not 0 <= value <= 1:
            self.fail(field, f"a share lies between 0 and 1, got {value!r}")
        return value

    def seconds(self, field: str, default: float | None = None) -> float:
        """A time; `submit` and `submit_s` are two spellings of one field."""
        return self._quantity(field, f"{field}_s", parse_seconds, default)

    def bytes(self, field: str, default: float | None = None) -> float:
        """A size; `memory` and `memory_bytes` are two spellings of one field."""
        return self._quantity(field, f"{field}_bytes", parse_bytes, default)

    def sizes(self, field: str) -> tuple[float, ...]:
        items = self._list(field)
        return tuple(self._parse(parse_bytes, item, field, (i,)) for i, item in enumerate(items))

    def times(self, field: str) -> tuple[float, ...]:
        """A list of times."""
        items = self._list(field)
        return tuple(self._parse(parse_seconds, item, field, (i,)) for i, item in enumerate(items))

    def names(self, field: str) -> tuple[str, ...]:
        """A list of names; one alone may stand without brackets."""
        value = self._get(field, [])
        items = [value] if isinstance(value, str) else self._list(field)
        for i, item in enumerate(items):
            if not isinstance(item, str) or not item:
                self.fail(field, f"expected a name in quotes, got {item!r}", (i,))
        return tuple(items)

    def table(self, field: str, valid: Iterable[str]) -> Fields:
        """A table inside this one."""
        inner = f"{self.label}, {field}" if self.label else field
        return Fields(self.source, (*self.path, field), self._data[field], inner, valid)

    def tables(
        self, field: str, singular: str, named_by: str, valid: Iterable[str]
    ) -> list[Fields]:
        """The tables of a list; errors call each by its name, or by its position if it has none."""
        found = []
        for i, item in enumerate(self._list(field)):
            name = item.get(named_by) if isinstance(item, dict) else None
            called = f"{singular} {name!r}" if isinstance(name, str) else f"{singular} {i + 1}"
            label = f"{self.label}, {called}" if self.label else called
            found.append(Fields(self.source, (*self.path, field, i), item, label, valid))
        return found

    def _get(self, field: str, default: Any) -> Any:
        if field in self._data:
            return self._data[field]
        if default is None:
            self.fail(field, f"the field {field!r} is missing")
        return default

    def _list(self, field: str) -> list[Any]:
        value = self._get(field, [])
        if not isinstance(value, list):
            self.fail(field, f"expected a list, got {value!r}")
        return value

    def _quantity(
        self, plain: str, united: str, parse: Callable[[object], float], default: float | None
    ) -> float:
        if plain in self._data and united in self._data:
            self.fail(united, f"{plain!r} says the same; give one of them")
        field = united if united in self._data else plain
        if field not in self._data and default is not None:
            return default
        return self._parse(parse, self._get(field, None), field)

    def _parse(
        self, parse: Callable[[object], float], value: object, field: str, path: Path = ()
    ) -> float:
        try:
            return parse(value)
        except InvalidRecord as error:
            self.fail(field, str(error), path)
