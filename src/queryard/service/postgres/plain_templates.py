"""Which statements were found to need no casts, by their texts without literals.

DuckDB binds a statement in about a millisecond, as long as it takes to run a small one. What it
tells, names and types of the columns, comes with the rows as well; it is needed before only where
columns have to be cast. That a template needed no casts is a hint and no more: other literals may
give other types, so the types that come with the rows are looked at, too.
"""

from __future__ import annotations

from queryard.engine.sealing.access import Access
from queryard.engine.syntax.classify import Classified
from queryard.engine.syntax.remembered import Remembered


class PlainTemplates:
    """Those of one listener; from any thread.

    >>> from queryard.engine.sealing.access import ALL
    >>> from queryard.engine.syntax.classify import classify
    >>> plain = PlainTemplates()
    >>> plain.add(ALL, classify("SELECT 1")[0])
    >>> plain.has(ALL, classify("SELECT 2")[0]), plain.has(ALL, classify("SELECT 1, 2")[0])
    (True, False)
    """

    def __init__(self) -> None:
        self._known: Remembered[tuple[Access, str], bool] = Remembered()

    def add(self, access: Access, statement: Classified) -> None:
        """No column of the statement needs a cast."""
        if statement.kind == "SELECT" and statement.reads:
            template = statement.template
            self._known.put((access, template), len(template), True)

    def has(self, access: Access, statement: Classified) -> bool:
        """Whether that was so for a statement that differs in literals at most."""
        if statement.kind != "SELECT" or self._known.get((access, statement.template)) is None:
            return False
        return statement.reads

    def discard(self, access: Access, statement: Classified) -> None:
        """A column needs a cast after all."""
        self._known.drop((access, statement.template))
