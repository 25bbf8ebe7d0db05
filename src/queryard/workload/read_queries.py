"""Queries of a workload file: what the scheduler may see of them, and the truth beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import cast

from queryard.core.errors import InvalidModel
from queryard.core.model import Job, Query, QueryKind, Table

from .cluster import numbered
from .fields import Fields
from .model import Arrival
from .read_jobs import WORK_FIELDS, read_jobs

QUERY_FIELDS = (
    "id",
    "tenant",
    "priority",
    "submit",
    "submit_s",
    "deadline",
    "deadline_s",
    "within",
    "within_s",
    "kind",
    "class_name",
    "memory",
    "memory_bytes",
    "target_error",
    "idempotency_key",
    "cancel",
    "cancel_s",
    "size_bin",
    "count",
    "every",
    "every_s",
    "jobs",
    *WORK_FIELDS,
)


def read_query(fields: Fields, tables: Mapping[str, Table]) -> Iterator[Arrival]:
    """The arrivals of one `[[queries]]` table: one, or `count` of them, `every` so often."""
    jobs, truth = read_jobs(fields, tables)
    submit_s = fields.seconds("submit", 0.0)
    query = _read_query(fields, submit_s, jobs)
    cancel_s = _optional_seconds(fields, "cancel")
    arrival = Arrival(query, truth, cancel_s, fields.text("size_bin", ""))
    count = fields.whole("count", 1)
    every_s = fields.seconds("every", 0.0)
    if count == 1:
        yield arrival
        return
    if query.idempotency_key:
        fields.fail("idempotency_key", "all copies would be one query; leave out the key or count")
    for number, name in enumerate(numbered(f"{query.id}-", count)):
        shift_s = number * every_s
        deadline_s = None if query.deadline_s is None else query.deadline_s + shift_s
        copy = replace(query, id=name, submit_s=submit_s + shift_s, deadline_s=deadline_s)
        cancelled_s = None if cancel_s is None else cancel_s + shift_s
        yield replace(arrival, query=copy, cancel_s=cancelled_s)


def _read_query(fields: Fields, submit_s: float, jobs: tuple[Job, ...]) -> Query:
    deadline_s = _optional_seconds(fields, "deadline")
    within_s = _optional_seconds(fields, "within")
    if within_s is not None:
        if deadline_s is not None:
            fields.fail("deadline", "'within' sets a deadline too; give one of them")
        deadline_s = submit_s + within_s
    kind = cast(QueryKind, fields.choice("kind", ("exact", "online"), "exact"))
    if kind == "online" and any(job.divisible is None for job in jobs):
        fields.fail("kind", "an online query is made of divisible jobs only")
    target_error = fields.number("target_error", 0.0, least=0) if "target_error" in fields else None
    try:
        return Query(
            fields.name("id"),
            jobs,
            tenant=fields.text("tenant", "default"),
            priority=fields.number("priority", 0.0),
            submit_s=submit_s,
            deadline_s=deadline_s,
            kind=kind,
            class_name=fields.text("class_name", ""),
            memory_bytes=fields.bytes("memory", 0.0),
            idempotency_key=fields.text("idempotency_key", ""),
            target_error=target_error,
        )
    except InvalidModel as error:
        fields.fail(None, str(error))


def _optional_seconds(fields: Fields, name: str) -> float | None:
    given = name in fields or f"{name}_s" in fields
    return fields.seconds(name) if given else None
