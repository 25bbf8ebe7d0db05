"""Statements that differ in their literals only have one template.

Literals and parameters are written as `?`, everything else in lower case, comments and white space
are gone, and a list of literals in parentheses or brackets is one `?`, however long it is.

A statement has thousands of tokens, so they are first joined by single spaces, and the rest is
done to the text as a whole.
"""

from __future__ import annotations

import re

from .tokens import MARK, Tokens

LITERAL = "?"
# Stands for a space inside a quoted name; no SQL has it.
_SPACE = "\x02"
# Words after which a minus is a sign, not a subtraction, as far as that matters for literals.
_BEFORE_SIGN = frozenset(
    ["", "(", "[", ",", "=", "<", ">", "<=", ">=", "<>", "!=", "+", "-", "*", "/", "%", "||"]
).union(["and", "between", "by", "else", "in", "limit", "offset", "or", "select", "then", "where"])
_SIGN = re.compile(f"[-+] (?={MARK})")
# $name, $1 and ?1.
_PARAMETER = re.compile(rf"(?<![^ ])(?:\$ [^ ]+|\? {MARK})(?![^ ])")
_ITEM = r"(?:[?,]|[(\[](?: [?,])* [)\]])"
_LIST = re.compile(rf"([(\[])(?: {_ITEM})* ([)\]])")
# Passes over a text, each of which shortens lists two levels deep: a text of nothing but brackets
# must not take the square of its length.
_DEEPEST = 8
_NO_SPACE_BEFORE = (",", ".", "::", ")", "]")
_NO_SPACE_AFTER = (".", "::", "(", "[")


def template(found: Tokens) -> str:
    """The template of one statement.

    >>> from .tokens import tokens
    >>> text = "SELECT a.b /* c */ FROM T WHERE x IN (1, -2) AND y = 'it''s' LIMIT 5 -- end"
    >>> template(tokens(text))
    'select a.b from t where x in (?) and y = ? limit ?'
    >>> template(tokens("FROM t WHERE x = $1 AND y > x-1"))
    'from t where x = ? and y > x - ?'
    """
    words = found.masked
    if '"' in found.sql:
        words = ["".join(_SPACE if c.isspace() else c for c in word) for word in words]
    text = " ".join(words)
    if f"- {MARK}" in text or f"+ {MARK}" in text:
        text = _SIGN.sub(_without_sign, text)
    if "$ " in text or "? " in text:
        text = _PARAMETER.sub(LITERAL, text)
    text = _without_lists(text.replace(MARK, LITERAL))
    for word in _NO_SPACE_BEFORE:
        text = text.replace(f" {word}", word)
    for word in _NO_SPACE_AFTER:
        text = text.replace(f"{word} ", word)
    return text.replace(_SPACE, " ")


def _without_sign(found: re.Match[str]) -> str:
    text, start = found.string, found.start()
    if start and text[start - 1] != " ":
        return found[0]  # the end of another operator
    end = max(0, start - 1)
    return "" if text[text.rfind(" ", 0, end) + 1 : end] in _BEFORE_SIGN else found[0]


def _without_lists(text: str) -> str:
    """One literal for each list of literals, lists within lists included.

    >>> _without_lists("f ( ? , [ ? , ? ] ) , ( )")
    'f ( ? ) , ( )'
    """
    for _ in range(_DEEPEST):
        shorter = _LIST.sub(_shortened, text)
        if shorter == text:
            break
        text = shorter
    return text


def _shortened(found: re.Match[str]) -> str:
    return f"{found[1]} ? {found[2]}" if LITERAL in found[0] else found[0]
