"""A load under one policy, from opening the target to closing it; and recordings to play."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from queryard.core.model import Tenant
from queryard.history import HistoryReader
from queryard.workload.load import Alone, LoadSpec, Request, read_recorded

from .ground import Ground
from .outcome import Played
from .play import Show, play
from .targets import FIRST, Profile, open_target

HISTORIES = (".sqlite", ".db")


def run(
    requests: Iterable[Request],
    policy: str,
    ground: Ground,
    alone: Mapping[str, Alone],
    *,
    profile: Profile | None = None,
    tenants: Sequence[Tenant] = (),
    history: str | Path | None = None,
    show: Show | None = None,
) -> Played:
    """Play requests under a policy by its name, `duckdb` included (see `open_target`)."""
    target = open_target(policy, ground, profile=profile, tenants=tenants, history=history)
    try:
        return play(requests, target, alone, show=show)
    finally:
        target.close()


def recorded_requests(spec: LoadSpec) -> tuple[Request, ...]:
    """The requests of the recording a spec names; none if it names none.

    A history (.sqlite) gives the queries of its last session.
    """
    file = spec.arrivals.file
    if file is None:
        return ()
    return _of_history(file) if file.suffix in HISTORIES else read_recorded(file)


def _of_history(file: Path) -> tuple[Request, ...]:
    names: dict[str, str] = {}
    found = []
    with HistoryReader(file) as history:
        records = history.queries(session=history.session().session)
    records = [record for record in records if record.sql != FIRST]  # that was the player's own
    first_s = min((record.asked_s for record in records), default=0.0)
    for record in records:
        due_s = record.deadline_s
        found.append(
            Request(
                id="",
                time_s=record.asked_s - first_s,
                tenant=record.tenant,
                template=names.setdefault(record.template, f"template {len(names) + 1}"),
                sql=record.sql,
                priority=record.priority,
                deadline_s=None if due_s is None else max(0.0, due_s - record.asked_s),
            )
        )
    return tuple(found)
