"""Answers do not import what they do not need."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("pandas")


def test_rows_are_given_out_without_pandas() -> None:
    code = """
        import sys, queryard
        with queryard.connect(history=False) as qy:
            assert qy.sql("CREATE TEMP TABLE t (i INTEGER, d DATE)").fetchall() is not None
            assert qy.sql("FROM t").fetchall() == []
            assert qy.sql("SELECT 1, [2], 'a', DATE '2020-01-01'").fetchone()[0] == 1
        assert "pandas" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=120)
