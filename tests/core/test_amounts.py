import pytest

from queryard.core.amounts import parse_bytes, parse_seconds
from queryard.core.errors import InvalidRecord


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90 s", 90), ("2 min", 120), ("1h30min", 5400), ("1.5e1", 15), (7, 7), ("2 MIN", 120)],
)
def test_times(text: object, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("64 MB", 64e6), ("64MiB", 2**26), ("2 gb", 2e9), (5, 5), ("10 B", 10)]
)
def test_sizes(text: object, size: float) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("soon", "'soon' is not a time"),
        ("", "is not a time"),
        ("2 weeks", "unknown unit of time 'weeks'"),
        ("-3 s", "at least 0"),
        (-3, "at least 0"),
        (float("nan"), "finite"),
        (float("inf"), "finite"),
        (True, "expected a time"),
        (None, "expected a time"),
        ("3 s,", "is not a time"),
        ("2030-01-01", "'2030-01-01' is not a time"),
        ("10 000", "is not a time"),
        ("1 h 30", "is not a time"),
        ("1 h -5 min", "is not a time"),
    ],
)
def test_wrong_times_are_named(value: object, message: str) -> None:
    with pytest.raises(InvalidRecord, match=message):
        parse_seconds(value)
