"""What the words of a statement name, where it is none that can be read as a tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .parsing import tokens_of

_ENDS = frozenset(
    {
        *("except", "fetch", "group", "having", "intersect", "limit", "offset", "order", "qualify"),
        *("returning", "select", "set", "union", "values", "where", "window"),
    }
)
# What looks at a relation as a whole, or makes a table of its rows.
_LOOKS = frozenset(
    {
        *("desc", "describe", "show", "summarize", "table"),
        *("pivot", "pivot_longer", "pivot_wider", "unpivot"),
    }
)
_LOOKING_FUNCTIONS = ("histogram", "histogram_values")
# A table is made or changed, and none is read.
_CHANGED = frozenset(
    {"alter", "create", "drop", "local", "replace", "temp", "temporary", "truncate", "unlogged"}
)


def words_of(sql: str) -> Iterator[list[str]]:
    """The words of a text in lower case: names in quotes keep these, and texts are ''."""
    # The tokenizer takes what follows some first words (EXPLAIN …) for one text.
    first, _, rest = sql.strip().partition(" ")
    for before, part in ([], sql), ([first.lower()], rest):
        words = (_word(part[token.start : token.end + 1], token.text) for token in tokens_of(part))
        yield [*before, *words]


def _word(source: str, text: str) -> str:
    is_plain = source.lower() == text.lower() or source.startswith('"')
    return source.lower() if is_plain else "''"


def named_relations(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The names in FROM and its kin, each by its parts, as far as words tell.

    >>> sql = "delete from a using b . c , d where x in ( select f ( y , z ) from e )"
    >>> list(named_relations(sql.split()))
    [('a',), ('b', 'c'), ('d',), ('e',)]
    """
    lists = [False]  # at each depth of parentheses, whether a comma is followed by a name
    is_next = False
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        if word == "(":
            lists.append(False)  # a name may follow: FROM (a JOIN b)
        elif word == ")":
            lists = lists[:-1] or [False]
            is_next = False
        elif word == "join" or _begins_list(words, place - 1):
            lists[-1] = is_next = True
        elif word == ",":
            is_next = lists[-1]
        elif word in _ENDS:
            lists[-1] = is_next = False
        elif is_next and word not in ("lateral", "only"):
            name = _name_at(words, place - 1)
            place += 2 * len(name) - 2
            yield name
            is_next = False


def _name_at(words: Sequence[str], place: int) -> tuple[str, ...]:
    """The name that begins at a place, by its parts."""
    name = list(words[place : place + 1])
    while words[place + 1 : place + 2] == ["."] and place + 2 < len(words):
        place += 2
        name.append(words[place])
    return tuple(name)


def _begins_list(words: Sequence[str], place: int) -> bool:
    """Whether names follow a word: not after IS DISTINCT FROM, nor where USING names columns."""
    if words[place] == "from":
        return place == 0 or words[place - 1] != "distinct"
    return words[place] == "using" and words[place + 1 : place + 2] != ["("]


def looked_at(words: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The relations that are looked at as a whole: by which word, and their names in parts.

    >>> sql = "from ( summarize a ) join ( pivot b . c on x ) on true union table d"
    >>> list(looked_at(sql.split()))
    [('summarize', ('a',)), ('pivot', ('b', 'c')), ('table', ('d',))]
    """
    before = ["", *words]
    for place, word in enumerate(words):
        if word in _LOOKS and not (word == "table" and before[place] in _CHANGED):
            start = place + 1
            while words[start : start + 1] in (["table"], ["("], ["from"]):
                start += 1
        elif word in _LOOKING_FUNCTIONS and words[place + 1 : place + 2] == ["("]:
            start = place + 2
        else:
            continue
        if name := _name_at(words, start):
            yield word, name
