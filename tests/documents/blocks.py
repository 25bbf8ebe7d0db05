"""The code blocks of a Markdown document."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_FENCED = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.M | re.S
)


class Block(NamedTuple):
    """A block between fences: its language ("" for what a program printed) and its lines."""

    language: str
    text: str


def blocks_of(document: str) -> list[Block]:
    """All blocks of a document of this project, in their order.

    >>> [block.language for block in blocks_of("README.md")][:2]
    ['python', '']
    """
    text = (ROOT / document).read_text("utf-8")
    return [Block(found["language"], dedent(found["text"])) for found in _FENCED.finditer(text)]
