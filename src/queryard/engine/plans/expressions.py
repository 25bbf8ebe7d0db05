"""What it takes to compute an expression of a plan, read from how DuckDB writes it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .filters import words
from .streams import Column

TEXT_BYTES = 16.0
_PATTERNS = ("contains(", "~~", "LIKE", "like_", "suffix(")
_REGULAR = "regexp_"
_TEXT_FUNCTIONS = re.compile(
    r"\b(?:upper|lower|substr|substring|left|right|replace|concat|concat_ws|trim|ltrim|rtrim|"
    r"reverse|strftime|lpad|rpad|format|printf|md5|sha256|"
    r'strptime|json_\w+)"?\(|\|\|',
    re.IGNORECASE,
)
_LIST_FUNCTIONS = re.compile(r"\b(?:list_\w+|array_\w+|len|unnest)\(", re.IGNORECASE)
LIST_VALUES = 5.0
_TEXTS = re.compile(r"'(?:[^']|'')*'")
_OPERATIONS = re.compile(
    r'[\w"]\(|[-+*/%<>=!]+|\b(?:AND|OR|NOT|WHEN|LIKE|ILIKE|IN|BETWEEN|IS)\b|~~|::', re.IGNORECASE
)
_DATE_FUNCTIONS = re.compile(
    r"\b(?:year|month|day|quarter|week|dayofweek|isodow|dayofyear|hour|minute|epoch\w*|date_\w+|"
    r'datetrunc|datepart|datediff|extract|last_day|monthname|dayname|age|time_bucket)"?\(',
    re.IGNORECASE,
)
# The cost of functions that cut a text into pieces, in functions that make one.
SPLIT_CALLS = 5.0
_SPLITS = re.compile(
    r"\b(?:split_part|string_split|str_split|split|regexp_split\w*)\(", re.IGNORECASE
)
# The cost of functions that compare two texts letter by letter, in functions that make a text.
FUZZY_CALLS = 20.0
_FUZZY_FUNCTIONS = re.compile(
    r"\b(?:levenshtein|editdist3|damerau_levenshtein|jaro_similarity|jaro_winkler_similarity|"
    r"jaccard|hamming)\(",
    re.IGNORECASE,
)


def operations(text: str) -> float:
    """How many operations and calls there are.

    >>> operations("(a + b)"), operations("((a + b) * abs(c))"), operations("a")
    (1.0, 3.0, 1.0)
    """
    return float(max(1, len(_OPERATIONS.findall(_TEXTS.sub("", text)))))


def text_calls(text: str) -> float:
    """How many functions make a text per row, or are as dear as that.

    >>> text_calls("upper(a)"), text_calls("(a + b)")
    (1.0, 0.0)
    """
    calls = len(_TEXT_FUNCTIONS.findall(text)) + SPLIT_CALLS * len(_SPLITS.findall(text))
    return calls + FUZZY_CALLS * len(_FUZZY_FUNCTIONS.findall(text))


def date_calls(text: str) -> float:
    """How many functions take a date apart.

    >>> date_calls('"year"(o_orderdate)'), date_calls("upper(a)")
    (1.0, 0.0)
    """
    return float(len(_DATE_FUNCTIONS.findall(text)))


def list_calls(text: str, columns: Sequence[Column]) -> float:
    """Values of lists that functions look at, for each row."""
    calls = len(_LIST_FUNCTIONS.findall(text))
    if not calls:
        return 0.0
    named = set(words(text))
    lengths = [column.length for column in columns if column.length and column.name in named]
    return calls * (1 + max(lengths, default=LIST_VALUES))


def texts_read(text: str, columns: Sequence[Column]) -> float:
    """How many texts are looked at, for each row."""
    if not any(column.is_text for column in columns):
        return 0.0
    named = set(words(text))
    return float(sum(column.is_text and column.name in named for column in columns))


def matched_bytes(text: str, columns: Sequence[Column]) -> float:
    """Bytes that are searched for a pattern, for each row."""
    if not any(pattern in text for pattern in _PATTERNS):
        return 0.0
    return searched_bytes(text, columns)


def regular_bytes(text: str, columns: Sequence[Column]) -> float:
    """Bytes that a regular expression looks at, for each row."""
    return searched_bytes(text, columns) if _REGULAR in text else 0.0


def searched_bytes(text: str, columns: Sequence[Column]) -> float:
    """Bytes of the longest text that an expression looks at."""
    named = set(words(text))
    return max([TEXT_BYTES, *(column.width for column in columns if column.name in named)])
