"""Answers that refine: each says how far it may be from the exact one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from queryard.core.readable import several

from .frames import to_pandas
from .online_html import answer_html
from .streams import without
from .values import python_values

Mark = Literal["", "few rows", "heavy tail", "unsettled"]
# Of how many answers the course is kept.
MOST_COURSE = 400


class Eta(NamedTuple):
    """Seconds from now to the wanted error, and to the exact answer; None where not known."""

    wanted_s: float | None
    exact_s: float | None


NOT_KNOWN = Eta(None, None)


@dataclass(frozen=True)
class OnlineAnswer:
    """The answer to a query after a part of the data.

    `low` and `high` have a list per estimated column, with None where no interval is honest; then
    `marks` says why. Columns of one name are told apart as `n`, `n_1`, … (`labels`). `error` is the
    largest relative half-width of all intervals: None where there is none yet, 0 for the exact
    answer. `fraction` is the share of the data that was read.
    """

    table: Any
    types: tuple[str, ...]
    fraction: float
    exact: bool
    elapsed_s: float
    confidence: float = 0.95
    error: float | None = None
    low: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    high: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    marks: Sequence[Mark] = ()
    """One per row: "" where the row is settled and its intervals hold."""
    eta_s: Eta = NOT_KNOWN
    sample: str = ""
    """What was read: a shuffled copy, random blocks, or everything."""
    notes: tuple[str, ...] = ()

    def arrow(self) -> Any:
        """The rows as a pyarrow.Table."""
        return self.table

    def df(self) -> Any:
        """The rows as a pandas.DataFrame."""
        return to_pandas(self.table)

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows as tuples of Python values."""
        columns = zip(self.table.columns, self.types, strict=True)
        return list(zip(*(python_values(column, told) for column, told in columns), strict=True))

    @property
    def columns(self) -> list[str]:
        return list(self.table.column_names)

    @property
    def labels(self) -> list[str]:
        """The names by which `low` and `high` tell columns apart."""
        return unlike_labels(self.columns)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        told = "exact" if self.exact else f"{self.fraction:.0%} read"
        if not self.exact and self.error is not None:
            told += f", within {self.error:.2%}"
        return f"<OnlineAnswer {several(len(self), 'row')}, {told}, {self.elapsed_s:.2f} s>"

    def _repr_html_(self) -> str:
        return answer_html(self)


def unlike_labels(names: Sequence[str]) -> list[str]:
    """The names, with a number added where a name has been there before.

    >>> unlike_labels(["n", "total", "n", "n_1"])
    ['n', 'total', 'n_1', 'n_1_1']
    """
    found: list[str] = []
    for name in names:
        label, number = name, 0
        while label in found:
            number += 1
            label = f"{name}_{number}"
        found.append(label)
    return found


def exact_answer(
    table: pa.Table, types: Sequence[str], elapsed_s: float, notes: Sequence[str] = ()
) -> OnlineAnswer:
    """The answer of a query that was run as a whole."""
    return OnlineAnswer(
        table,
        tuple(types),
        1.0,
        True,
        elapsed_s,
        error=0.0,
        sample="everything",
        notes=tuple(notes),
    )


class CoursePoint(NamedTuple):
    """How good an answer was, and when it came."""

    elapsed_s: float
    error: float | None
    fraction: float


class AnswerLog:
    """The newest answer of a query, for readers that wait for it; from any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._began_s = time.monotonic()
        self._answer: OnlineAnswer | None = None
        self._number = 0
        self._course: list[CoursePoint] = []
        self._closed = False
        # Why the query runs exactly after all; "" if it does not.
        self.reason = ""
        # Whether the rows of the query itself are its last answer, and not the newest one here.
        self.is_whole = False
        self._told: list[Callable[[], None]] = []

    @property
    def elapsed_s(self) -> float:
        """Seconds since the query was submitted."""
        return time.monotonic() - self._began_s

    @property
    def newest(self) -> OnlineAnswer | None:
        return self._answer

    @property
    def course(self) -> tuple[CoursePoint, ...]:
        """How the error fell, answer by answer; of very many answers, some are left out."""
        with self._changed:
            return tuple(self._course)

    @property
    def closed(self) -> bool:
        """Whether no further answer comes."""
        return self._closed

    def put(self, answer: OnlineAnswer) -> None:
        """A better answer is there."""
        with self._changed:
            self._answer = replace(answer, elapsed_s=self.elapsed_s)
            self._number += 1
            self._course.append(CoursePoint(self.elapsed_s, answer.error, answer.fraction))
            if len(self._course) > MOST_COURSE:
                del self._course[1:-1:2]  # every other one; the first and the newest stay
            self._notify()

    def close(self) -> None:
        """No further answer comes."""
        with self._changed:
            self._closed = True
            self._notify()

    def _notify(self) -> None:
        self._changed.notify_all()
        told, self._told = self._told, []
        for tell in told:
            tell()

    @property
    def number(self) -> int:
        """How many answers there were."""
        return self._number

    def wait(self, number: int, pause_s: float) -> None:
        """Wait for the end, or for an answer newer than that of a number and `pause_s` to pass."""
        with self._changed:
            if self._changed.wait_for(lambda: self._closed, pause_s):
                return
            self._changed.wait_for(lambda: self._number > number or self._closed)

    def when_changed(self, number: int, tell: Callable[[], None]) -> Callable[[], None]:
        """Call `tell` once there is a newer answer, or none will come; at once if so already.

        What is given back withdraws the wish.
        """
        with self._changed:
            if self._number <= number and not self._closed:
                self._told.append(tell)
                return lambda: without(self._told, tell)
        tell()
        return lambda: None
