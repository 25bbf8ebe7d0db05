"""DuckDB's plans as explanations, and its errors about statements that were to be explained."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from queryard.estimate.expected import ExpectedOperator
from queryard.results.job_tree import ExplainedJob

from .errors import QueryFailed
from .plans.tree import PlanOperator

# A line of the statement, as errors show it, with a pointer below it.
_LINE = re.compile(r"^LINE (\d+):(.*)\n( *)\^", re.MULTILINE)


def explained(root: PlanOperator, expected: Sequence[ExpectedOperator]) -> tuple[ExplainedJob, ...]:
    """The operators of a plan, each behind all it reads from.

    What is expected of them comes in the order of the plan, each before those it reads from.
    """
    jobs: list[ExplainedJob] = []
    _collect(root, iter(expected), jobs)
    return tuple(jobs)


def without_first_line(error: QueryFailed) -> QueryFailed:
    """An error about a statement below a line of ours, as if that line were not there."""
    told = _LINE.sub(_line_before, str(error))
    return error if told == str(error) else type(error)(told)


def _line_before(found: re.Match[str]) -> str:
    """The number of a line without ours before it; the pointer below it moves with the text.

    >>> _LINE.sub(_line_before, "no x\\n\\nLINE 10: SELECT x\\n                ^")
    'no x\\n\\nLINE 9: SELECT x\\n               ^'
    """
    number = str(int(found[1]) - 1)
    shift = len(found[1]) - len(number)
    return f"LINE {number}:{found[2]}\n{found[3][shift:]}^"


def _collect(
    operator: PlanOperator, expected: Iterator[ExpectedOperator], jobs: list[ExplainedJob]
) -> str:
    """Append an operator behind all it reads from; its name."""
    own = next(expected)
    inputs = tuple(_collect(below, expected, jobs) for below in operator.inputs)
    name = f"o{len(jobs) + 1}"
    words = (operator.name, operator.table, operator.details)
    jobs.append(
        ExplainedJob(
            name=name,
            operator=operator.operator,
            what=" ".join(word for word in words if word),
            inputs=inputs,
            tables=(operator.table,) if operator.table else (),
            rows_expected=own.rows,
            bytes_expected=own.bytes,
            seconds_expected=own.seconds,
            memory_expected=own.memory,
            rows=operator.rows,
            bytes=operator.bytes,
            seconds=operator.seconds,
        )
    )
    return name
