"""What can be asked: TPC-H queries at a scale (`big.q05`), and the .sql files of a folder."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from random import Random

from queryard.core.errors import InvalidRecord
from queryard.workload import tpch

from .model import Template


def tpch_templates(scales: Mapping[str, float]) -> dict[str, Template]:
    """The 22 queries in each schema.

    >>> list(tpch_templates({"big": 1.0}))[:2]
    ['big.q01', 'big.q02']
    """
    return {
        f"{schema}.q{number:02d}": Template(
            f"{schema}.q{number:02d}", partial(_draw, schema, number)
        )
        for schema in scales
        for number in tpch.queries()
    }


def _draw(schema: str, number: int, rng: Random) -> str:
    return tpch.in_schema(tpch.draw_query(number, rng), schema).strip()


def folder_templates(folder: Path) -> dict[str, Template]:
    """The .sql files of a folder by their names without the ending; each is one text."""
    found = {}
    try:
        for file in sorted(folder.glob("*.sql")):
            text = file.read_text(encoding="utf-8").strip().rstrip(";")
            found[file.stem] = Template(file.stem, partial(_fixed, text))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRecord(f"{folder}: cannot be read ({error})") from error
    if not found:
        raise InvalidRecord(f"{folder}: there are no .sql files; name a folder that has some")
    return found


def _fixed(text: str, rng: Random) -> str:
    return text
