"""A session says what it is, and which tables there are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import queryard


def test_a_session_shows_itself_and_lists_its_tables(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("id,price\n1,2\n")
    (tmp_path / "my trips.csv").write_text("id,price\n1,2\n")
    with queryard.connect(tmp_path, slots=1, memory="400 MB", history=False) as qy:
        assert repr(qy) == (
            f"<Session on {tmp_path}, 2 tables: 1 slot, 0.4 GB of memory, policy marshal, "
            "0 active queries>"
        )
        assert qy.tables() == ('"my trips"', "orders")
        for name in qy.tables():
            assert qy.sql(f"SELECT count(*) FROM {name}").fetchall() == [(1,)]
        qy.register("more", pa.table({"n": [1]}))
        assert "more" in qy.tables()
    assert repr(qy).endswith("policy marshal, closed>")


def test_a_session_on_frames_has_no_place() -> None:
    tables = {"t": pa.table({"n": [1]})}
    with queryard.connect(tables=tables, slots=2, memory="400 MB", history=False) as qy:
        assert repr(qy).startswith("<Session on 1 table: 2 slots, 0.4 GB")
