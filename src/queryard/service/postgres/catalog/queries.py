"""Catalog queries answered: which they are, what they give."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .answers import CatalogAnswer, Described, UnknownCatalogQuery
from .facts import CatalogFacts

_TRIGGER = re.compile(r"\bpg_|\binformation_schema\b|\bcurrent_|\bversion\s*\(", re.IGNORECASE)


class CatalogQueries:
    """The catalogs of one client, and the answers to its questions on them. Any thread may ask."""

    def __init__(self, facts: CatalogFacts) -> None:
        self.facts = facts

    def concerns(self, sql: str) -> bool:
        """Whether a statement asks for the catalogs or the session, and not for data."""
        return _TRIGGER.search(sql) is not None

    def answer(
        self, sql: str, parameters: Sequence[Any] = (), session: Mapping[str, str] = {}
    ) -> CatalogAnswer:
        """The rows of a catalog query.

        `parameters` are the values of $1, $2 … as Python has them. `session` has the settings of
        the session by name, in lower case (`server_version`, `search_path` …), and what is not a
        setting: `user`, `database`, `pid`, `version`.
        """
        raise UnknownCatalogQuery("no catalog query is answered yet")

    def describe(self, sql: str, parameters: Sequence[int] | None = None) -> Described:
        """The columns and parameters of a catalog query, without running it.

        `parameters` are the OIDs that the client gave; 0, or one that is missing, is not known.
        """
        raise UnknownCatalogQuery("no catalog query is described yet")

    def close(self) -> None:
        """Give the memory back."""
