"""Which statements were found to need no casts, by their texts without literals.

DuckDB binds a statement in about a millisecond, as long as it takes to run a small one. What it
tells, names and types of the columns, comes with the rows as well; it is needed before only where
columns have to be cast. That a template needed no casts is a hint and no more: other literals may
give other types, so the types that come with the rows are looked at, too.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from queryard.engine.access import Access
from queryard.engine.classify import Classified

KEPT = 2_000


class PlainTemplates:
    """Those of one listener; from any thread.

    >>> from queryard.engine.access import ALL
    >>> from queryard.engine.classify import classify
    >>> plain = PlainTemplates()
    >>> plain.add(ALL, classify("SELECT 1")[0])
    >>> plain.has(ALL, classify("SELECT 2")[0]), plain.has(ALL, classify("SELECT 1, 2")[0])
    (True, False)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[Access, str], None] = OrderedDict()

    def add(self, access: Access, statement: Classified) -> None:
        """No column of the statement needs a cast."""
        if statement.kind == "SELECT" and statement.reads:
            with self._lock:
                self._known[access, statement.template] = None
                if len(self._known) > KEPT:
                    self._known.popitem(last=False)

    def has(self, access: Access, statement: Classified) -> bool:
        """Whether that was so for a statement that differs in literals at most."""
        with self._lock:
            key = access, statement.template
            if statement.kind != "SELECT" or key not in self._known:
                return False
            self._known.move_to_end(key)
            return statement.reads

    def discard(self, access: Access, statement: Classified) -> None:
        """A column needs a cast after all."""
        with self._lock:
            self._known.pop((access, statement.template), None)
