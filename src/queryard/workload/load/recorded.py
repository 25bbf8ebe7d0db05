"""Recordings: requests as rows of a CSV file, or as JSON objects, one per line (.jsonl).

`time` and `sql` are needed. `tenant`, `template` (texts of one are measured together), `priority`,
`deadline` (after submission) and `tightness` (of the time alone instead) may be given.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from queryard.core.amounts import parse_seconds
from queryard.core.errors import InvalidRecord, unknown_name

from .model import Request

FIELDS = ("time", "tenant", "template", "priority", "deadline", "tightness", "sql")
ENDINGS = (".csv", ".jsonl")


def read_recorded(file: Path) -> tuple[Request, ...]:
    """The requests of a recording, in the order of their times."""
    if file.suffix not in ENDINGS:
        raise InvalidRecord(f"{file}: {unknown_name('ending', file.suffix, ENDINGS)}")
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidRecord(f"{file}: cannot be read ({reason})") from error
    texts: dict[str, str] = {}
    rows = _csv_rows(text) if file.suffix == ".csv" else _json_rows(file, text)
    found = [_request(f"{file}, line {line}", row, texts) for line, row in rows]
    if not found:
        raise InvalidRecord(f"{file}: holds no request; each needs at least a time and sql")
    return tuple(sorted(found, key=lambda request: request.time_s))


def write_recorded(requests: Iterable[Request], file: Path) -> None:
    """Write requests so that `read_recorded` gives the same ones back, but for their ids."""
    if file.suffix not in ENDINGS:
        raise InvalidRecord(f"{file}: {unknown_name('ending', file.suffix, ENDINGS)}")
    rows = [_row(request) for request in requests]
    with file.open("w", encoding="utf-8", newline="") as out:
        if file.suffix == ".csv":
            writer = csv.DictWriter(out, FIELDS)
            writer.writeheader()
            writer.writerows(rows)
        else:
            for row in rows:
                kept = {name: value for name, value in row.items() if value is not None}
                out.write(json.dumps(kept) + "\n")


def _row(request: Request) -> dict[str, object]:
    values = (
        request.time_s,
        request.tenant,
        request.template,
        request.priority,
        request.deadline_s,
        request.deadline_factor,
        request.sql,
    )
    return dict(zip(FIELDS, values, strict=True))


def _csv_rows(text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    reader = csv.DictReader(text.splitlines(keepends=True), restkey="…", restval="")
    for row in reader:
        yield reader.line_num, {name: value for name, value in row.items() if value != ""}


def _json_rows(file: Path, text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for line, part in enumerate(text.splitlines(), 1):
        if not part.strip():
            continue
        try:
            row = json.loads(part)
        except json.JSONDecodeError as error:
            raise InvalidRecord(f"{file}, line {line}: not valid JSON: {error.msg}") from error
        if not isinstance(row, dict):
            raise InvalidRecord(f"{file}, line {line}: expected an object, got {row!r}")
        yield line, row


def _request(where: str, row: Mapping[str, Any], texts: dict[str, str]) -> Request:
    for name in row:
        if name not in FIELDS:
            raise InvalidRecord(f"{where}: {unknown_name('field', name, FIELDS)}")
    for name in ("time", "sql"):
        if name not in row:
            raise InvalidRecord(f"{where}: the field {name!r} is missing")
    sql = str(row["sql"]).strip().rstrip(";")
    return Request(
        id="",
        time_s=_seconds(where, row, "time"),
        tenant=str(row.get("tenant", "default")),
        # Equal texts are one template.
        template=str(row.get("template") or texts.setdefault(sql, f"text {len(texts) + 1}")),
        sql=sql,
        priority=_number(where, row, "priority"),
        deadline_factor=_number(where, row, "tightness") if "tightness" in row else None,
        deadline_s=_seconds(where, row, "deadline") if "deadline" in row else None,
    )


def _seconds(where: str, row: Mapping[str, Any], name: str) -> float:
    try:
        return parse_seconds(row[name])
    except InvalidRecord as error:
        raise InvalidRecord(f"{where}, {name}: {error}") from error


def _number(where: str, row: Mapping[str, Any], name: str) -> float:
    try:
        return float(row.get(name, 0.0))
    except (TypeError, ValueError) as error:
        problem = f"{where}, {name}: expected a number, got {row[name]!r}"
        raise InvalidRecord(problem) from error
