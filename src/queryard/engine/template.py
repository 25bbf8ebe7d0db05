"""Statements that differ in their literals only have one template.

Literals and parameters are written as `?`, everything else in lower case, comments and white space
are gone, and a list of literals in parentheses or brackets is one `?`, however long it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from .tokens import Tokens

LITERAL = "?"
_OPENING = ("(", "[")
_CLOSING = (")", "]")
_SIGNS = ("-", "+")
_LIST = frozenset({LITERAL, ",", *_OPENING, *_CLOSING})
# Words after which a minus is a sign, not a subtraction, as far as that matters for literals.
_BEFORE_SIGN = frozenset(
    ["", "(", "[", ",", "=", "<", ">", "<=", ">=", "<>", "!=", "+", "-", "*", "/", "%", "||", "$"]
).union(["and", "between", "by", "else", "in", "limit", "offset", "or", "select", "then", "where"])
_NO_SPACE_BEFORE = frozenset({",", ".", "::", *_CLOSING})
_NO_SPACE_AFTER = frozenset({".", "::", *_OPENING})


def template(found: Tokens) -> str:
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
    for word in _written(found):
        if word in _OPENING:
            opened.append(len(written))
        elif word in _CLOSING and opened:
            first = opened.pop() + 1
            inside = written[first:]
            if LITERAL in inside and _LIST.issuperset(inside):
                written[first:] = [LITERAL]
        written.append(word)
    pieces: list[str] = []
    tight = True
    for word in written:
        if not tight and word not in _NO_SPACE_BEFORE:
            pieces.append(" ")
        pieces.append(word)
        tight = word in _NO_SPACE_AFTER
    return "".join(pieces)


def _written(found: Tokens) -> Iterator[str]:
    last = ""
    literals = found.literals
    for place, (word, is_literal) in enumerate(zip(found.words, literals, strict=True)):
        if last == "$" or (last == LITERAL and word.isdigit()):
            last = LITERAL  # the name of $name, the number of $1 and ?1
        elif word in _SIGNS and last in _BEFORE_SIGN and literals[place + 1]:
            continue
        else:
            last = LITERAL if is_literal else word
            yield LITERAL if last == "$" else last
