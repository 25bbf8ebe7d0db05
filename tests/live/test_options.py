"""Options by name: a wrong one is refused where it is written, with the right ones."""

from __future__ import annotations

import inspect
import threading

import pyarrow
import pytest

import queryard
from queryard import QueryardError, dbapi
from queryard.live.options import QueryOptions, SessionOptions


def test_an_unknown_option_of_sql_is_named(qy) -> None:
    with pytest.raises(
        TypeError,
        match=r"'tenent'; did you mean 'tenant'.*deadline, .*memory, plan",
    ):
        qy.sql("SELECT 1", tenent="web")
    assert qy.sql("SELECT 1", tenant="web", plan="native", priority=2).fetchall() == [(1,)]


def test_an_unknown_option_of_online_is_named(qy) -> None:
    with pytest.raises(TypeError, match=r"'stopat'; did you mean 'stop_at'"):
        qy.online("SELECT 1", stopat=0.1)
    with pytest.raises(QueryardError, match="columns: must be a list of names, got 5"):
        qy.online("SELECT 1", columns=5)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"write": "no"}, "write: must be True or False, got 'no'"),
        ({"history": 5}, "history: must be True, False or the path of a file, got 5"),
        ({"temp": 5}, "temp: must be the path of a folder, got 5"),
    ],
)
def test_an_option_of_the_wrong_kind_is_named(options, problem) -> None:
    with pytest.raises(QueryardError, match=problem):
        queryard.connect(**options)


def test_a_session_that_cannot_be_opened_leaves_no_thread(tmp_path) -> None:
    (tmp_path / "file").touch()
    threads = threading.active_count()
    with pytest.raises(QueryardError, match="cannot make temporary files"):
        queryard.connect(tmp_path, temp=tmp_path / "file")
    assert threading.active_count() == threads


def test_a_closed_session_registers_no_table() -> None:
    with queryard.connect() as qy:
        pass
    with pytest.raises(QueryardError, match="the session is closed"):
        qy.register("t", pyarrow.table({"a": [1]}))
    with pytest.raises(QueryardError, match="the session is closed"):
        qy.refresh()


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
