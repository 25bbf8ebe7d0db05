"""Options by name: a wrong one is refused where it is written, with the right ones."""

from __future__ import annotations

import inspect

import pytest

import queryard
from queryard import dbapi
from queryard.live.options import QueryOptions, SessionOptions


def test_an_unknown_option_of_sql_is_named(qy) -> None:
    with pytest.raises(
        TypeError,
        match=r"'tenent'; did you mean 'tenant'.*deadline, .*memory, plan",
    ):
        qy.sql("SELECT 1", tenent="web")
    assert qy.sql("SELECT 1", tenant="web", plan="native", priority=2).fetchall() == [(1,)]


def test_an_unknown_option_of_a_connection_is_named() -> None:
    with pytest.raises(TypeError, match=r"'slot'; did you mean 'slots'"):
        dbapi.connect(slot=2)


@pytest.mark.parametrize(
    ("options", "function"),
    [(QueryOptions, queryard.Session.submit), (SessionOptions, queryard.live.connect)],
)
def test_the_options_are_those_of_the_function(options, function) -> None:
    parameters = inspect.signature(function).parameters.values()
    named = {p.name: p.annotation for p in parameters if p.kind is p.KEYWORD_ONLY}
    assert named == {name: hint.__forward_arg__ for name, hint in options.__annotations__.items()}
