"""`connect`: a session on data, with its options and those of a catalog file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from queryard.core.model import Tenant
from queryard.sql.catalog import open_catalog

from .request import Plan
from .session import Session
from .settings import Collecting, session_settings


def connect(
    where: str | Path | None = None,
    *,
    tables: Mapping[str, object] | None = None,
    slots: int | tuple[int, int] | None = None,
    memory: int | str | None = None,
    write: bool = False,
    temp: str | Path | None = None,
    plan: Plan | None = None,
    profile: str | Mapping[str, Any] | None = None,
    tenants: Mapping[str, Any] | Sequence[Tenant] | None = None,
    limits: Mapping[str, Any] | None = None,
    history: bool | str | Path | None = None,
    retention: Mapping[str, Any] | None = None,
    fresh: float | str | None = None,
    slow_start: float | None = None,
    statistics: Collecting | None = None,
    backend: str | None = None,
    address: str | None = None,
) -> Session:
    """Open a session on data.

    `where` is a folder of data files, a catalog file (TOML), one data file or a DuckDB database;
    `tables` adds tables by name: paths, patterns, frames. `slots` is how many threads work at most
    (all cores), or the least and the most of them, `memory` the bytes all queries together may use
    (70 % of the machine's). Without `write=True` the data is never changed.

    `plan` is how queries run unless they say otherwise: by DuckDB ("native"), split into tasks
    ("staged"), or ("auto") by DuckDB unless riding on a shared scan of text is cheaper, as for
    queries that read one large CSV file at the same time, or tasks on all nodes of a cluster are
    expected to be faster. `profile` is the policy by which they share the slots (`queryard
    policies`), or "portfolio", which chooses it as the queue changes.
    `tenants` have shares and limits by name, as
    `{"web": {"weight": 3, "guarantee": 0.25, "limits": {"waiting": 100}}}`; `limits` are those of
    all together: `waiting` queries, the `wait` to be expected, the `memory` of one query.

    A session writes into the folder `.queryard` beside the data, for its user only: the history of
    what was asked and what came of it, and a note of how `queryard why` reaches the session. With
    `history=False` it writes nothing there; a path keeps the history in that file. The history goes
    back 30 days and has up to about 1 GB, unless `retention` says otherwise, as
    `{"days": 7, "size": "200 MB"}`.

    A query sees the files that lay there when it was submitted. `fresh` is how old what is known of
    them may be instead, as "5 s", where looking is costly; `Session.refresh()` looks at once.

    Statistics of the tables are collected in the background, at low priority, and kept in that
    folder as well; with `statistics="off"` only what is there is used.

    `slow_start` is the share of the maps of a job after which its reduces may be launched, for
    staged queries: below 1 they take slots early and wait there for the other maps.

    `backend` is where queries run: in this process ("local"), or on a Ray cluster ("ray"). A
    cluster has an `address`: "auto" is the one that this machine is part of, and "local", the
    default, starts one on this machine that ends with the session. `slots` and `memory` are then
    those of each node (docs/cluster.md).

    A catalog file may hold all of these under `[session]`, `[tenants]` and `[limits]`; what is
    given here counts first.
    """
    catalog = open_catalog(where, tables)
    given = {
        "slots": slots,
        "memory": memory,
        "temp": temp,
        "plan": plan,
        "profile": profile,
        "tenants": tenants,
        "limits": limits,
        "history": history,
        "retention": retention,
        "fresh": fresh,
        "slow_start": slow_start,
        "statistics": statistics,
        "backend": backend,
        "address": address,
    }
    chosen = {key: value for key, value in given.items() if value is not None}
    return Session(catalog, write=write, **{**session_settings(catalog.settings), **chosen})
