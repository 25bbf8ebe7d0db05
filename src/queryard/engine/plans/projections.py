"""What projections hand on and compute; plans show names in place of expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..syntax.aliases import by_operator
from . import amounts
from .amounts import Amounts
from .filters import words
from .judged import Known
from .streams import Column, Stream, computed, source


class Projections:
    """The projections of one plan, from the lowest up: what has a name is computed once.

    `meanings` are the expressions behind names that the statement gives them.
    """

    def __init__(self, meanings: Mapping[str, str]) -> None:
        self.meanings = meanings
        self._made: set[str] = set()

    def with_meanings(self, names: frozenset[str]) -> frozenset[str]:
        """Names, and those in the expressions that they stand for."""
        meant = (words(self.meanings[name]) for name in names if name in self.meanings)
        return names.union(*meant)

    def of(self, texts: Sequence[str], below: Stream, known: Known) -> tuple[Stream, Amounts]:
        """What a projection gives, and what it does."""
        columns: list[Column] = []
        done: list[Amounts] = []
        for text in texts:
            name = text.strip('"').lower()
            meant = self.meanings.get(name, text)
            handed_on = self._handed_on(text, name, meant, below.columns, known)
            if handed_on is not None:
                if "(" in text:
                    done.append({"cast_values": below.rows})
                columns.append(handed_on)
                continue
            # Another operator may have made it: an aggregate, a window.
            if meant == text or not (name in self._made or by_operator(meant)):
                done.append(amounts.compute(meant, below.rows, below.columns))
            self._made.add(name)
            columns.append(replace(computed(meant, below.columns), name=name))
        return replace(below, columns=columns), amounts.total(done)

    def _handed_on(
        self, text: str, name: str, meant: str, columns: Sequence[Column], known: Known
    ) -> Column | None:
        """The column that is handed on as it is; None if something is computed."""
        if text.startswith("#["):
            return _key_among(columns, known)
        hides = meant != text and name not in self._made and name in words(meant)
        # `date_trunc('month', day) AS day` hides the column that it is made of.
        found = None if hides else source(text, columns)
        if found is None and (under_its_name := source(meant, columns)) is not None:
            return replace(under_its_name, name=name)
        return found


def _key_among(columns: Sequence[Column], known: Known) -> Column | None:
    """DuckDB writes keys of correlated subqueries without their names."""
    found = [column for column in columns if known.is_key(column)]
    if len(found) == 1:
        return found[0]
    return columns[0] if len(columns) == 1 else None
