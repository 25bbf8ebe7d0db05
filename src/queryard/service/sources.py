"""From what a server was started with to its settings: the data, a file, and options before both.

They are read when the server starts, and again when it is told to reload.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Protocol

from queryard.core.errors import QueryardError, near_name
from queryard.history.places import beside
from queryard.live.session import DEFAULT_PROFILE, Session
from queryard.live.settings import session_settings
from queryard.sql.catalog import Catalog, open_catalog

from .config import ServiceConfig
from .config_file import ConfigFile, Grant, read_config
from .logs import log
from .outputs import check_outputs, risky_outputs

TOKENS = "tokens.json"
_MARKS = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the server, and those of its session as `Session` takes them."""

    service: ServiceConfig
    session: Mapping[str, Any]
    grants: tuple[Grant, ...] = ()


class Followed(Protocol):
    """What follows settings: a session, or the controls of one, which know of changes beside."""

    def use_tenants(
        self,
        tenants: Mapping[str, Any] | None,
        limits: Mapping[str, Any] | None = None,
        profile: str | Mapping[str, Any] | None = None,
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class Sources:
    """What a server was started with.

    `data` is a place as for `queryard.connect`. The settings are those of the file `config`, or of
    `data` where that is a catalog file. `service` and `session` are options that count first.
    """

    data: str | None = None
    config: Path | None = None
    service: Mapping[str, Any] = field(default_factory=dict)
    session: Mapping[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> Path:
        """The data: as named, else what the file of settings names."""
        if self.data is not None:
            return Path(self.data).expanduser()
        if self.config is not None:
            return self.config
        raise QueryardError(
            "the data to serve: none is named; give a folder, a DuckDB database or a catalog file, "
            "or --config FILE with [tables]"
        )

    def read(self) -> Settings:
        """All settings as they are now."""
        tokens = beside(self.place) / TOKENS
        file = self._file()
        found = None if file is None else read_config(file, tokens)
        if found is not None and self.data is not None and file == self.config:
            self._check_tables(found)
        service = ServiceConfig(tokens=tokens) if found is None else found.service
        session = {} if found is None else session_settings(found.session)
        service = replace(service, **self.service)
        service.check()
        grants = () if found is None else found.grants
        session = {**session, **self.session}
        check_outputs(grants, self._kept(service.tokens, session))
        return Settings(service, session, grants)

    def _kept(self, tokens: Path, session: Mapping[str, Any]) -> dict[str, Path]:
        """Folders of the server's own files, by what is there."""
        kept = {"tokens": tokens.parent, "what Queryard keeps of the data": beside(self.place)}
        if isinstance(history := session.get("history"), str | Path):
            kept["the history"] = Path(history).parent
        if temp := session.get("temp"):
            kept["rows and segments"] = Path(temp)
        return kept

    def _file(self) -> Path | None:
        if self.config is not None:
            return self.config
        return self.place if self.place.suffix.lower() == ".toml" else None

    def _check_tables(self, found: ConfigFile) -> None:
        if found.names_tables:
            raise QueryardError(
                f"{self.config}: names tables, and so does {self.data}; serve one of them, and "
                f"add the other under [folders] or [tables] of {self.config}"
            )

    def open(self, settings: Settings) -> Session:
        """A session on the data."""
        # The tables of a file count as read with the grants: none is there before its grants are.
        catalog = open_catalog(self.place, holds_file=True)
        grants = settings.service.grants.values()
        writes = any(access.lets_write for access in grants)
        return Session(catalog, write=writes, **settings.session)

    def follow(self, session: Followed, settings: Settings) -> None:
        """Let a session follow tenants, limits and a policy; if one is wrong, nothing changes.

        What is bound to the session as it was opened (slots, memory, history …) stays.
        """
        given = settings.session
        profile = given.get("profile", DEFAULT_PROFILE)
        session.use_tenants(given.get("tenants"), given.get("limits"), profile)


def tell_of_grants(catalog: Catalog, grants: Iterable[Grant]) -> None:
    """Log what looks like a mistake in grants."""
    grants = tuple(grants)
    for doubt in doubtful_grants(catalog, grants):
        log("a grant names what is not there", logging.WARNING, grant=doubt)
    for doubt in risky_outputs(catalog, grants):
        log("a grant lets files of tables be replaced", logging.WARNING, grant=doubt)


def doubtful_grants(catalog: Catalog, grants: Iterable[Grant]) -> list[str]:
    """What is granted and is not there, as a rule by a mistake: with its line, and what is near."""
    databases = [database.alias for database in catalog.databases]
    # A database is granted as a whole, and may have no tables yet.
    tables = [*catalog.tables, *(f"{alias}." for alias in databases)]
    said = []
    for grant in grants:
        name, what = grant.name, f"{grant.where}: tenants.{grant.tenant}.{grant.key}"
        if grant.key == "output":
            if not Path(name).is_dir():
                said.append(f"{what}: there is no folder {name}; make it, or COPY … TO fails")
            continue
        known = databases if grant.key == "write" else tables
        if any(fnmatchcase(each.lower(), name.lower()) for each in known):
            continue
        kind = "database" if grant.key == "write" else "table"
        near = near_name(name.lower(), [*databases, *catalog.tables])
        hint = "" if near is None else f"; did you mean {near!r}?"
        if not hint and _MARKS.isdisjoint(name) and known:
            hint = f"; there are {', '.join(sorted(each.rstrip('.') for each in known)[:10])}"
        said.append(f"{what}: there is no {kind} {name!r} now{hint}")
    return said
