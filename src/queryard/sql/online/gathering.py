"""The statement that gathers partial rows by group, with what DuckDB computes of keys alone.

Everything that depends on estimates is computed outside of DuckDB, for each file left out in turn
(`engine.online.leaving_out`): a statement that does it takes DuckDB a tenth of a second to plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from queryard.sql.planner.expressions import text
from queryard.sql.planner.oracle import Field

from .calls import OnlineCall
from .groups import Groups
from .plan import Additive, OutputColumn

HOLE = "\0"


def additives(calls: Sequence[OnlineCall]) -> tuple[Additive, ...]:
    """Where the numbers of each aggregate stand among those of a partial row."""
    found, place = list[Additive](), 0
    for call in calls:
        if call.kind != "additive":
            continue
        numbers = len(call.partial())
        ends = place + numbers if call.extremes() else None
        found.append(Additive(call.out, call.call.function, place, numbers, ends))
        place += numbers + len(call.extremes())
    return tuple(found)


def gathered_texts(
    keys: Sequence[Field],
    calls: Sequence[OnlineCall],
    groups: Groups,
    outputs: Sequence[OutputColumn],
    placed: Mapping[int, str],
) -> tuple[str, str]:
    """The text of `OnlinePlan.gathered_sql`, before and after the partial rows."""
    names = [key.name for key in keys]
    numbers = [
        f"CAST({name} AS DOUBLE)"
        for call in calls
        if call.kind == "additive"
        for name, _ in (*call.partial(), *call.extremes())
    ]
    items = [*names, "coalesce(sum(n), 0) AS n", "count(*) AS files", "list(file) AS f"]
    items.append(f"list([{', '.join(numbers)}]) AS v" if numbers else "NULL AS v")
    items += [f"{call.merge()} AS {call.out}" for call in calls if call.kind != "additive"]
    grouped = f" GROUP BY {', '.join(names)}" if names else ""
    source = f"(SELECT {', '.join(items)} FROM {HOLE}{grouped}) AS t"
    for node, on in groups.joins:
        conditions = " AND ".join(text(c) for c in on) or "TRUE"
        source += f" JOIN ({placed[id(node)]}) ON {conditions}"
    shown = [
        f"{_shown(out, text(e))} AS o{i}"
        for i, ((_, e), out) in enumerate(zip(groups.items, outputs, strict=True))
    ]
    known = [f"{sql} AS k{i}" for i, sql in enumerate(groups.formulas.known)]
    ranks = [f"dense_rank() OVER (ORDER BY {sql}) AS r{i}" for i, sql in enumerate(groups.rank_sql)]
    before, after = (
        f"SELECT t.n, t.files, t.f, t.v, {', '.join([*shown, *known, *ranks])} FROM {source}"
    ).split(HOLE)
    return before, after


def _shown(out: OutputColumn, sql: str) -> str:
    """A column of the answer as far as DuckDB knows it."""
    if out.kind == "quantile":
        return sql
    return f"CAST({'NULL' if out.kind == 'estimated' else sql} AS {out.type})"
