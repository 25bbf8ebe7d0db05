"""The statement that turns partial rows into estimates, with each file left out in turn.

For every group there are the sums over all files that were read, the same without each file that
has rows of the group, and one row for all files that have none. The expressions of the answer are
evaluated on all of them, and what leaving out a file changes is summed up per group: that is all
the interval needs (`estimate.online`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from queryard.sql.planner.expressions import text
from queryard.sql.planner.oracle import Field

from .calls import OnlineCall
from .groups import Groups
from .plan import OutputColumn

# What is filled in later, each once: partial rows, files, rows of the table, fewest rows.
_ENDS = ("lo", "hi")
_HOLES = ("\0p", "\0f", "\0r", "\0w")


def estimate_texts(
    keys: Sequence[Field],
    calls: Sequence[OnlineCall],
    groups: Groups,
    outputs: Sequence[OutputColumn],
    placed: Mapping[int, str],
) -> tuple[str, ...]:
    """The text of `OnlinePlan.estimate_sql`, in pieces between what is filled in."""
    partials, files, rows, few = _HOLES
    steps = [
        f"given AS (SELECT * FROM {partials})",
        f"f AS MATERIALIZED (SELECT file, CAST(rows AS DOUBLE) AS r FROM {files})",
        f"a AS MATERIALIZED (SELECT sum(r) AS r, count(*) AS m, CAST({rows} AS DOUBLE) AS rows, "
        f"{few} AS few FROM f)",
        *_sums(keys, calls),
        *_evaluated(groups, outputs, placed),
    ]
    changed = "".join(
        f", c.m{i}_d, c.m{i}_q, c.m{i}_b, c.m{i}_r" for i in range(len(groups.measures))
    )
    hidden = ["w", *_ids(groups), *(f"s{i}" for i in range(len(groups.sort_keys)))]
    sql = (
        f"WITH {', '.join(steps)} SELECT v.* EXCLUDE ({', '.join(hidden)}){changed} "
        f"FROM v LEFT JOIN c USING ({', '.join(_ids(groups))}) ORDER BY v.kept DESC, v.place"
    )
    return _pieces(sql)


def _sums(keys: Sequence[Field], calls: Sequence[OnlineCall]) -> list[str]:
    """Sums of every group: over all files, and without each."""
    names = [key.name for key in keys]
    centres = [c for call in calls if (c := call.centre(", ".join(names))) is not None]
    summands = [pair for call in calls for pair in call.summands()]
    bounds = [(f"{call.out}_b", call.merge()) for call in calls if call.kind != "additive"]
    tailed = [call for call in calls if call.extremes()]
    grouped = f" GROUP BY {', '.join(names)}" if names else ""
    same = " AND ".join(f"p.{k} IS NOT DISTINCT FROM t.{k}" for k in names) or "TRUE"
    kept = "".join(f"t.{name}, " for name in names) + "t.g, t.n, t.files, "
    kept += "".join(f"t.{name}, " for name, _ in bounds)

    def scaled(difference: str, rows_read: str) -> str:
        scale = f"a.rows / nullif({rows_read}, 0)"
        return "".join(f", ({difference.format(x=x)}) * {scale} AS {x}" for x, _ in summands)

    def without_row(x: str) -> str:
        """The sum without the least or the largest row of one of the aggregates."""
        for place, call in enumerate(tailed):
            names_ = [name for name, _ in call.summands()]
            if x in names_:
                sides = [call.of_row(f"t.{call.out}_{side}")[names_.index(x)] for side in _ENDS]
                cases = " ".join(
                    f"WHEN {2 * place + end} THEN {side}" for end, side in enumerate(sides)
                )
                return f"t.{x} - coalesce(CASE u.i {cases} ELSE 0 END, 0)"
        return f"t.{x}"

    ends = [
        (f"{call.out}_{side}", f"{function}({call.out}_{side})")
        for call in tailed
        for side, function in zip(_ENDS, ("min", "max"), strict=True)
    ]
    ends += [(name, f"any_value({name})") for name, _ in centres]
    single = "".join(
        f", ({without_row(x)}) * (a.rows / nullif(a.r, 0)) AS {x}" for x, _ in summands
    )
    absent_rows = "(a.r - t.present) / (a.m - t.files)"
    return [
        f"p AS MATERIALIZED (SELECT w.*, f.r{_items(summands)} "
        f"FROM (SELECT *{_items(centres)} FROM given) AS w JOIN f USING (file))",
        f"t AS MATERIALIZED (SELECT {''.join(f'{name}, ' for name in names)}"
        f"row_number() OVER () AS g, coalesce(sum(n), 0) AS n, count(*) AS files, "
        f"coalesce(sum(r), 0) AS present{_items([(x, f'sum({x})') for x, _ in summands])}"
        f"{_items(bounds)}{_items(ends)} FROM p{grouped})",
        # The weight is how many files are left out so; negative: none is, 0: a single row is.
        f"scaled AS (SELECT {kept}-1 AS w{scaled('t.{x}', 'a.r')} FROM t, a "
        f"UNION ALL SELECT {kept}1{scaled('t.{x} - coalesce(p.{x}, 0)', '(a.r - p.r)')} "
        f"FROM a, p JOIN t ON {same} WHERE t.n >= a.few "
        f"UNION ALL SELECT {kept}a.m - t.files{scaled('t.{x}', f'(a.r - {absent_rows})')} "
        f"FROM t, a WHERE t.n >= a.few AND a.m > t.files "
        f"UNION ALL SELECT {kept}0{single} FROM t, a, range({2 * len(tailed)}) AS u(i) "
        f"WHERE t.n >= a.few)",
    ]


def _evaluated(
    groups: Groups, outputs: Sequence[OutputColumn], placed: Mapping[int, str]
) -> list[str]:
    """The expressions of the answer over all sums, and what leaving out a file changes."""
    steps, joined = [], "scaled"
    for i, (node, on) in enumerate(groups.joins):
        numbered = f"SELECT *, row_number() OVER () AS d{i} FROM ({placed[id(node)]})"
        steps.append(f"j{i} AS MATERIALIZED ({numbered})")
        joined += f" JOIN j{i} ON {' AND '.join(text(c) for c in on) or 'TRUE'}"
    ids = _ids(groups)
    shown = [
        (f"o{i}", "NULL" if out.kind == "estimated" else text(groups.smooth(e)))
        for i, ((_, e), out) in enumerate(zip(groups.items, outputs, strict=True))
    ]
    measures = [(f"m{i}", sql) for i, sql in enumerate(groups.measures)]
    sort = [(f"s{i}", text(groups.smooth(key))) for i, (key, _) in enumerate(groups.sort_keys)]
    order = ", ".join(f"s{i} {way}" for i, (_, way) in enumerate(groups.sort_keys))
    order = f" ORDER BY {order}" if order else ""
    changes = "".join(
        f", sum(l.w * (l.{m} - v.{m})) AS {m}_d, sum(l.w * (l.{m} - v.{m}) * (l.{m} - v.{m})) "
        f"AS {m}_q, max((l.{m} - v.{m}) * (l.{m} - v.{m})) FILTER (WHERE l.w > 0) AS {m}_b, "
        f"coalesce(max((l.{m} - v.{m}) * (l.{m} - v.{m})) FILTER (WHERE l.w = 0), 0) AS {m}_r"
        for m, _ in measures
    )
    mine = ", ".join(f"v.{name}" for name in ids)
    same = " AND ".join(f"l.{name} = v.{name}" for name in ids)
    return [
        *steps,
        f"e AS MATERIALIZED (SELECT {', '.join(ids)}, w, n, files{_items(shown)}"
        f"{_items(measures)}{_items(sort)}, ({groups.kept_sql()}) IS TRUE AS kept FROM {joined})",
        f"v AS (SELECT *, row_number() OVER (PARTITION BY kept{order}) AS place "
        "FROM e WHERE w < 0)",
        f"c AS (SELECT {mine}{changes} FROM v JOIN e AS l ON {same} "
        f"WHERE l.w >= 0 GROUP BY {mine})",
    ]


def _ids(groups: Groups) -> list[str]:
    """The columns that tell a row of the answer from others: its group, and rows joined with it."""
    return ["g", *(f"d{i}" for i in range(len(groups.joins)))]


def _items(pairs: Sequence[tuple[str, str]]) -> str:
    return "".join(f", {sql} AS {name}" for name, sql in pairs)


def _pieces(sql: str) -> tuple[str, ...]:
    pieces = []
    for hole in _HOLES:
        before, sql = sql.split(hole)
        pieces.append(before)
    return (*pieces, sql)
