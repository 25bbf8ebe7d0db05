"""The tokens of short texts that were seen last are kept."""

from __future__ import annotations

from queryard.engine.syntax.classify import classify, forget_statements
from queryard.engine.syntax.tokens import SHORT, tokens


def test_a_text_is_tokenized_once_for_all_that_look_at_it(monkeypatch):
    forget_statements()
    text = "SELECT a, 'b' FROM t WHERE c < 17"
    found = tokens(text)
    monkeypatch.setattr("duckdb.tokenize", None)
    assert tokens(text) is found
    (statement,) = classify(text)
    assert statement.words == tuple(found.words)
    assert statement.template == "select a, ? from t where c < ?"
    forget_statements()


def test_neither_long_texts_nor_forgotten_ones_are_kept():
    long = f"SELECT '{'x' * SHORT}'"
    assert tokens(long) is not tokens(long)
    assert tokens(long) == tokens(long)
    found = tokens("SELECT 1")
    forget_statements()
    assert tokens("SELECT 1") is not found
