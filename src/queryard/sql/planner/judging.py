"""What samples say of the rows of a scan, put together with what its statistics say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from .origins import Origin, Scanned, only_column, sql_of

PRIOR = 0.5
"""Statistics count like so many rows of a sample that match."""

ENOUGH = 500
"""As many rows of a sample are enough to judge a share on them alone."""


class JudgeLike(Protocol):
    """`queryard.sql.statistics.judge` offers all of it; None is no answer."""

    def share(self, key: str, condition: str) -> Any: ...
    def distinct(
        self, key: str, expressions: Sequence[str], condition: str = ""
    ) -> float | None: ...
    def distinct_of_share(
        self, key: str, expressions: Sequence[str], share: float
    ) -> float | None: ...
    def frequent(
        self, key: str, expression: str, condition: str = "", own: str = ""
    ) -> Mapping[Any, float] | None: ...
    def mean_width(self, key: str, expression: str) -> float | None: ...


class Judging:
    """Questions about scans; without a judge all answers are None."""

    def __init__(self, judge: JudgeLike | None) -> None:
        self._judge = judge

    def filtered(
        self,
        scan: Scanned,
        ranged: Iterable[str],
        others: Iterable[str],
        on_column: Mapping[str, Sequence[str]],
        ranged_share: float,
        others_share: float,
    ) -> Scanned | None:
        """The scan with more conditions, of which statistics say these shares."""
        if self._judge is None:
            return None
        found = replace(
            scan,
            ranged=(*scan.ranged, *ranged),
            others=(*scan.others, *others),
            on_column={
                column: (*scan.on_column.get(column, ()), *on_column.get(column, ()))
                for column in scan.on_column.keys() | on_column.keys()
            },
            ranged_share=scan.ranged_share * ranged_share,
            others_share=scan.others_share * others_share,
        )
        share = self._share(found)
        return None if share is None else replace(found, share=min(share, scan.share))

    def _share(self, scan: Scanned) -> float | None:
        assert self._judge is not None
        together = self._judge.share(scan.table, scan.condition or "true")
        if together is None:
            return None
        if together.exact:
            return float(together.share)
        if not scan.others:
            return scan.ranged_share
        matches, rows = together.matches, together.rows
        if scan.ranged:
            within = self._judge.share(scan.table, " AND ".join(scan.ranged))
            if within is not None and within.matches >= ENOUGH:
                rows = within.matches
            else:
                apart = self._judge.share(scan.table, " AND ".join(scan.others))
                if apart is None:
                    return None
                matches = apart.matches
        # As many matches as were seen, and a few as statistics expect them: where none was seen,
        # it depends on what they expect how rare the rest is.
        expected = max(scan.others_share, 1e-9)
        return float(scan.ranged_share * (matches + PRIOR) / (rows + PRIOR / expected))

    def distinct(
        self, scan: Scanned, origins: Sequence[Origin], share: float = 1.0
    ) -> float | None:
        """How many combinations of these the rows of a scan have, or a share of them."""
        if self._judge is None:
            return None
        texts = [sql_of(origin) for origin in origins]
        among = self._judge.distinct(scan.table, texts, scan.condition)
        if among is None or (share >= 1 and not scan.condition):
            return among
        # Of a share taken evenly; conditions may keep fewer, which enough rows show.
        evenly = self._judge.distinct_of_share(scan.table, texts, min(share, 1.0) * scan.share)
        if evenly is None:
            return None
        return min(evenly, among)

    def frequent(self, scan: Scanned, origin: Origin) -> Mapping[Any, float]:
        """The frequent values of a column in the rows of a scan, with their shares."""
        if self._judge is None:
            return {}
        column = only_column(origin.expression)
        own = () if column is None else scan.on_column.get(column, ())
        found = self._judge.frequent(scan.table, sql_of(origin), scan.condition, " AND ".join(own))
        return found or {}

    def width(self, scan: Scanned, origin: Origin) -> float | None:
        """Bytes of a value."""
        return None if self._judge is None else self._judge.mean_width(scan.table, sql_of(origin))
