"""Dates, times, intervals. PostgreSQL counts from 2000-01-01, in days or microseconds.

Values that Arrow cannot write (infinities, years before Christ or beyond 9999) are few; they are
written one by one and put into the places of what Arrow made of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import PostgresError
from .cells import Cells, cannot, is_text, matrix, offsets_and_data, raw_numbers

_DAYS_TO_2000 = 10_957
_DAY_US = 86_400_000_000
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31, from 1970
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


# --- dates ---------------------------------------------------------------------------------------


def date_binary(column: Any) -> Cells:
    days = raw_numbers(column).astype(np.int64)
    shifted = days - _DAYS_TO_2000
    never = np.abs(days) >= 2**31 - 1
    if never.any():
        shifted[never] = np.where(days[never] > 0, 2**31 - 1, -(2**31))
    if (shifted < -(2**31)).any():
        raise PostgresError("22008", "date out of range for PostgreSQL's protocol")
    return matrix(shifted, ">i4")


def date_text(column: Any) -> Any:
    days = raw_numbers(column).astype(np.int64)
    return _mended(column, column.cast(pa.string()), days, days, _date)


def date_rows(column: Any) -> np.ndarray | None:
    """Dates as texts of ten bytes each, if all are; NULL is any date.

    Each day between the first and the last is written once; None if that would be more work.
    """
    days = raw_numbers(column)
    if not len(days):
        return None
    first, last = int(days.min()), int(days.max())
    if first < _FIRST_DAY or last > _LAST_DAY or last - first > len(days):
        return None
    written = pa.array(np.arange(first, last + 1, dtype=np.int32)).view(pa.date32())
    _, data = offsets_and_data(written.cast(pa.string()))
    texts = data[: 10 * (last - first + 1)].view("V10")
    found: np.ndarray = texts[days - first].view(np.uint8).reshape(len(days), 10)
    return found


def _date(day: int) -> str:
    """Any day as PostgreSQL writes it.

    >>> _date(0), _date(-735_160), _date(2**31 - 1)
    ('1970-01-01', '0044-03-15 BC', 'infinity')
    """
    if abs(day) >= 2**31 - 1:
        return "infinity" if day > 0 else "-infinity"
    written, era = _civil(day)
    return written + era


def _civil(day: int) -> tuple[str, str]:
    """A date of the proleptic Gregorian calendar; its eras of 400 years have 146,097 days."""
    cycle, rest = divmod(day + 719_468, 146_097)
    year = (rest - rest // 1460 + rest // 36_524 - rest // 146_096) // 365
    of_year = rest - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153
    of_month = of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    year += cycle * 400 + (month <= 2)
    if year > 0:
        return f"{year:04d}-{month:02d}-{of_month:02d}", ""
    return f"{1 - year:04d}-{month:02d}-{of_month:02d}", " BC"


# --- timestamps ----------------------------------------------------------------------------------


def _microseconds(column: Any) -> tuple[np.ndarray, np.ndarray]:
    """Microseconds since 1970, and which values are infinite."""
    raw = raw_numbers(column)
    endless = np.abs(raw) >= 2**63 - 1
    per_second = _PER_SECOND[column.type.unit]
    if per_second > 1_000_000:
        return np.where(endless, raw, raw // (per_second // 1_000_000)), endless
    factor = 1_000_000 // per_second
    if factor > 1 and (np.abs(raw[~endless]) > (2**63 - 1) // factor).any():
        raise PostgresError("22008", "timestamp out of range for PostgreSQL's protocol")
    return np.where(endless, raw, raw * np.where(endless, 1, factor)), endless


def timestamp_binary(column: Any) -> Cells:
    moments, endless = _microseconds(column)
    shift = _DAYS_TO_2000 * _DAY_US
    if (moments[~endless] < -(2**63) + shift + 1).any():
        raise PostgresError("22008", "timestamp out of range for PostgreSQL's protocol")
    with np.errstate(over="ignore"):
        shifted = moments - shift
    if endless.any():
        shifted[endless] = np.where(moments[endless] > 0, 2**63 - 1, -(2**63))
    return matrix(shifted, ">i8")


def timestamp_text(column: Any, zone: str | None = None) -> Any:
    """ISO 8601 with a space, and with the offset if there is a zone."""
    moments, endless = _microseconds(column)
    odd = _odd_moments(moments) | endless
    if zone is None or zone in _UTC:
        plain = _moment_text(np.where(odd, 0, moments))
        suffix = "" if zone is None else "+00"
        written = pc.binary_join_element_wise(plain, suffix, "") if suffix else plain
    else:
        # Within a day of the ends of what Arrow can write, the zone may lead beyond them.
        shown, written = _zoned(np.where(odd, 0, moments), zone)
        suffix = shown
    days = np.where(odd, _FIRST_DAY - 1, 0)

    def one(moment: int) -> str:
        if abs(moment) >= 2**63 - 1:
            return "infinity" if moment > 0 else "-infinity"
        day, rest = divmod(moment, _DAY_US)
        date, era = _civil(day)
        return f"{date} {_clock(rest)}{suffix}{era}"

    return _mended(column, written, days, moments, one)


_UTC = ("UTC", "Etc/UTC", "GMT", "Zulu", "Etc/GMT", "UCT", "Etc/UCT")


def _odd_moments(moments: np.ndarray) -> np.ndarray:
    found: np.ndarray = (moments < (_FIRST_DAY + 1) * _DAY_US) | (moments >= _LAST_DAY * _DAY_US)
    return found


def _moment_text(moments: np.ndarray) -> Any:
    if not (moments % 1_000_000).any():
        return pa.array(moments // 1_000_000, pa.timestamp("s")).cast(pa.string())
    return _trimmed(pa.array(moments, pa.timestamp("us")).cast(pa.string()))


def _zoned(moments: np.ndarray, zone: str) -> tuple[str, Any]:
    local = pa.array(moments, pa.timestamp("us", zone))
    offset = pc.strftime(local, "%z")
    offset = pc.replace_substring_regex(offset, "^([+-][0-9]{2})00$", "\\1")
    offset = pc.replace_substring_regex(offset, "^([+-][0-9]{2})([0-9]{2})$", "\\1:\\2")
    plain = _moment_text(_local(local))
    return "+00", pc.binary_join_element_wise(plain, offset, "")


def _local(moments: Any) -> np.ndarray:
    """What clocks of the zone showed, as microseconds."""
    shown = pc.local_timestamp(moments)
    found: np.ndarray = shown.view(pa.int64()).to_numpy(zero_copy_only=False)
    return found


def _trimmed(written: Any) -> Any:
    """Without zeros at the end of the fraction, and without a fraction that is zero."""
    return pc.ascii_rtrim(pc.ascii_rtrim(written, "0"), ".")


# --- times of day --------------------------------------------------------------------------------


def _of_day(column: Any) -> np.ndarray:
    raw = raw_numbers(column)
    return raw // 1_000 if column.type.unit == "ns" else raw


def time_binary(column: Any) -> Cells:
    return matrix(_of_day(column), ">i8")


def time_text(column: Any) -> Any:
    clock = _of_day(column)
    late = clock >= _DAY_US  # DuckDB and PostgreSQL have 24:00:00, Arrow has not
    shown = np.where(late, 0, clock)
    if (shown % 1_000_000).any():
        written = _trimmed(pa.array(shown, pa.time64("us")).cast(pa.string()))
    else:
        seconds = pa.array((shown // 1_000_000).astype(np.int32), pa.time32("s"))
        written = seconds.cast(pa.string())
    return _mended(column, written, np.where(late, _FIRST_DAY - 1, 0), clock, _clock)


def _clock(microseconds: int) -> str:
    """A time of day.

    >>> _clock(3_723_500_000)
    '01:02:03.5'
    """
    seconds, fraction = divmod(microseconds, 1_000_000)
    minutes, second = divmod(seconds, 60)
    clock = f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}"
    return f"{clock}.{fraction:06d}".rstrip("0") if fraction else clock


def timetz_binary(column: Any) -> Cells:
    """From texts: Arrow has no time with a zone."""
    if not is_text(column.type):
        raise cannot(column, 1266, "binary")
    return pa.array(
        [None if value is None else timetz_bytes(value) for value in column.to_pylist()],
        pa.binary(),
    )


def timetz_bytes(value: str) -> bytes:
    """Microseconds, and seconds west of Greenwich.

    >>> timetz_bytes("12:00:00.5+01:30").hex()
    '0000000a0ef35120ffffeae8'
    """
    at = max(value.rfind("+"), value.rfind("-"))
    clock, sign, zone = value[:at], value[at], value[at + 1 :]
    hours, minutes, seconds = clock.split(":")
    whole, _, fraction = seconds.partition(".")
    total = (int(hours) * 60 + int(minutes)) * 60 + int(whole)
    microseconds = total * 1_000_000 + int(fraction.ljust(6, "0"))
    parts = [*map(int, zone.split(":")), 0, 0][:3]
    offset = parts[0] * 3600 + parts[1] * 60 + parts[2]
    west = -offset if sign == "+" else offset
    return microseconds.to_bytes(8, "big") + west.to_bytes(4, "big", signed=True)


# --- intervals -----------------------------------------------------------------------------------

_SPAN = np.dtype([("months", "<i4"), ("days", "<i4"), ("ns", "<i8")])
_SENT = np.dtype([("us", ">i8"), ("days", ">i4"), ("months", ">i4")])


def interval_binary(column: Any) -> Cells:
    spans = _spans(column)
    sent = np.zeros(len(spans), dtype=_SENT)
    sent["us"] = spans["ns"] // 1_000
    sent["days"], sent["months"] = spans["days"], spans["months"]
    return sent.view(np.uint8).reshape(len(spans), 16)


def interval_text(column: Any) -> Any:
    spans = _spans(column).tolist()
    valid = column.is_valid().to_pylist()
    return pa.array(
        [_span(*span) if there else None for span, there in zip(spans, valid, strict=True)],
        pa.string(),
    )


def _spans(column: Any) -> np.ndarray:
    if not pa.types.is_interval(column.type):
        raise cannot(column, 1186, "any")
    found = np.frombuffer(column.buffers()[1], dtype=_SPAN)
    return found[column.offset : column.offset + len(column)]


def _span(months: int, days: int, nanoseconds: int) -> str:
    """As PostgreSQL's interval style "postgres" has it.

    >>> _span(14, 3, 3_723_500_000_000), _span(0, 0, 0), _span(-1, 2, -1_000_000_000)
    ('1 year 2 mons 3 days 01:02:03.5', '00:00:00', '-1 mons +2 days -00:00:01')
    """
    microseconds = nanoseconds // 1_000
    years = abs(months) // 12 * (-1 if months < 0 else 1)
    parts: list[str] = []
    negative_before = False
    for amount, unit in ((years, "year"), (months - years * 12, "mon"), (days, "day")):
        if amount:
            plus = "+" if negative_before and amount > 0 else ""
            parts.append(f"{plus}{amount} {unit}{'' if amount == 1 else 's'}")
            negative_before = amount < 0
    if microseconds or not parts:
        sign = "-" if microseconds < 0 else "+" if negative_before else ""
        parts.append(sign + _clock(abs(microseconds)))
    return " ".join(parts)


# --- odd values ----------------------------------------------------------------------------------


def _mended(column: Any, written: Any, days: np.ndarray, values: np.ndarray, one: Any) -> Any:
    """Texts with odd values written by `one`, and NULL where the column is NULL."""
    odd = (days < _FIRST_DAY) | (days > _LAST_DAY)
    valid = column.is_valid()
    if odd.any():
        texts: list[str | None] = [None] * len(odd)
        for place in np.flatnonzero(odd):
            texts[place] = one(int(values[place]))
        written = pc.if_else(pa.array(odd), pa.array(texts, pa.string()), written)
    return pc.if_else(valid, written, None) if column.null_count else written
