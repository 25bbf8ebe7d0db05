"""What follows from conditions: common parts of alternatives, and what NULLs would do to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from .expressions import Expr, all_of, any_of, bare, conjuncts, disjuncts, references

_STRICT = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Paren)


def factored(conditions: Iterable[Expr]) -> Iterator[Expr]:
    """The same conditions with what all alternatives of an OR have in common taken out.

    >>> import sqlglot
    >>> found = factored([sqlglot.parse_one("(a = b and c = 1) or (a = b and c = 2)")])
    >>> [condition.sql() for condition in found]
    ['a = b', 'c = 1 OR c = 2']
    """
    for whole in conditions:
        for condition in conjuncts(whole):
            yield from _factored(condition)


def _factored(condition: Expr) -> Iterator[Expr]:
    alternatives = [list(conjuncts(part)) for part in disjuncts(condition)]
    if len(alternatives) < 2:
        yield condition
        return
    common = [c for c in alternatives[0] if all(c in other for other in alternatives[1:])]
    if not common:
        yield condition
        return
    yield from common
    rests = [[c for c in part if c not in common] for part in alternatives]
    if all(rests):
        yield any_of(all_of(rest) for rest in rests)


def implied_within(condition: Expr, columns: frozenset[str]) -> Expr | None:
    """What an OR over several relations says of the columns of one of them alone."""
    alternatives = [list(conjuncts(part)) for part in disjuncts(condition)]
    if len(alternatives) < 2:
        return None
    parts = [
        [c for c in part if references(c) and references(c) <= columns] for part in alternatives
    ]
    return any_of(all_of(part) for part in parts) if all(parts) else None


def rejects_nulls(condition: Expr, columns: frozenset[str]) -> bool:
    """Whether the condition is never true where all these columns are NULL.

    >>> import sqlglot
    >>> sees = frozenset({"b"})
    >>> [rejects_nulls(sqlglot.parse_one(c), sees) for c in ("a < 2 * b", "a < coalesce(b, 0)")]
    [True, False]
    """
    condition = bare(condition)
    if isinstance(condition, _STRICT):
        return _null_if(condition.this, columns) or _null_if(condition.expression, columns)
    if isinstance(condition, exp.Not):
        inner = bare(condition.this)
        is_null = isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null)
        return is_null and _null_if(inner.this, columns)
    return False


def _null_if(expression: Expr, columns: frozenset[str]) -> bool:
    """Whether the expression is NULL where these columns are."""
    if isinstance(expression, exp.Column):
        return expression.name in columns
    if isinstance(expression, exp.Paren | exp.Neg):
        return _null_if(expression.this, columns)
    if isinstance(expression, _ARITHMETIC):
        return _null_if(expression.this, columns) or _null_if(expression.expression, columns)
    return False
