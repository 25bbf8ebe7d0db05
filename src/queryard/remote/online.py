"""Answers of an online query on a server, followed on a thread of their own."""

from __future__ import annotations

import json
import threading
import weakref
from typing import Any

import pyarrow as pa

from queryard.core.errors import QueryardError
from queryard.results.online import AnswerLog, Eta, OnlineAnswer

from .transport import ARROW, Transport

WAIT_S = 30.0
ANSWER_KEY = b"queryard:answer"


def follow(transport: Transport, query: str, log: AnswerLog) -> None:
    """Put the answers of a query into a log, as long as the log is held."""
    thread = threading.Thread(
        target=_follow,
        args=(transport, query, weakref.ref(log)),
        name="queryard-answers",
        daemon=True,
    )
    thread.start()


def _follow(transport: Transport, query: str, held: weakref.ref[AnswerLog]) -> None:
    number = 0
    while held() is not None:
        try:
            number, ended = _ask(transport, query, held, number)
        except (QueryardError, OSError, pa.ArrowException):
            ended = True  # the handle tells what is wrong
        if ended:
            if (log := held()) is not None:
                log.close()
            return


def _ask(
    transport: Transport, query: str, held: weakref.ref[AnswerLog], number: int
) -> tuple[int, bool]:
    """Wait for a newer answer; the number of the newest, and whether it was the last."""
    wanted = {"after": number, "wait": WAIT_S, "format": "arrow"}
    path = f"/v1/queries/{query}/answers"
    with transport.open("GET", path, params=wanted, accept=ARROW, wait_s=WAIT_S) as reply:
        content = reply.read()
    with pa.ipc.open_stream(content) as batches:
        table = batches.read_all()
    told = json.loads(table.schema.metadata[ANSWER_KEY])
    log = held()
    if log is not None:
        log.reason = told["reason"]
        log.is_whole = told["in_rows"]
        if told["answer"] is not None:
            log.put(_answer(table.replace_schema_metadata(None), told["answer"]))
    return told["number"], told["ended"]


def _answer(table: Any, told: dict[str, Any]) -> OnlineAnswer:
    given = dict(told)
    types = tuple(column["type"] for column in given.pop("columns"))
    given["eta_s"] = Eta(**given["eta_s"])
    for name in ("marks", "notes"):
        given[name] = tuple(given[name])
    return OnlineAnswer(table, types, **given)
