"""`queryard shell`: piped in, at a terminal, and its completion."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from queryard.cli.shell_completion import ShellCompleter
from queryard.cli.shell_text import is_complete, split_complete
from queryard.sql.catalog import open_catalog

from .conftest import PATIENCE_S


@pytest.fixture
def piped(call, monkeypatch, tmp_path: Path):
    def run(text: str, *args: object):
        file = tmp_path / "typed.txt"
        file.write_text(text)
        with file.open() as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            return call("shell", *args)

    return run


def test_statements_and_commands(piped, folder: Path) -> None:
    typed = """
.tables
SELECT count(*) AS n
  FROM trips; SELECT ';' AS semicolon;
CREATE TEMP TABLE own AS SELECT 123 AS v;
.schema trips
.rows 2
.timer off
FROM trips;
FROM own
"""
    ended = piped(typed, "-d", folder)
    assert ended.code == 0, ended.err
    for text in (
        "parquet",
        "1000",
        "price",
        "2 rows, and there are more (.rows N shows more)",
        "123",
    ):
        assert text in ended.out
    assert "1 row\n" in ended.out  # without a time


def test_plans_from_the_shell(piped, folder: Path) -> None:
    typed = """
.explain SELECT city, count(*) FROM trips GROUP BY city;
.analyze SELECT count(*) FROM trips WHERE id < 10
.plan staged
.plan
.explain SELECT city, count(*) FROM trips GROUP BY city
"""
    out = piped(typed, "-d", folder).out
    assert "native: one job" in out
    assert "slot time" in out
    assert "\nstaged\n" in out
    assert "staged: 1 job" in out


def test_leaving_and_helping(piped, tmp_path: Path) -> None:
    ended = piped(".help\n.quit\nSELECT 1;\n", "-d", tmp_path)
    assert ended.code == 0
    assert ".explain" in ended.out
    assert "1 row" not in ended.out


def test_reading_a_file(piped, tmp_path: Path) -> None:
    (tmp_path / "more.sql").write_text("SELECT 5 AS five; SELECT 6 AS six;")
    out = piped(f".read {tmp_path}/more.sql\n", "-d", tmp_path).out
    assert "five" in out
    assert "six" in out


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ("SELEC;\nSELECT 77;", "Parser Error"),
        (".tabels\nSELECT 77;", "did you mean '.tables'"),
        (".rows many\nSELECT 77;", ".rows many"),
        (".schema nothing\nSELECT 77;", "nothing"),
        (".explain\nSELECT 77;", "needs a statement"),
    ],
)
def test_the_first_mistake_ends_a_script(piped, tmp_path: Path, typed: str, problem: str) -> None:
    ended = piped(typed, "-d", tmp_path)
    assert ended.code == 1
    assert problem in ended.err
    assert "77" not in ended.out


# --- where statements end ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        (".tables", True),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; -- done", True),
        ("SELECT 1; SELECT 2", False),
        ("SELECT ';", False),
        ("SELECT 'it''s;'", False),
        ('SELECT ";";', True),
        ("SELECT 1 -- ;", False),
        ("/* ; */ SELECT 1", False),
        ("/* ;", False),
        ("SELECT $$ ; $$;", True),
        ("SELECT $a$ ; $$ ; $a$", False),
    ],
)
def test_completeness(text: str, complete: bool) -> None:
    assert is_complete(text) == complete


def test_splitting_keeps_every_sign() -> None:
    text = "SELECT ';' ; SELECT 2;\n rest"
    done, rest = split_complete(text)
    assert "".join(done) + rest == text
    assert len(done) == 2


# --- completion ----------------------------------------------------------------------------------


@pytest.fixture
def complete(folder: Path):
    completer = ShellCompleter(open_catalog(folder), [".tables", ".timer", ".schema"])

    def at(text: str, after: str = "") -> list[str]:
        document = Document(text + after, len(text))
        return [found.text for found in completer.get_completions(document, CompleteEvent())]

    return at


@pytest.fixture
def odd(tmp_path: Path):
    (tmp_path / "my trips.csv").write_text("id,first name,order,Größe\n1,Ada,2,3\n2,Emmy,4,5\n")
    (tmp_path / "sales 24").mkdir()
    (tmp_path / "sales 24" / "left.csv").write_text("a,b\n1,2\n")
    (tmp_path / "sales 24" / "other.csv").write_text("c,d\n1,2\n")
    completer = ShellCompleter(open_catalog(tmp_path), [".tables", ".schema"])

    def offered(before: str, after: str = "") -> list[tuple[str, int]]:
        document = Document(before + after, len(before))
        found = completer.get_completions(document, CompleteEvent())
        return [(one.text, one.start_position) for one in found]

    return offered


def test_names_that_need_quotes_are_offered_with_them(odd) -> None:
    assert ('"my trips"', -2) in odd("SELECT * FROM my")
    assert odd('SELECT * FROM "my') == [('"my trips"', -3)]
    assert odd('SELECT * FROM "my trips"') == []
    assert odd("SELECT fir", ' FROM "my trips"')[0] == ('"first name"', -3)
    assert ('"order"', -3) in odd("SELECT ord", ' FROM "my trips"')
    assert ("Größe", -2) in odd("SELECT gr", ' FROM "my trips"')
    assert odd("SELECT t.fi", ' FROM "my trips" AS t') == [('"first name"', -2)]
    assert odd('SELECT t."fi', ' FROM "my trips" t') == [('"first name"', -3)]
    assert odd('FROM "sales 24".') == [('"left"', 0), ("other", 0)]
    assert odd('SELECT "my trips".o') == [('"order"', -1)]
    assert (".schema", -4) in odd(".sch")
    assert ('"my trips"', -2) in odd(".schema my")


def test_a_quote_within_a_text_opens_no_name(odd) -> None:
    assert ('"my trips"', -2) in odd("SELECT 'a \"b' FROM my")


def test_what_is_offered(complete) -> None:
    assert "trips" in complete("SELECT * FROM tr")
    assert complete("sel") == ["select"]
    assert "SELECT" in complete("SEL")
    assert complete("SELECT pri", " FROM trips") == ["price"]
    assert "price" not in complete("SELECT pri")
    assert complete("SELECT trips.") == ["id", "city", "price"]
    assert complete("SELECT t.c", " FROM trips AS t") == ["city"]
    assert complete(".t") == [".tables", ".timer"]
    assert complete(".schema ci") == ["cities"]


# --- at a terminal -------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_person_at_the_shell(folder: Path, start, tmp_path: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    typist = _Typist(ours)
    os.environ["XDG_DATA_HOME"] = str(tmp_path)
    os.environ["TERM"] = "xterm"
    try:
        process = start("shell", "-d", folder, stdin=theirs, stdout=theirs, stderr=theirs)
    finally:
        del os.environ["XDG_DATA_HOME"]
    os.close(theirs)
    typist.wait_for("queryard>")
    typist.type("SELECT 40\r + 2 AS answer;\r")
    typist.wait_for("1 row")
    typist.type("SELECT count(*) FROM range(100000000000) a WHERE a.range % 7 = 9;\r")
    typist.wait_for("Ctrl-C cancels")
    process.send_signal(signal.SIGINT)  # as Ctrl-C does; this is not its controlling terminal
    typist.wait_for("cancelled")
    typist.type("SELECT 'still ' || 'here' AS s;\r")
    typist.wait_for("still here")
    typist.type("\x04")
    process.wait(timeout=PATIENCE_S)
    assert process.returncode == 0
    os.close(ours)
    history = (tmp_path / "queryard" / "shell_history").read_text()
    assert "+SELECT 40\n+ + 2 AS answer;" in history


class _Typist:
    """Types at a pseudo-terminal and reads what appears there."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._seen = ""

    def type(self, text: str) -> None:
        self._seen = ""
        os.write(self._terminal, text.encode())

    def wait_for(self, text: str, patience_s: float = PATIENCE_S) -> None:
        import select

        until = time.monotonic() + patience_s
        while text not in self._seen:
            assert time.monotonic() < until, f"no {text!r} in {self._seen[-300:]!r}"
            if select.select([self._terminal], [], [], 0.1)[0]:
                read = os.read(self._terminal, 65536).decode(errors="replace")
                if "\x1b[6n" in read:  # where is the cursor?
                    os.write(self._terminal, b"\x1b[1;1R")
                self._seen += read
        time.sleep(0.3)  # the prompt is there before it listens
