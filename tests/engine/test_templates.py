"""Queries that differ in literals only are of one template."""

from __future__ import annotations

import pytest

from queryard.engine.classify import classify


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
