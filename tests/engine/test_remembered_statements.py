"""Statements are remembered by their text, and forgotten when many others have come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.engine import classify as module
from queryard.engine.classify import classify
from queryard.engine.errors import QueryFailed
from queryard.engine.tokens import tokens


def test_a_text_seen_before_is_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = classify("SELECT 1 AS seen_before; SET threads = 3")

    def fails(sql: str) -> list[tuple[str, str]]:
        raise AssertionError(sql)

    monkeypatch.setattr(module, "parse", fails)
    again = classify("SELECT 1 AS seen_before; SET threads = 3")
    assert [id(one) for one in again] == [id(one) for one in first]
    again.clear()  # the list is the caller's
    assert len(classify("SELECT 1 AS seen_before; SET threads = 3")) == 2


def test_errors_are_not_remembered() -> None:
    for _ in range(2):
        with pytest.raises(QueryFailed, match="syntax error"):
            classify("SELEC 1")


def test_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_REMEMBERED", 100)
    monkeypatch.setattr(module, "_remembered", module._Remembered())
    for number in range(50):
        classify(f"SELECT {number} AS number")
    known = module._remembered._found
    assert 0 < sum(map(len, known)) <= 100
    assert "SELECT 49 AS number" in known
    classify("SELECT '" + "x" * 200 + "'")
    assert not known


@given(st.text(alphabet="aÉ'\" .,;-/*()1\n", max_size=40))
def test_tokens_are_the_same_whether_the_text_is_ascii_or_not(text: str) -> None:
    plain, accented = tokens(text), tokens(text + "\nÉ")
    assert len({len(plain.offsets), len(plain.ends), len(plain.texts), len(plain.masked)}) == 1
    assert plain.words == [token.lower() for token in plain.texts]
    raw = text.encode()
    for offset, token in zip(plain.offsets, plain.texts, strict=True):
        assert raw[offset:].decode().lstrip().startswith(token)
    known = max(0, len(plain.offsets) - 1)
    assert accented.offsets[:known] == plain.offsets[:-1]
    assert accented.masked[:known] == plain.masked[:-1]
