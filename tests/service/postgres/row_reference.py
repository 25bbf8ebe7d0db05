"""Rows of PostgreSQL's protocol made value by value, to compare the vectorised encoder with."""

from __future__ import annotations

import datetime as dt
import math
import struct
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa

from queryard.service.postgres import oids

_EPOCH = dt.datetime(2000, 1, 1)


def rows(batch: Any, columns: Any, letter: bytes = b"D") -> bytes:
    out = []
    values = [column.to_pylist() for column in batch.columns]
    for row in zip(*values, strict=True):
        body = struct.pack("!H", len(columns))
        for value, sent in zip(row, columns, strict=True):
            if value is None:
                body += struct.pack("!i", -1)
                continue
            one = in_binary(value, sent.oid) if sent.format else in_text(value, sent.oid).encode()
            body += struct.pack("!i", len(one)) + one
        out.append(letter + struct.pack("!i", len(body) + 4) + body)
    return b"".join(out)


def in_text(value: Any, oid: int) -> str:
    if oid in oids.ELEMENTS:
        parts = [
            "NULL" if one is None else _quoted(in_text(one, oids.ELEMENTS[oid])) for one in value
        ]
        return "{" + ",".join(parts) + "}"
    if oid == oids.BOOL:
        return "t" if value else "f"
    if oid == oids.BYTEA:
        return "\\x" + value.hex()
    if oid in (oids.FLOAT4, oids.FLOAT8):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        kind = pa.float32() if oid == oids.FLOAT4 else pa.float64()
        return str(pa.scalar(value, kind).cast(pa.string()))
    if oid == oids.NUMERIC:
        return format(Decimal(value), "f")
    if oid in (oids.TIMESTAMP, oids.TIMESTAMPTZ):
        naive = value.replace(tzinfo=None)
        written = f"{naive.date().isoformat()} {_clock(naive.time())}"
        return written + ("+00" if oid == oids.TIMESTAMPTZ else "")
    if oid == oids.TIME:
        return _clock(value)
    return str(value)


def _clock(value: dt.time) -> str:
    written = value.isoformat("microseconds")
    return written.rstrip("0").rstrip(".") if "." in written else written


def _quoted(word: str) -> str:
    odd = word == "" or word.upper() == "NULL" or any(c in '{},"\\' or c.isspace() for c in word)
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"' if odd else word


_LAYOUTS = {
    oids.INT2: "!h",
    oids.INT4: "!i",
    oids.INT8: "!q",
    oids.OID: "!I",
    oids.FLOAT4: "!f",
    oids.FLOAT8: "!d",
    oids.BOOL: "!?",
}


def in_binary(value: Any, oid: int) -> bytes:
    if oid in oids.ELEMENTS:
        element = oids.ELEMENTS[oid]
        if not value:
            return struct.pack("!iiI", 0, 0, element)
        head = struct.pack("!iiIii", 1, None in value, element, len(value), 1)
        for one in value:
            raw = None if one is None else in_binary(one, element)
            head += struct.pack("!i", -1) if raw is None else struct.pack("!i", len(raw)) + raw
        return head
    if oid in _LAYOUTS:
        return struct.pack(_LAYOUTS[oid], value)
    if oid == oids.DATE:
        return struct.pack("!i", (value - _EPOCH.date()).days)
    if oid in (oids.TIMESTAMP, oids.TIMESTAMPTZ):
        passed = value.replace(tzinfo=None) - _EPOCH
        return struct.pack("!q", passed // dt.timedelta(microseconds=1))
    if oid == oids.TIME:
        at = dt.datetime.combine(_EPOCH.date(), value) - _EPOCH
        return struct.pack("!q", at // dt.timedelta(microseconds=1))
    if oid == oids.UUID:
        return uuid.UUID(value).bytes
    if oid == oids.NUMERIC:
        return numeric(Decimal(value))
    if oid == oids.INTERVAL:
        months, days, nanoseconds = value
        return struct.pack("!qii", nanoseconds // 1000, days, months)
    return value if isinstance(value, bytes) else value.encode()


def numeric(value: Decimal) -> bytes:
    """By PostgreSQL's rules, with texts: groups of four digits around the point."""
    written = format(value.copy_abs(), "f")
    whole, _, fraction = written.partition(".")
    scale = len(fraction)
    whole = whole.rjust(-(-len(whole) // 4) * 4, "0")
    fraction = fraction.ljust(-(-len(fraction) // 4) * 4, "0")
    digits = whole + fraction
    groups = [int(digits[at : at + 4]) for at in range(0, len(digits), 4)]
    weight = len(whole) // 4 - 1
    while groups and groups[0] == 0:
        groups.pop(0)
        weight -= 1
    while groups and groups[-1] == 0:
        groups.pop()
    if not groups:
        return struct.pack("!HhHH", 0, 0, 0, scale)
    sign = 0x4000 if value < 0 else 0
    return struct.pack(f"!HhHH{len(groups)}H", len(groups), weight, sign, scale, *groups)
