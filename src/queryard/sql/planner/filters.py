"""What share of rows the conditions of a filter keep: from samples and statistics, by table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .contract import CatalogLike
from .expressions import Expr, conjuncts, references
from .judging import Judging
from .origins import Scanned, only_column, origin_of, sql_of
from .selectivity import ColumnFacts, Selectivity


@dataclass(slots=True)
class _OfScan:
    """The conditions of a filter on one table, and what statistics say of them."""

    ranged: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    on_column: dict[str, list[str]] = field(default_factory=dict)
    ranged_share: float = 1.0
    plain: list[Expr] = field(default_factory=list)
    rest: list[Expr] = field(default_factory=list)
    in_order: dict[str, list[tuple[Expr, str]]] = field(default_factory=dict)


class Filters:
    """Filters over the tables of a catalog."""

    def __init__(self, catalog: CatalogLike, selectivity: Selectivity) -> None:
        self._catalog = catalog
        self._selectivity = selectivity
        # A catalog without samples has no judge.
        self._judge = getattr(catalog, "judge", None)
        self.judging = Judging(self._judge)

    def kept(
        self,
        conditions: Iterable[Expr],
        facts: Mapping[str, ColumnFacts],
        scans: Mapping[int, Scanned],
    ) -> tuple[float, Mapping[int, Scanned]]:
        """The share of rows that is left, and what is left of each table."""
        parts, across = self._by_scan(conditions, facts, scans)
        share = self._selectivity.of_all(across, facts) if across else 1.0
        left = dict(scans)
        for number, part in parts.items():
            scan = scans[number]
            ranged_share = part.ranged_share * self._selectivity.of_all(part.plain, facts)
            others_share = self._selectivity.of_all(part.rest, facts)
            found = self.judging.filtered(
                scan, part.ranged, part.others, part.on_column, ranged_share, others_share
            )
            if found is None:
                share *= self._selectivity.of_all([*part.plain, *part.rest], facts)
            else:
                share *= found.share / scan.share if scan.share > 0 else 0.0
                left[number] = found
        return max(share, 1e-9), left

    def _by_scan(
        self,
        conditions: Iterable[Expr],
        facts: Mapping[str, ColumnFacts],
        scans: Mapping[int, Scanned],
    ) -> tuple[dict[int, _OfScan], list[Expr]]:
        """The conditions by table, and those over several tables or none."""
        origins = {name: known.origin for name, known in facts.items()}
        parts: dict[int, _OfScan] = {}
        across = []
        for condition in (c for whole in conditions for c in conjuncts(whole)):
            origin = origin_of(condition, origins)
            if origin is None:
                across.append(condition)
                continue
            part = parts.setdefault(origin.scan, _OfScan())
            written = f"({sql_of(origin)})"
            column = only_column(origin.expression)
            if column is not None:
                part.on_column.setdefault(column, []).append(written)
            if column is not None and all(facts[n].clustered for n in references(condition)):
                part.in_order.setdefault(column, []).append((condition, written))
                continue
            part.others.append(written)
            part.rest.append(condition)
        for number, part in parts.items():
            for column, pairs in part.in_order.items():
                self._place(part, scans[number].table, column, pairs, facts)
        return parts, across

    def _place(
        self,
        part: _OfScan,
        table: str,
        column: str,
        pairs: list[tuple[Expr, str]],
        facts: Mapping[str, ColumnFacts],
    ) -> None:
        """Conditions on a column in whose order the rows lie: its histogram judges them together.

        A sample sees only some places of such a column.
        """
        conditions, texts = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        if all(self._selectivity.is_plain(condition, facts) for condition in conditions):
            part.plain += conditions
        else:
            share = self._by_histogram(table, column, " AND ".join(texts))
            if share is None:
                part.others += texts
                part.rest += conditions
                return
            part.ranged_share *= share
        part.ranged += texts

    def _by_histogram(self, table: str, name: str, condition: str) -> float | None:
        """What the histogram of a column says of a condition on it alone."""
        known = self._catalog.statistics(table).columns.get(name)
        type_ = next((c.type for c in self._catalog[table].columns if c.name == name), None)
        if self._judge is None or known is None or known.histogram is None or type_ is None:
            return None
        found: float | None = self._judge.share_by_histogram(
            table, name, type_, known.histogram, condition
        )
        return None if found is None else found * (1 - float(known.null_share or 0.0))
