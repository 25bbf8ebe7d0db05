"""Statements of sealed clients are refused however they are written, and nothing else fails."""

from __future__ import annotations

import contextlib

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.core.errors import QueryardError
from queryard.engine.errors import NotAllowed
from queryard.engine.sealing.access import ALL, Access, Seal
from queryard.engine.sealing.hiding import without_folders
from queryard.engine.sealing.statements import checked_sealed
from queryard.engine.syntax.classify import classify

SEALED = Access(sealed=True)
GAPS = st.sampled_from([" ", "\n", "\t ", "/**/", " /* FROM t */ ", "--x\n"])
# The words of statements that must be refused; between them any gap may stand.
REFUSED = (
    ("FROM", "read_text", "(", "'a'", ")"),
    ("FROM", '"read_csv"', "(", "'a'", ")"),
    ("SELECT", "*", "FROM", "t", "JOIN", "'a.csv'", "ON", "true"),
    ("WITH", "c", "AS", "(", "FROM", "glob", "(", "'*'", ")", ")", "FROM", "c"),
    ("EXPLAIN", "ANALYZE", "COPY", "t", "TO", "'a.csv'"),
    ("EXPLAIN", "(", "FORMAT", "json", ")", "FROM", "duckdb_settings", "(", ")"),
    ("PREPARE", "p", "AS", "FROM", "duckdb_secrets", "(", ")"),
    ("SET", "SESSION", '"allowed_paths"', "=", "[", "'/'", "]"),
    ("PRAGMA", "threads", "=", "3"),
    ("RESET", "GLOBAL", "TimeZone"),
    ("CREATE", "OR", "REPLACE", "TEMP", "SECRET", "s", "(", "TYPE", "s3", ")"),
    ("ATTACH", "IF", "NOT", "EXISTS", "'a'", "AS", "b"),
    ("INSERT", "INTO", "t", "FROM", "read_json", "(", "'a'", ")"),
    ("SELECT", "current_setting", "(", "'secret_directory'", ")"),
    ("CALL", "enable_logging", "(", ")"),
    ("SELECT", "pg_catalog", ".", '"pg_get_viewdef"', "(", "1", ")"),
)


@given(st.sampled_from(REFUSED), st.data())
def test_refused_however_it_is_written(words, data):
    written = [
        word if word[0] == "'" else data.draw(st.sampled_from([word, word.lower(), word.upper()]))
        for word in words
    ]
    text = "".join(word + data.draw(GAPS) for word in written)
    prefix = data.draw(st.sampled_from(["", "SELECT 1;", "-- no\n"]))
    for statement in classify(prefix + text)[-1:]:
        with pytest.raises(NotAllowed):
            checked_sealed(statement, SEALED)


def test_macros_that_call_a_refused_function_are_refused_and_no_others():
    with duckdb.connect() as connection:
        macros = connection.execute(
            "SELECT lower(function_name), string_agg(macro_definition, ' ') "
            "FROM duckdb_functions() WHERE function_type = 'macro' GROUP BY ALL"
        ).fetchall()
    telling = ("duckdb_views", "pragma_database_size", "sleep_ms", "duckdb_settings", "duckdb_logs")
    for name, definition in macros:
        (statement,) = classify(f"SELECT {name} (1)")
        if any(each in definition for each in telling):
            with pytest.raises(NotAllowed, match=name):
                checked_sealed(statement, SEALED)
        else:
            assert checked_sealed(statement, SEALED) is statement


WORDS = ["SELECT", "FROM", "(", ")", "'a'", '"b"', "explain", "prepare", "as", "set", "copy", "to"]


@given(st.lists(st.sampled_from([*WORDS, "x", "=", ",", "create", "temp", "use", ";"]), max_size=9))
def test_any_text_is_allowed_or_refused_with_a_reason(words):
    with contextlib.suppress(QueryardError):
        for statement in classify(" ".join(words)):
            checked_sealed(statement, SEALED)


@pytest.mark.parametrize(
    "target",
    [
        "'.queryard/tokens.json'",
        "'a/.Queryard/x.csv'",
        "'kept/tokens.json'",
        "'kept'",
        "'a'",  # OVERWRITE would empty it, with what is kept in it
        "'x' (PER_THREAD_OUTPUT, FILENAME_PATTERN '../.queryard/x')",
        "'x' (PER_THREAD_OUTPUT, file_extension '/../../.queryard/tokens.json')",
        "'x' (PER_THREAD_OUTPUT, \"FILENAME_PATTERN\" ('..' || '/x'))",
    ],
)
def test_files_of_the_server_are_never_replaced(tmp_path, target):
    private = frozenset({tmp_path / "kept", tmp_path / "a" / "temp", tmp_path.parent})
    access = Access(sealed=True, output=tmp_path, private=private)
    (statement,) = classify(f"COPY t TO {target}")
    with pytest.raises(NotAllowed, match=r"^COPY … TO"):
        checked_sealed(statement, access)
    (statement,) = classify("COPY t TO 'a/x' (PER_THREAD_OUTPUT, FILENAME_PATTERN 'p_{i}')")
    assert str(tmp_path / "a" / "x") in checked_sealed(statement, access).sql


def test_access_is_a_key():
    assert Access(tables=["A", "b.*"], sealed=True) == Access(tables={"a", "B.*"}, sealed=True)
    assert hash(Access()) == hash(ALL)
    with pytest.raises(QueryardError, match="tables"):
        Access(tables="orders")
    with pytest.raises(QueryardError, match="sealed"):
        Access(writes=frozenset({"shop"}))


def test_a_seal_names_files_as_duckdb_looks_for_them():
    settings = Seal(frozenset({"/d/it's [1].csv"})).settings()
    assert settings["allowed_paths"] == "['/d/it''s [1].csv', '/d/it''s [[]1].csv']"
    assert list(settings)[-1] == "enable_external_access"


def test_folders_are_not_told():
    assert without_folders("no file") == "no file"
    assert without_folders("at https://example.org/a/b/c") == "at https://example.org/a/b/c"
    assert without_folders("a / b / c, /srv/data/x.csv") == "a / b / c, x.csv"
