"""When the files of a catalog are looked at: by default with every statement that is submitted."""

from __future__ import annotations

import contextlib
from collections.abc import Set

from .catalog import Catalog
from .model import CatalogError

BUDGET_S = 0.05
"""A look at a place that takes longer than this is not done for every statement …"""
SHARE = 0.1
"""… but for at most this share of the time."""


class Freshness:
    """Looks at files before statements are planned; any thread may ask.

    A place is what one entry of a folder or of a catalog file stands for. What is known of it may
    be `fresh_s` old. With 0 it is looked at after the statement was submitted, unless a look takes
    more than BUDGET_S: then it is done for at most SHARE of the time, so that 0.2 s for a folder of
    a hundred thousand files may be 2 s old.
    """

    def __init__(self, catalog: Catalog, fresh_s: float = 0.0) -> None:
        self._catalog = catalog
        self._fresh_s = fresh_s
        self._all = False

    def look(self, names: Set[str] | None) -> None:
        """Look at what these names, in lower case, may mean; None for everything.

        A statement for which everything is looked at may leave something behind that hides names,
        as a view does. Everything is looked at from then on.
        """
        self._all = self._all or names is None
        self._refresh(None if self._all else names)

    def look_around(self) -> None:
        """Look at everything this once, for a listing of all tables."""
        self._refresh(None)

    def _refresh(self, names: Set[str] | None) -> None:
        # A folder that is being changed may make no sense for a moment: what was known stays.
        with contextlib.suppress(CatalogError):
            self._catalog.refresh(names, self.allowed_s)

    def allowed_s(self, took_s: float) -> float:
        """For how long what a look found may be used, from the time that it took."""
        return max(self._fresh_s, took_s / SHARE if took_s > BUDGET_S else 0.0)
