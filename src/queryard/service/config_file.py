"""Settings of a server from TOML: the catalog file's schema, with `[service]` and grants.

[service]
http = "0.0.0.0:8080"                 # false: no HTTP
postgres = 5433                       # a port alone: on 127.0.0.1
quack = "http"                        # at the address of HTTP; or an address of its own, or false
tls = { cert = "server.pem", key = "server.key" }
grace = "30 s"
limits = { connections = 500, result = "1 GB", result_ttl = "10 min" }

[tenants.sales]
weight = 2
tables = ["sales.*", "calendar"]      # none named: all
write = ["shop"]                      # databases
output = "exports/sales"              # where COPY … TO may write
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from queryard.core.amounts import parse_seconds, some_bytes, some_seconds
from queryard.core.errors import QueryardError, unknown_name
from queryard.core.positions import toml_lines
from queryard.engine.sealing.access import Access
from queryard.live.admission.limits import FIELDS as SESSION_LIMITS
from queryard.live.admission.tenants import FIELDS as TENANT_KEYS
from queryard.live.admission.tenants import GRANTS
from queryard.live.backend_setting import InvalidBackend, read_backend
from queryard.live.settings import KEYS as SESSION_KEYS
from queryard.sql.catalog.catalog_file import FIELDS as CATALOG_KEYS
from queryard.sql.catalog.catalog_file import SETTINGS

from .config import HTTP_PORT, POSTGRES_PORT, QUACK_PORT, Address, ServiceConfig, ServiceLimits, Tls

Path_ = tuple[str, ...]


class InvalidConfig(QueryardError):
    """A setting that cannot be meant as it is written, with its line."""


@dataclass(frozen=True, slots=True)
class Grant:
    """One name that a tenant was granted, and where that stands."""

    tenant: str
    key: str
    name: str
    where: str


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """What a file says: settings of the server, settings of the session, and whether it has
    tables.
    """

    service: ServiceConfig
    session: Mapping[str, object]
    names_tables: bool
    grants: tuple[Grant, ...] = ()


def read_config(file: Path, tokens: Path) -> ConfigFile:
    """The settings in a file; tokens are kept in `tokens` unless it says otherwise."""
    try:
        text = file.read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except OSError as error:
        raise InvalidConfig(f"{file}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise InvalidConfig(f"{file}: is not text in UTF-8 (byte {error.start})") from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidConfig(f"{file}: not valid TOML: {error}") from error
    reader = _Reader(file, text)
    return ConfigFile(
        reader.service(data, ServiceConfig(tokens=tokens)),
        {key: data[key] for key in SETTINGS if key in data},
        any(data.get(key) for key in CATALOG_KEYS),
        tuple(reader.grants),
    )


class _Reader:
    def __init__(self, file: Path, text: str) -> None:
        self._file = file
        self._base = file.parent
        self._lines = toml_lines(text)
        self.grants: list[Grant] = []

    def service(self, data: Mapping[str, Any], usual: ServiceConfig) -> ServiceConfig:
        """The server's settings; keys of the session are checked by name only."""
        self._keys(data, (), (*CATALOG_KEYS, *SETTINGS), "key")
        session = self._table(data, (), "session")
        self._keys(session, ("session",), SESSION_KEYS, "key")
        self._backend(self._table(data, (), "backend"), session)
        self._keys(self._table(data, (), "limits"), ("limits",), SESSION_LIMITS, "limit")
        grants: dict[str, Access] = {}
        self._tenants(self._table(data, (), "tenants"), ("tenants",), "", grants)
        given = self._table(data, (), "service")
        self._keys(given, ("service",), SERVICE_KEYS, "key")
        found: dict[str, Any] = {"grants": grants}
        for key, value in given.items():
            name, read = SERVICE_KEYS[key]
            found[name] = self._read(("service", key), value, read)
        return replace(usual, **found)

    def _backend(self, given: Mapping[str, Any], session: Mapping[str, Any]) -> None:
        """Settings of the place where queries run: a wrong one is told with its line."""
        for key in given:
            if key in ("slots", "memory") and key in session:
                self.fail(("backend", key), "is said in [session] as well; say it once")
        try:
            read_backend(given)
        except InvalidBackend as error:
            self.fail(("backend", error.key), str(error), ())

    def _tenants(
        self, given: Mapping[str, Any], path: Path_, above: str, grants: dict[str, Access]
    ) -> None:
        for name in given:
            place = (*path, name)
            tenant = self._table(given, path, name)
            self._keys(tenant, place, TENANT_KEYS, "key")
            limits = self._table(tenant, place, "limits")
            self._keys(limits, (*place, "limits"), SESSION_LIMITS, "limit")
            if not tenant.keys().isdisjoint(GRANTS):
                grants[f"{above}{name}"] = Access(
                    tables=self._names(place, tenant, "tables"),
                    sealed=True,
                    writes=self._names(place, tenant, "write") or frozenset(),
                    output=self._folder(place, tenant),
                )
                self._note_grants(place, tenant, f"{above}{name}")
            below = self._table(tenant, place, "tenants")
            self._tenants(below, (*place, "tenants"), f"{above}{name}/", grants)

    def _note_grants(self, place: Path_, tenant: Mapping[str, Any], name: str) -> None:
        for key in ("tables", "write"):
            for number, granted in enumerate(tenant.get(key, ())):
                self.grants.append(Grant(name, key, granted, self._where((*place, key, number))))
        if "output" in tenant:
            folder = str(self.path(tenant["output"]))
            self.grants.append(Grant(name, "output", folder, self._where((*place, "output"))))

    def _where(self, path: tuple[str | int, ...]) -> str:
        at = path
        while at not in self._lines:
            at = at[:-1]
        return f"{self._file}, line {self._lines[at]}"

    def _names(self, place: Path_, tenant: Mapping[str, Any], key: str) -> frozenset[str] | None:
        if key not in tenant:
            return None
        given = tenant[key]
        if not isinstance(given, list) or not all(isinstance(name, str) and name for name in given):
            self.fail((*place, key), f'must be a list of names, as ["sales.*"], got {given!r}')
        return frozenset(given)

    def _folder(self, place: Path_, tenant: Mapping[str, Any]) -> Path | None:
        if "output" not in tenant:
            return None
        found: Path = self._read((*place, "output"), tenant["output"], _path)
        return found

    def _read(self, path: Path_, value: object, read: Callable[[Any, _Reader, Path_], Any]) -> Any:
        try:
            return read(value, self, path)
        except InvalidConfig:
            raise
        except QueryardError as error:
            self.fail(path, str(error))

    def _table(self, data: Mapping[str, Any], path: Path_, key: str) -> Mapping[str, Any]:
        value = data.get(key, {})
        if not isinstance(value, Mapping):
            self.fail((*path, key), f"must be a table, got {value!r}")
        return value

    def _keys(self, given: Mapping[str, Any], path: Path_, valid: Any, what: str) -> None:
        for key in given:
            if key not in valid:
                self.fail((*path, key), unknown_name(what, key, valid), path)

    def fail(self, path: Path_, problem: str, named: Path_ | None = None) -> NoReturn:
        """Raise the error about a setting, with its line."""
        where = ".".join(path if named is None else named)
        raise InvalidConfig(f"{self._where(path)}: {where}{': ' if where else ''}{problem}")

    def path(self, text: str) -> Path:
        """A path; relative ones start at the folder of the file."""
        return self._base / Path(text).expanduser()

    def limits(self, given: object, path: Path_) -> ServiceLimits:
        """Limits by name."""
        if not isinstance(given, Mapping):
            self.fail(path, f"must be a table, got {given!r}")
        self._keys(given, path, LIMIT_KEYS, "limit")
        found = {}
        for key, value in given.items():
            name, read = LIMIT_KEYS[key]
            found[name] = self._read((*path, key), value, read)
        return ServiceLimits(**found)

    def tls(self, given: object, path: Path_) -> Tls:
        """A certificate and its key."""
        if not isinstance(given, Mapping):
            self.fail(path, f'must be {{ cert = "…", key = "…" }}, got {given!r}')
        self._keys(given, path, ("cert", "key"), "key")
        for key in ("cert", "key"):
            if key not in given:
                self.fail(path, f"{key} is missing: name the file of the {_TLS_FILES[key]}")
        files = {key: self._read((*path, key), given[key], _path) for key in _TLS_FILES}
        return Tls(**files)


_TLS_FILES = {"cert": "certificate", "key": "private key"}


def _path(value: object, reader: _Reader, path: Path_) -> Path:
    if not isinstance(value, str) or not value:
        raise QueryardError(f"must be a path, got {value!r}")
    return reader.path(value)


def _address(port: int) -> Callable[[Any, _Reader, Path_], Address | None]:
    def read(value: object, reader: _Reader, path: Path_) -> Address | None:
        return None if value is False else Address.parse(value, "address", port)

    return read


def _quack(value: object, reader: _Reader, path: Path_) -> object:
    return value if value == "http" else _address(QUACK_PORT)(value, reader, path)


def _bool(value: object, reader: _Reader, path: Path_) -> bool:
    if not isinstance(value, bool):
        raise QueryardError(f"must be true or false, got {value!r}")
    return value


def _log(value: object, reader: _Reader, path: Path_) -> str:
    if value not in ("text", "json"):
        raise QueryardError(f'must be "text" or "json", got {value!r}')
    return str(value)


def _count(value: object, reader: _Reader, path: Path_) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise QueryardError(f"must be a whole number, at least 1, got {value!r}")
    return value


def _rate(value: object, reader: _Reader, path: Path_) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise QueryardError(f"must be a number above 0, got {value!r}")
    return float(value)


def _bytes(value: object, reader: _Reader, path: Path_) -> int:
    return int(some_bytes(value, "size"))


def _time(value: object, reader: _Reader, path: Path_) -> float:
    return some_seconds(value, "time")


# By key: the name of the field, and how it is read.
SERVICE_KEYS: Mapping[str, tuple[str, Callable[[Any, _Reader, Path_], Any]]] = {
    "http": ("http", _address(HTTP_PORT)),
    "postgres": ("postgres", _address(POSTGRES_PORT)),
    "quack": ("quack", _quack),
    "tls": ("tls", lambda value, reader, path: reader.tls(value, path)),
    "insecure": ("insecure", _bool),
    "grace": ("grace_s", lambda value, reader, path: parse_seconds(value)),
    "tokens": ("tokens", _path),
    "redact": ("redact", _bool),
    "log": ("log", _log),
    "limits": ("limits", lambda value, reader, path: reader.limits(value, path)),
}
LIMIT_KEYS: Mapping[str, tuple[str, Callable[[Any, _Reader, Path_], Any]]] = {
    "request": ("request_bytes", _bytes),
    "statements_per_s": ("statements_per_s", _rate),
    "open_results": ("open_results", _count),
    "connections": ("connections", _count),
    "connections_per_token": ("connections_per_token", _count),
    "result": ("result_bytes", _bytes),
    "prepared": ("prepared", _count),
    "copy": ("copy_bytes", _bytes),
    "result_ttl": ("result_ttl_s", _time),
    "idle": ("idle_s", _time),
    "stall": ("stall_s", _time),
    "lock": ("lock_s", _time),
    "transaction": ("transaction_s", _time),
    "login": ("login_s", _time),
}
