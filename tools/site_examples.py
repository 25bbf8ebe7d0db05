"""An extension of griffe: examples in docstrings are shown as programs, not as quotations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import griffe

FENCE = "```"


class Examples(griffe.Extension):
    """Puts a fence around every example of a docstring."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """A text with a fence around each run of lines from `>>>` to a blank line.

    >>> print(fenced(chr(10).join(("The sum.", "", ">>> 1 + 2", "3", "", "More."))))
    The sum.
    <BLANKLINE>
    ```pycon
    >>> 1 + 2
    3
    ```
    <BLANKLINE>
    More.
    """
    return "\n".join(_lines(text.splitlines()))


def _lines(lines: list[str]) -> Iterator[str]:
    is_open = False
    for line in lines:
        if not is_open and line.startswith(">>> "):
            is_open = True
            yield f"{FENCE}pycon"
        elif is_open and not line.strip():
            is_open = False
            yield FENCE
        yield line
    if is_open:
        yield FENCE
