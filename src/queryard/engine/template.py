"""Statements that differ in their literals only have one template.

Literals and parameters are written as `?`, everything else in lower case, comments and white space
are gone, and a list of literals in parentheses or brackets is one `?`, however long it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .tokens import Token

LITERAL = "?"
_OPENING = ("(", "[")
_CLOSING = (")", "]")
_LIST = frozenset({LITERAL, ",", *_OPENING, *_CLOSING})
# Words after which a minus is a sign, not a subtraction, as far as that matters for literals.
_BEFORE_SIGN = frozenset(
    ["", "(", "[", ",", "=", "<", ">", "<=", ">=", "<>", "!=", "+", "-", "*", "/", "%", "||", "$"]
).union(["and", "between", "by", "else", "in", "limit", "offset", "or", "select", "then", "where"])
_NO_SPACE_BEFORE = frozenset({",", ".", "::", *_CLOSING})
_NO_SPACE_AFTER = frozenset({".", "::", *_OPENING})


def template(words: Sequence[Token]) -> str:
    """The template of one statement.

    >>> from .tokens import tokens
    >>> text = "SELECT a.b /* c */ FROM T WHERE x IN (1, -2) AND y = 'it''s' LIMIT 5 -- end"
    >>> template(tokens(text))
    'select a.b from t where x in (?) and y = ? limit ?'
    >>> template(tokens("FROM t WHERE x = $1 AND y > x-1"))
    'from t where x = ? and y > x - ?'
    """
    written: list[str] = []
    opened: list[int] = []
    for word in _written(words):
        if word in _OPENING:
            opened.append(len(written))
        elif word in _CLOSING and opened:
            first = opened.pop() + 1
            inside = written[first:]
            if LITERAL in inside and _LIST.issuperset(inside):
                written[first:] = [LITERAL]
        written.append(word)
    text = ""
    last = "("
    for word in written:
        tight = last in _NO_SPACE_AFTER or word in _NO_SPACE_BEFORE
        text += word if tight else f" {word}"
        last = word
    return text


def _written(words: Sequence[Token]) -> Iterator[str]:
    last = ""
    for place, (_, text, is_literal) in enumerate(words):
        if last == "$" or (last == LITERAL and text.isdigit()):
            last = LITERAL  # the name of $name, the number of $1 and ?1
        elif text in ("-", "+") and last in _BEFORE_SIGN and words[place + 1].is_literal:
            continue
        else:
            last = LITERAL if is_literal else text.lower()
            yield LITERAL if last == "$" else last
