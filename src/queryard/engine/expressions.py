"""What it takes to compute an expression of a plan, read from how DuckDB writes it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .filters import words
from .streams import Column

TEXT_BYTES = 16.0
_PATTERNS = ("contains(", "~~", "LIKE", "like_")
_REGULAR = "regexp_"
# A regular expression looks at every byte several times.
REGULAR_BYTES = 3.0
# The cost of functions that make a text per row, in operations on numbers.
TEXT_CALLS = 15.0
_TEXT_FUNCTIONS = re.compile(
    r"\b(?:upper|lower|substr|substring|replace|concat|concat_ws|trim|ltrim|rtrim|reverse|strftime|"
    r"split_part|string_split|lpad|rpad|format|printf|md5|sha256)\b|\|\|",
    re.IGNORECASE,
)
# The cost of functions that compare two texts letter by letter, in operations on numbers.
FUZZY_CALLS = 300.0
_FUZZY_FUNCTIONS = re.compile(
    r"\b(?:levenshtein|editdist3|damerau_levenshtein|jaro_similarity|jaro_winkler_similarity|"
    r"jaccard|hamming)\(",
    re.IGNORECASE,
)


def operations(text: str) -> float:
    """The cost in operations on numbers; DuckDB writes every operation in parentheses.

    >>> operations("(a + b)"), operations("upper(a)"), operations("a")
    (1.0, 16.0, 1.0)
    """
    calls = TEXT_CALLS * len(_TEXT_FUNCTIONS.findall(text))
    calls += FUZZY_CALLS * len(_FUZZY_FUNCTIONS.findall(text))
    return max(1, text.count("(")) + calls


def matched_bytes(text: str, columns: Sequence[Column]) -> float:
    """Bytes that are searched for a pattern, for each row."""
    weight = REGULAR_BYTES if _REGULAR in text else 1.0
    if weight == 1.0 and not any(pattern in text for pattern in _PATTERNS):
        return 0.0
    named = set(words(text))
    return weight * max([TEXT_BYTES, *(c.width for c in columns if c.name in named)])
