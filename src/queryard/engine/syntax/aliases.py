"""What the names stand for that a statement gives to its expressions: `upper(a) AS b`.

DuckDB's plans show such a name in place of the expression, which is what costs.
"""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W\d]\w*")
_TOKEN = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|[^\W\d]\w*|[\d.]+|\S""", re.DOTALL
)
_QUALIFIER = re.compile(r"\b[^\W\d]\w*\.(?=[^\W\d])")
_BY_OPERATOR = re.compile(
    r"\bover\s*\(|\b(?:unnest|sum|count|avg|mean|min|max|median|quantile\w*|stddev\w*|var_\w+|"
    r"variance|mode|list|array_agg|string_agg|first|last|any_value|arg_m\w+|max_by|min_by|"
    r"bool_\w+|bit_\w+|corr|covar\w*|regr_\w+|approx_\w+|histogram|product|kurtosis|skewness)\(",
    re.IGNORECASE,
)
# An expression begins after one of these.
_OPENERS = frozenset({"select", "distinct", "by", "where", "having", "on", "from", "all"})


def by_operator(text: str) -> bool:
    """Whether an aggregate, a window or an unnesting makes it, and no projection.

    >>> by_operator("sum(a * b)"), by_operator("rank() OVER (ORDER BY a)"), by_operator("upper(a)")
    (True, True, False)
    """
    return _BY_OPERATOR.search(text) is not None


def aliases(sql: str) -> dict[str, str]:
    """The expression behind each name, in lower case; of several, the longest.

    >>> aliases("SELECT g, upper(substr(a, 1, 2)) AS b, count(*) n FROM t AS u GROUP BY ALL")
    {'b': 'upper(substr(a, 1, 2))', 'n': 'count(*)'}
    """
    found: dict[str, str] = {}
    # Where the expression of each open parenthesis began.
    starts = [0]
    before = ""
    in_from = [False]
    tokens = list(_TOKEN.finditer(sql))
    for place, token in enumerate(tokens):
        word = token[0]
        lower = word.lower()
        if word == "(":
            starts.append(token.end())
            in_from.append(False)
        elif word == ")":
            if len(starts) > 1:
                starts.pop()
                in_from.pop()
        elif word == ",":
            starts[-1] = token.end()
        elif lower in _OPENERS:
            starts[-1] = token.end()
            if lower in ("from", "select"):
                in_from[-1] = lower == "from"
        elif not in_from[-1] and (_WORD.fullmatch(word) or word[0] == '"'):
            ends = tokens[place + 1][0].lower() if place + 1 < len(tokens) else ""
            if before == "as":
                end = tokens[place - 1].start()
            elif before == ")" and ends in (",", "from"):
                end = token.start()
            else:
                before = lower
                continue
            text = sql[starts[-1] : end].strip()
            name = word.strip('"').lower()
            if len(text) > len(found.get(name, "")):
                found[name] = _QUALIFIER.sub("", text)
        before = lower
    return {name: text for name, text in found.items() if name != text.lower()}
