"""Looks at a database file that an instance of this process writes: the instance is asked."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import duckdb
import pytest

from queryard.sql.catalog import CatalogError, open_catalog
from queryard.sql.catalog import database as looked_at
from queryard.sql.catalog.open_files import Claims


class Writer:
    """An instance that writes `shop.duckdb`, and says what it has attached."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.connection = duckdb.connect()
        self.asked = threading.Event()
        self.catalog = open_catalog(file.parent)
        self.claims = Claims(self.catalog.metadata, self.ask)
        self.claims.claim(str(file), True)
        self.connection.execute(f"ATTACH '{file}' AS shop")
        self.claims.opened(str(file))

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        found = self.connection.cursor().execute(sql).fetchall()
        self.asked.set()
        return found

    def detach(self) -> None:
        """As a ROLLBACK does: the claim is still there. The file has changed."""
        self.connection.execute("INSERT INTO shop.goods VALUES (1)")
        self.connection.execute("DETACH shop")

    def notice(self) -> None:
        self.claims.closing(str(self.file))
        self.claims.release({str(self.file)})


@pytest.fixture
def writer(tmp_path):
    file = tmp_path / "shop.duckdb"
    with duckdb.connect(str(file)) as made:
        made.execute("CREATE TABLE goods (id INTEGER)")
    made = Writer(file)
    yield made
    made.claims.release()
    made.connection.close()


def test_the_instance_that_writes_it_is_asked(writer):
    writer.connection.execute("CREATE TABLE shop.orders (id INTEGER)")
    writer.catalog.refresh()
    assert set(writer.catalog) == {"shop.goods", "shop.orders"}


def test_a_look_waits_until_a_detached_file_is_let_go(writer):
    writer.detach()
    noticing = threading.Thread(target=lambda: (writer.asked.wait(30), writer.notice()))
    noticing.start()
    writer.catalog.refresh()
    noticing.join()
    assert list(writer.catalog) == ["shop.goods"]
    assert not writer.catalog.broken


def test_a_file_that_is_never_let_go_is_passed_over_with_the_reason(writer, monkeypatch):
    monkeypatch.setattr(looked_at, "UNDONE_S", 0.05)
    writer.detach()
    writer.catalog.refresh()
    assert list(writer.catalog) == []
    with pytest.raises(CatalogError, match="is being detached in this session"):
        _ = writer.catalog["goods"]
