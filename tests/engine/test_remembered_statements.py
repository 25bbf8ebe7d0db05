"""Statements are remembered by their text, and forgotten when many others have come."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.engine.errors import QueryFailed
from queryard.engine.sealing import statements as sealed
from queryard.engine.sealing.access import Access
from queryard.engine.syntax import classify as module
from queryard.engine.syntax.classify import Classified, classify
from queryard.engine.syntax.remembered import EACH, MOST, Remembered
from queryard.engine.syntax.tokens import tokens


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
    known: Remembered[str, tuple[Classified, ...]] = Remembered(most=1_000, longest=1_000)
    monkeypatch.setattr(module, "_remembered", known)
    for number in range(50):
        classify(f"SELECT {number} AS number")
    assert 0 < len(known) < 10
    assert known.characters <= 1_000
    assert "SELECT 49 AS number" in known
    classify("SELECT '" + "x" * 1_000 + "'")
    assert "SELECT 49 AS number" in known  # what cannot be kept pushes nothing out


def test_checked_statements_are_bounded_by_their_characters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known: Remembered[tuple[Classified, Access], Classified] = Remembered()
    monkeypatch.setattr(sealed, "_checked", known)
    access = Access(sealed=True, writes=frozenset({"shop"}))
    statement = classify("SELECT 1 AS short")[0]
    assert sealed.checked_sealed(statement, access) is statement
    assert (statement, access) in known
    for number in range(40):
        rows = ", ".join(f"({number}, {row})" for row in range(600))
        sealed.checked_sealed(classify(f"INSERT INTO shop.t VALUES {rows}")[0], access)
    assert known.characters <= MOST
    long = classify("INSERT INTO shop.t VALUES " + ", ".join(["(1)"] * 20_000))[0]
    assert sealed.checked_sealed(long, access) is long
    assert (long, access) not in known


@pytest.mark.parametrize("sql", ["INSERT INTO t VALUES (1)", "SELECT {} FROM t", "COPY t TO 'a'"])
def test_words_of_long_statements_are_freed_once_they_were_checked(
    sql: str, tmp_path: Path
) -> None:
    access = Access(sealed=True, writes=frozenset({"shop"}), output=tmp_path)
    long = classify(sql.replace("{}", "1") + " -- " + "x" * 2_000)[0]
    sealed.checked_sealed(long, access)
    assert {"tokens", "words"}.isdisjoint(vars(long))
    assert long.words[0] == sql.split()[0].lower()
    long.forget_words()
    assert {"tokens", "words"}.isdisjoint(vars(long))


@given(
    st.lists(st.tuples(st.sampled_from("abcdefg"), st.integers(0, 300)), max_size=60),
    st.integers(200, 900),
)
def test_never_more_characters_are_kept_than_allowed(
    puts: list[tuple[str, int]], most: int
) -> None:
    kept: Remembered[str, int] = Remembered(most, longest=250)
    last: dict[str, int] = {}
    for key, size in puts:
        kept.put(key, size, size)
        last[key] = size
        assert kept.characters <= most
        assert kept.get(key) == (size if size <= min(250, most - EACH) else None)
    held = {key: size for key, size in last.items() if key in kept}
    assert kept.characters == sum(size + EACH for size in held.values())
    assert all(kept.get(key) == size for key, size in held.items())
    for key in last:
        kept.drop(key)
    assert (len(kept), kept.characters) == (0, 0)


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
