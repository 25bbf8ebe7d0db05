"""Queries that differ in literals only are of one template."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.engine.syntax.classify import classify
from queryard.engine.syntax.template import template as template_of
from queryard.engine.syntax.tokens import MARK, tokens


def template(sql: str) -> str:
    return classify(sql)[0].template


@pytest.mark.parametrize(
    "other",
    [
        "SELECT a, b FROM t WHERE a = 7 AND b IN ('x', 'y') AND c > -1.5e3 LIMIT 10",
        "select a,b from T where A=7 and b in ('z') and c > 2 limit 3",
        "SELECT a /* which */, b -- and that\nFROM t WHERE a = ? AND b IN (?, ?) AND c > ? LIMIT 1",
        "SELECT a, b FROM t WHERE a = $1 AND b IN ($2, $3) AND c > $4 LIMIT ?5",
        "SELECT a, b FROM t WHERE a = $a AND b IN ($b, $c) AND c > $and LIMIT $limit",
        "SELECT a, b FROM t WHERE a = $$x$$ AND b IN (e'\\n', 1, -2) AND c > +1 LIMIT 4;",
    ],
)
def test_literals_parameters_comments_and_cases_do_not_matter(other: str) -> None:
    assert template(other) == "select a, b from t where a = ? and b in (?) and c > ? limit ?"


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("SELECT a FROM t", "SELECT b FROM t"),
        ("SELECT a FROM t", "SELECT a FROM u"),
        ("SELECT a - 1 FROM t", "SELECT a + 1 FROM t"),
        ("SELECT a FROM t WHERE b IN (1)", "SELECT a FROM t WHERE b IN (SELECT 1)"),
        ("SELECT a FROM t ORDER BY 1", "SELECT a FROM t ORDER BY 1, 2"),
        ("SELECT a.b FROM a", "SELECT a, b FROM a"),
        ("SELECT count(*) FROM t", "SELECT count(DISTINCT a) FROM t"),
    ],
)
def test_whatever_else_differs_makes_another_template(one: str, two: str) -> None:
    assert template(one) != template(two)


def test_a_sign_belongs_to_a_literal_and_a_subtraction_does_not() -> None:
    assert template("SELECT a -1, -1, (-1), 2 - 1 FROM t") == "select a - ?, ?, (?), ? - ? from t"


def test_a_text_of_brackets_does_not_take_the_square_of_its_length() -> None:
    began = time.process_time()
    template_of(tokens("SELECT " + "(" * 20_000 + "1" + ")" * 20_000))
    assert time.process_time() - began < 5  # it was a minute


def test_lists_within_lists_are_one_literal() -> None:
    assert template("SELECT [[1, 2], [3]], x IN ((1, 'a'), (2, 'b')) FROM t") == (
        "select [?], x in (?) from t"
    )


def test_quoted_names_stay_names() -> None:
    assert template('SELECT "Two Words" FROM t WHERE "x" = \'x\'') == (
        'select "two words" from t where "x" = ?'
    )


def test_letters_of_several_bytes_do_no_harm() -> None:
    assert (
        template("SELECT 'ä€😀', größe FROM t WHERE a = 1") == "select ?, größe from t where a = ?"
    )


LIST = {"?", ",", "(", ")", "[", "]"}
BEFORE_SIGN = {"", "(", "[", ",", "=", "<=", "+", "-", "*", "||", "and", "between", "in", "select"}
NAMES = ["select", "a", "b.c", "in", "between", "and", '"q ( r"', '","', '"a. b"', "int", "e.f"]
MARKS = ["(", ")", "[", "]", ",", "-", "+", "=", "::", ".", "*", "||", "->>", "<=", "{", "}"]
LITERALS = ["1", "'x y'", "$1", "?", "?2", "$n", "5.5", "e'x'", "''", "'é'"]


def _written(sql: str) -> Iterator[str]:
    """The words of a template one by one, as its definition says."""
    found = tokens(sql)
    last = ""
    for place, word in enumerate(found.masked):
        if last == "$" or (last == "?" and found.texts[place].isdigit()):
            last = "?"
        elif word in "-+" and last in BEFORE_SIGN and found.masked[place + 1 : place + 2] == [MARK]:
            continue
        else:
            last = "?" if word == MARK else word
            yield "?" if last == "$" else last


def _one_by_one(sql: str) -> str:
    written: list[str] = []
    opened: list[int] = []
    for word in _written(sql):
        if word in "([":
            opened.append(len(written))
        elif word in ")]" and opened:
            first = opened.pop() + 1
            inside = written[first:]
            if "?" in inside and LIST.issuperset(inside):
                written[first:] = ["?"]
        written.append(word)
    text = ""
    for before, word in zip(("(", *written), written, strict=False):
        tight = before in (".", "::", "(", "[") or word in (",", ".", "::", ")", "]")
        text += word if tight else f" {word}"
    return text


@given(
    st.lists(
        st.tuples(st.sampled_from(NAMES + MARKS), st.sampled_from(["", *MARKS, *LITERALS])),
        max_size=8,
    )
)
def test_a_template_made_as_a_whole_is_that_made_word_by_word(pairs: list[tuple[str, str]]) -> None:
    # Two literals never stand side by side.
    sql = " ".join(f"{first} {second}" for first, second in pairs)
    assert template_of(tokens(sql)) == _one_by_one(sql)
