"""Where in a file each value stands, so that an error can name its line.

`tomllib` and `json` give values without positions. The scanners here walk a text that has
already been parsed, hence is known to be valid, and note the line of every key and item by its
path. TOML's inline values and JSON's look alike up to the sign between key and value, so one
scanner reads both.

>>> lines = toml_lines('name = "x"\\n[[queries]]\\njobs = [\\n  { map = 3 },\\n]')
>>> lines[("queries", 0)], lines[("queries", 0, "jobs", 0, "map")]
(2, 4)
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

Path = tuple[str | int, ...]

_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:\\.|[^"\\])*"' r"|'[^']*'",
    re.DOTALL,
)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\n]+")


def json_lines(text: str) -> Mapping[Path, int]:
    """The line of every key and item of a JSON text, by path."""
    scanner = _Scanner(text)
    scanner.value(())
    return scanner.lines


def toml_lines(text: str) -> Mapping[Path, int]:
    """The line of every table, key and item of a TOML text, by path."""
    scanner = _Scanner(text)
    scanner.toml()
    return scanner.lines


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[Path, int] = {(): 1}
        self._lines_passed, self._counted = 0, 0

    def toml(self) -> None:
        """Headers and `key = value` lines; `[a.b]` means the last `a` where `a` is an array."""
        table: Path = ()
        lengths: dict[Path, int] = {}
        while self._peek():
            if self._peek() != "[":
                self._pair(table)
                continue
            is_array = self.text.startswith("[[", self.at)
            line = self._line()
            self.at += 2 if is_array else 1
            table = ()
            for key in self._keys():
                if table in lengths:
                    table += (lengths[table] - 1,)
                table += (key,)
                self.lines.setdefault(table, line)
            if is_array:
                lengths[table] = lengths.get(table, 0) + 1
                table += (lengths[table] - 1,)
                self.lines[table] = line
            self._peek()
            self.at += 2 if is_array else 1

    def value(self, path: Path) -> None:
        """One value, with all that is inside it."""
        opening = self._peek()
        if opening == "{":
            self.at += 1
            while self._peek() not in "}":
                self._pair(path)
                self._skip_comma()
            self.at += 1
        elif opening == "[":
            self.at += 1
            index = 0
            while self._peek() not in "]":
                self.lines[(*path, index)] = self._line()
                self.value((*path, index))
                self._skip_comma()
                index += 1
            self.at += 1
        else:
            token = _STRING.match(self.text, self.at) or _SCALAR.match(self.text, self.at)
            self.at = token.end() if token else self.at + 1

    def _pair(self, table: Path) -> None:
        self._peek()
        line, path = self._line(), table
        for key in self._keys():
            path += (key,)
            self.lines.setdefault(path, line)
        self._peek()
        self.at += 1  # the = or the :
        self.value(path)

    def _keys(self) -> list[str]:
        """A key, dotted or not."""
        keys = [self._key()]
        while self._peek() == ".":
            self.at += 1
            keys.append(self._key())
        return keys

    def _key(self) -> str:
        self._peek()
        quoted = _STRING.match(self.text, self.at)
        if quoted is None:
            bare = _BARE_KEY.match(self.text, self.at)
            self.at = bare.end() if bare else self.at + 1
            return bare[0] if bare else ""
        self.at = quoted.end()
        try:
            return str(json.loads(quoted[0]))
        except ValueError:  # a literal key, or an escape that only TOML knows
            return quoted[0][1:-1]

    def _peek(self) -> str:
        """The next character that is neither blank nor in a comment; "" at the end."""
        blank = _BLANK.match(self.text, self.at)
        self.at = blank.end() if blank else self.at
        return self.text[self.at : self.at + 1]

    def _skip_comma(self) -> None:
        if self._peek() == ",":
            self.at += 1

    def _line(self) -> int:
        self._lines_passed += self.text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._lines_passed + 1
