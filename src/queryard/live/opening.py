"""Opens a host on data: its memory divided, its history, its place of work, its rules."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from queryard.core.errors import QueryardError
from queryard.core.model import Node, Tenant
from queryard.engine.instances.budget import divide, memory_budget, slot_range
from queryard.engine.segments import SegmentStore
from queryard.engine.temp import TempSpace
from queryard.sql.catalog import Catalog

from .admission.gate import Gate
from .admission.limits import Limits
from .admission.memory import Reservations, small_sizes
from .admission.tenants import Tenants
from .amounts import as_age
from .backend_setting import BackendSetting, read_backend
from .host import Host
from .online_planning import has_copies, load_planner
from .placing import Wanted, place_here, place_on_ray
from .recording import Recorder, history_file, read_retention
from .rules import Rules, read_rules
from .settings import (
    SEGMENTS_DISK_BYTES,
    Bounds,
    Collecting,
    checked_slow_start,
    collecting_bytes,
    kept_segments_bytes,
)

# How long a place of work may take to close, of a host that cannot be opened.
UNDO_S = 5.0


class Opened(NamedTuple):
    """A host at work. `memory_bytes` are those of all, `own_bytes` those of a client's instance."""

    host: Host
    rules: Rules
    slots: int
    memory_bytes: int
    own_bytes: int


def open_host(
    catalog: Catalog,
    *,
    slots: int | tuple[int, int] | None,
    memory: int | str | None,
    write: bool,
    temp: str | Path | None,
    profile: str | Mapping[str, Any],
    tenants: Mapping[str, Any] | Sequence[Tenant] | Tenants | None,
    limits: Mapping[str, Any] | Limits | None,
    history: bool | str | Path | None,
    retention: Mapping[str, Any] | None,
    fresh: float | str,
    slow_start: float,
    statistics: Collecting,
    backend: str | Mapping[str, Any] | BackendSetting,
    address: str | None,
    nodes: Sequence[Node] | None,
) -> Opened:
    """A host with the options of `Session`; they are checked before anything is opened."""
    _check_kinds(write, temp, history)
    fresh_s = as_age(fresh, "fresh")
    setting = read_backend(backend, address)
    slots = setting.slots if slots is None else slots
    memory = setting.memory if memory is None else memory
    threads = slot_range(slots)
    bounds = Bounds(*threads)
    if setting.is_cluster:
        bounds = Bounds(*(setting.nodes or (1, 1)), of="nodes")
    memory_bytes = memory_budget(memory)
    statistics_bytes = collecting_bytes(statistics, memory_bytes)
    catalog.keeps_statistics = history is not False
    segments_bytes = kept_segments_bytes(memory_bytes, catalog)
    budget = divide(memory_bytes - statistics_bytes - segments_bytes, catalog, write)
    rules = read_rules(bounds, tenants, limits, profile, setting.is_cluster)
    share = checked_slow_start(slow_start)
    # What is open already is closed again if something cannot be opened: a cluster, say.
    with ExitStack() as undo:
        recorder = Recorder(history_file(history, catalog), read_retention(retention))
        undo.callback(recorder.close)
        space = TempSpace(temp)
        undo.callback(space.close)
        segments = SegmentStore(segments_bytes, SEGMENTS_DISK_BYTES, space.path)
        wanted = Wanted(
            catalog,
            threads,
            budget.pool_bytes,
            space.path,
            segments,
            slots is not None,
            memory is not None,
        )
        place = place_on_ray(wanted, setting) if setting.is_cluster else place_here(wanted, nodes)
        undo.callback(place.engine.close)
        undo.callback(place.backend.close, UNDO_S)
        host = Host(
            catalog,
            recorder.kernel(rules.profile, place.slots, memory_bytes, share),
            place.backend,
            place.engine,
            Gate(rules.limits, rules.tenants.limits, place.slots),
            Reservations(place.pool_bytes),
            recorder,
            space,
            fresh_s,
            statistics_bytes,
            rules.profile,
            rules.portfolio,
            place.make_tasks,
        )
        undo.pop_all()
    if not setting.is_cluster:
        place.engine.spares.keep(small_sizes(place.pool_bytes), host.run_later)
    if has_copies(catalog):
        host.run_later(lambda: load_planner(catalog))
    return Opened(host, rules, place.slots, memory_bytes, budget.session_bytes)


def _check_kinds(write: object, temp: object, history: object) -> None:
    """A text such as "no" counts as true in Python, and must not let a session write."""
    if not isinstance(write, bool):
        raise QueryardError(f"write: must be True or False, got {write!r}")
    if not isinstance(temp, str | os.PathLike | None):
        raise QueryardError(f"temp: must be the path of a folder, got {temp!r}")
    if not isinstance(history, bool | str | os.PathLike | None):
        raise QueryardError(f"history: must be True, False or the path of a file, got {history!r}")
