"""Parameters on their way to another process: what DuckDB makes of them stays the same."""

from __future__ import annotations

import datetime as dt
import decimal
import pickle
import uuid
import zoneinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.engine.parameters import WrongParameters, shape_of
from queryard.engine.plain_parameters import plain

ZONES = st.none() | st.sampled_from([zoneinfo.ZoneInfo("Europe/Vienna"), dt.UTC])
VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**127), 2**127 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.dates()
    | st.datetimes(timezones=ZONES)
    | st.times()
    | st.timedeltas()
    | st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-999, max_value=999)
)


def made_local(value):
    """The same value, of a class that cannot leave this process."""
    kind = type(value)
    if kind in (bool, type(None), decimal.Decimal, dt.timedelta):
        return value
    local = type("Local", (kind,), {"__reduce_ex__": lambda self, protocol: 1 / 0})
    match value:
        case dt.datetime():
            return local(*value.timetuple()[:6], value.microsecond, value.tzinfo, fold=value.fold)
        case dt.date():
            return local(value.year, value.month, value.day)
        case dt.time():
            return local(value.hour, value.minute, value.second, value.microsecond)
    return local(value)


@given(st.lists(VALUES, max_size=5))
def test_values_are_equal_and_can_be_read_elsewhere(values):
    given_ = [made_local(value) for value in values]
    found = plain(given_)
    assert found == values
    assert [shape_of(value) for value in found] == [shape_of(value) for value in given_]
    assert pickle.loads(pickle.dumps(found)) == values
    named = {f"p{n}": value for n, value in enumerate(given_)}
    assert list(plain(named).values()) == values


def test_what_duckdb_takes_for_text_or_bytes_is_that():
    number = uuid.uuid4()
    assert plain((number, memoryview(b"ab"), bytearray(b"c"))) == [str(number), b"ab", b"c"]


@pytest.mark.parametrize("parameters", ["ab", 7, [lambda: 1], [[object()]], {1: 2}])
def test_what_cannot_be_a_parameter_is_refused(parameters):
    with pytest.raises(WrongParameters):
        plain(parameters)
