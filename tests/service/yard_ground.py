"""A yard on small data, with a token for each of some tenants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import queryard
from queryard.service.config import ServiceConfig, ServiceLimits
from queryard.service.principal import Principal
from queryard.service.tokens import TokenStore
from queryard.service.yard import Yard

ROWS = 30_000
NO_OTHER_LIMITS = ServiceLimits()
WHO: Mapping[str, tuple[str, str]] = {
    "ann": ("sales", "user"),
    "ben": ("sales", "user"),
    "eve": ("web", "user"),
    "root": ("ops", "admin"),
}


def write_data(folder: Path) -> None:
    """`numbers` with an n and a text, in several row groups, and `small` with three rows."""
    table = pa.table({"n": pa.array(range(ROWS)), "t": [f"row {n}" for n in range(ROWS)]})
    pq.write_table(table, folder / "numbers.parquet", row_group_size=ROWS // 6)
    pq.write_table(pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]}), folder / "small.parquet")


class Ground:
    """A yard, its tokens' secrets and principals by name."""

    def __init__(self, yard: Yard, secrets: Mapping[str, str]) -> None:
        self.yard = yard
        self.secrets = dict(secrets)

    def principal(self, name: str) -> Principal:
        found = self.yard.tokens.principal(name)
        assert found is not None
        return found


@contextmanager
def a_ground(
    folder: Path,
    *,
    limits: ServiceLimits = NO_OTHER_LIMITS,
    session: Mapping[str, Any] = {},
    place: Path | None = None,
    **config: Any,
) -> Iterator[Ground]:
    """A session on `folder/data`, made if it is not there, or on a place; and a yard on it."""
    data = folder / "data"
    if not data.exists():
        data.mkdir()
        write_data(data)
    tokens = TokenStore(folder / "private" / "tokens.json")
    known = {info.name for info in tokens.list()}
    secrets = {
        name: tokens.add(name, tenant, role)  # type: ignore[arg-type]
        for name, (tenant, role) in WHO.items()
        if name not in known
    }
    settings = {"slots": 2, "memory": "512 MB", "temp": folder / "temp", "history": False}
    with queryard.connect(place or data, **{**settings, **session}) as qy:
        yard = Yard(qy, replace(ServiceConfig(limits=limits), **config), tokens)
        try:
            yield Ground(yard, secrets)
        finally:
            yard.close()
