"""How a query is run: its jobs or operators, what is expected of them, and what came of it."""

from __future__ import annotations

import io
import json
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from queryard.core.errors import QueryardError, unknown_name
from queryard.core.model import Operator
from queryard.engine.classify import Classified, classify
from queryard.engine.errors import QueryFailed
from queryard.engine.plans import PlanNames, PlanOperator, read_plan
from queryard.sql.planner import NotStageable, StagedPlan, plan_staged

if TYPE_CHECKING:
    from rich.table import Table

    from queryard.engine.native import Parameters
    from queryard.engine.staged.query import JobActuals

    from .session import Session

LONGEST = 60  # of what is said about a job, in text
# A line of the statement, as errors show it, with a pointer below it.
_LINE = re.compile(r"^LINE (\d+):(.*)\n( *)\^", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ExplainedJob:
    """A job of a staged plan, or an operator of DuckDB's; what is not known is None."""

    name: str
    operator: Operator
    what: str
    inputs: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    map_tasks: int | None = None
    reduce_tasks: int | None = None
    rows_expected: float | None = None
    bytes_expected: float | None = None
    rows: float | None = None
    bytes: float | None = None
    seconds: float | None = None
    """Of work, over all slots."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Jobs in an order in which they can run; the last one gives the answer.

    `reasons` say why a query that was to be staged is not.
    """

    sql: str
    plan: Literal["native", "staged"]
    jobs: tuple[ExplainedJob, ...]
    reasons: tuple[str, ...] = ()
    seconds: float | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def analyzed(self) -> bool:
        """Whether it was run, so that there are real figures."""
        return any(job.rows is not None for job in self.jobs)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def summary(self) -> str:
        """In a line: how, and how long it took."""
        if self.plan == "native":
            text = "native: one job that DuckDB plans and runs"
        else:
            tasks = sum((job.map_tasks or 0) + (job.reduce_tasks or 0) for job in self.jobs)
            text = f"staged: {_count(len(self.jobs), 'job')}, {_count(tasks, 'task')}"
        return text if self.seconds is None else f"{text}; took {self.seconds:.3g} s"

    def table(self) -> Table:
        """For a console of rich's: a tree, the answer on top, with figures beside it."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
        table.add_column("operator" if self.plan == "native" else "job", no_wrap=True)
        table.add_column("class", no_wrap=True, min_width=7)
        for place, title in enumerate(self._titles()):
            # Where it is narrow, titles break and the first column is cut, but never a number.
            widest = max((len(self._row(job)[place]) for job in self.jobs), default=0)
            least = max(widest, *map(len, title.split()))
            table.add_column(title, justify="right", min_width=least)
        for before, job, again in self._tree():
            label = Text(before, style="dim")
            label.append(job.name if self.plan == "staged" else "", style="bold")
            text = f" {job.what}" if self.plan == "staged" else job.what
            label.append(" (see above)" if again else _crop(text, LONGEST - len(before)))
            table.add_row(label, "" if again else job.operator, *([] if again else self._row(job)))
        return table

    def _titles(self) -> list[str]:
        titles = ["tasks"] if self.plan == "staged" else []
        titles += ["rows expected", "size expected"]
        return titles + (["rows", "size", "slot time"] if self.analyzed else [])

    def _row(self, job: ExplainedJob) -> list[str]:
        cells = []
        if self.plan == "staged":
            cells.append(
                f"{job.map_tasks or 0}+{job.reduce_tasks}"
                if job.reduce_tasks
                else f"{job.map_tasks or 0}"
            )
        cells += [_rows(job.rows_expected), _size(job.bytes_expected)]
        if self.analyzed:
            cells += [_rows(job.rows), _size(job.bytes), _seconds(job.seconds)]
        return cells

    def _tree(self) -> Iterator[tuple[str, ExplainedJob, bool]]:
        """Every job behind what its lines look like, and whether it was there before."""
        by_name = {job.name: job for job in self.jobs}
        seen: set[str] = set()

        def walk(name: str, before: str, beside: str) -> Iterator[tuple[str, ExplainedJob, bool]]:
            job = by_name[name]
            again = name in seen
            yield before, job, again
            if again:
                return
            seen.add(name)
            for place, inner in enumerate(job.inputs):
                is_last = place == len(job.inputs) - 1
                yield from walk(
                    inner,
                    beside + ("└─ " if is_last else "├─ "),
                    beside + ("   " if is_last else "│  "),
                )

        if self.jobs:
            yield from walk(self.jobs[-1].name, "", "")

    def text(self) -> str:
        """All of it, for a file or a terminal without colours."""
        from rich.console import Console

        out = io.StringIO()
        console = Console(file=out, width=10_000, color_system=None, highlight=False)
        console.print(self.summary(), markup=False)
        for line in (*(f"not staged: {reason}" for reason in self.reasons), *self.notes):
            console.print(line, markup=False)
        console.print(self.table())
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines())

    def __str__(self) -> str:
        return self.text()


# --- making them ---------------------------------------------------------------------------------


def explain(
    session: Session,
    sql: str,
    parameters: Parameters = (),
    *,
    analyze: bool = False,
    plan: str | None = None,
) -> Explanation:
    """How a session would run a statement; with `analyze` it is run, for the real figures."""
    from .asked import PLANS

    statement = _only_statement(sql)
    wanted = plan or session.plan
    if wanted not in PLANS:
        raise QueryardError(unknown_name("plan", wanted, PLANS))
    if wanted == "native":
        return native_explanation(session, statement, parameters, analyze=analyze)
    reason = session.not_staged([statement], parameters)
    if reason is None:
        try:
            planned = plan_staged(statement.sql, session.catalog)
        except NotStageable as error:
            reason = error.reason
        else:
            return _run_staged(session, statement) if analyze else staged_explanation(planned)
    return native_explanation(session, statement, parameters, (reason,), analyze=analyze)


def _only_statement(sql: str) -> Classified:
    statements = classify(sql)
    if len(statements) > 1:
        raise QueryardError(
            f"{len(statements)} statements cannot be explained together; explain one at a time"
        )
    if statements[0].kind == "EXPLAIN":
        raise QueryardError("write the statement itself, without EXPLAIN in front of it")
    return statements[0]


def _run_staged(session: Session, statement: Classified) -> Explanation:
    """Run a statement of which it is known that it only reads and can be staged; once."""
    began = time.perf_counter()
    handle = session.submit(statement.sql, plan="staged")
    try:
        for _ in handle.take().batches():
            pass
        handle.wait()
        seconds = time.perf_counter() - began
    except BaseException:
        handle.cancel()
        raise
    if handle.error is not None:
        raise handle.error
    found = handle.explain()
    assert found is not None, "it has run"
    if handle.reasons:  # a table has changed since it was planned
        return replace(found, seconds=seconds, notes=("it ran, but DuckDB measured nothing",))
    return replace(found, seconds=seconds)


def native_explanation(
    session: Session,
    statement: Classified,
    parameters: Parameters = (),
    reasons: Sequence[str] = (),
    *,
    analyze: bool = False,
) -> Explanation:
    """DuckDB's own plan; its operators run as one job."""
    names = PlanNames(session.catalog, statement.names)
    began = time.perf_counter()
    root = None
    notes: tuple[str, ...] = ()
    if analyze:
        root = _ask(session, "EXPLAIN (ANALYZE, FORMAT json)", statement, parameters, names)
        notes = () if root is not None else ("DuckDB measured nothing for this statement",)
    seconds = time.perf_counter() - began if analyze else None
    if root is None:
        root = _ask(session, "EXPLAIN (FORMAT json)", statement, parameters, names)
    jobs: list[ExplainedJob] = []
    if root is not None:
        _collect(root, jobs)
    told = tuple(reason.removeprefix("not staged: ") for reason in reasons)
    return Explanation(statement.sql, "native", tuple(jobs), told, seconds, notes)


def _ask(
    session: Session,
    prefix: str,
    statement: Classified,
    parameters: Parameters,
    names: PlanNames,
) -> PlanOperator | None:
    try:
        # On a line of its own, so that a line an error shows is one of the user's.
        answer = session.sql(f"{prefix}\n{statement.sql}", parameters, plan="native")
        rows: dict[str, str] = dict(answer.fetchall())
    except QueryFailed as error:
        told = _LINE.sub(_line_before, str(error))
        if told == str(error):
            raise
        raise type(error)(told) from error
    document = rows.get("physical_plan") or rows.get("analyzed_plan") or "[]"
    return read_plan(json.loads(document), names)


def _line_before(found: re.Match[str]) -> str:
    """The number of a line without ours before it; the pointer below it moves with the text.

    >>> _LINE.sub(_line_before, "no x\\n\\nLINE 10: SELECT x\\n                ^")
    'no x\\n\\nLINE 9: SELECT x\\n               ^'
    """
    number = str(int(found[1]) - 1)
    shift = len(found[1]) - len(number)
    return f"LINE {number}:{found[2]}\n{found[3][shift:]}^"


def _collect(operator: PlanOperator, jobs: list[ExplainedJob]) -> str:
    """Append an operator behind all it reads from; its name."""
    inputs = tuple(_collect(below, jobs) for below in operator.inputs)
    name = f"o{len(jobs) + 1}"
    words = (operator.name, operator.table, operator.details)
    jobs.append(
        ExplainedJob(
            name=name,
            operator=operator.operator,
            what=" ".join(word for word in words if word),
            inputs=inputs,
            tables=(operator.table,) if operator.table else (),
            rows_expected=operator.rows_expected,
            bytes_expected=operator.bytes_expected,
            rows=operator.rows,
            bytes=operator.bytes,
            seconds=operator.seconds,
        )
    )
    return name


def staged_explanation(
    plan: StagedPlan, actuals: Mapping[str, JobActuals] | None = None
) -> Explanation:
    """The jobs of a staged plan, with what they did if they ran."""
    jobs = []
    for job in plan.describe():
        done = (actuals or {}).get(job["job"])
        ran = done is not None and done.tasks_done > 0
        jobs.append(
            ExplainedJob(
                name=job["job"],
                operator=job["operator"],
                what=job["description"],
                inputs=tuple(job["upstream"]),
                tables=tuple(job["tables"]),
                map_tasks=job["map_tasks"],
                reduce_tasks=job["reduce_tasks"],
                rows_expected=job["rows"],
                bytes_expected=job["bytes"],
                rows=float(done.rows) if done is not None and ran else None,
                bytes=float(done.bytes) if done is not None and ran else None,
                seconds=done.seconds if done is not None and ran else None,
            )
        )
    return Explanation(plan.sql, "staged", tuple(jobs))


# --- figures as text -----------------------------------------------------------------------------


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _rows(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _size(value: float | None) -> str:
    if value is None:
        return ""
    if value < 1000:
        return f"{value:.0f} B"
    power = min(4, int(math.log10(value) // 3))
    return f"{value / 1000**power:.1f} {' kMGT'[power]}B"


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3f} s"


def _crop(text: str, length: int) -> str:
    return text if len(text) <= length else text[: max(length - 1, 8)] + "…"
