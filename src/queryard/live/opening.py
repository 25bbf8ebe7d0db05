"""Opens a host on data: its memory divided, its history, its place of work, its rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from queryard.core.model import Node, Tenant
from queryard.engine.budget import divide, memory_budget, slot_range
from queryard.engine.segments import SegmentStore
from queryard.engine.temp import TempSpace
from queryard.sql.catalog import Catalog

from .admission.gate import Gate
from .admission.limits import Limits
from .admission.memory import Reservations, small_sizes
from .admission.tenants import Tenants
from .amounts import as_age
from .host import Host
from .online_planning import has_copies, load_planner
from .placing import Wanted, checked_backend, place_here, place_on_ray
from .recording import Recorder, history_file, read_retention
from .rules import Rules, read_rules
from .settings import (
    SEGMENTS_DISK_BYTES,
    Collecting,
    checked_slow_start,
    collecting_bytes,
    kept_segments_bytes,
)


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
    backend: str,
    address: str | None,
    nodes: Sequence[Node] | None,
) -> Opened:
    """A host with the options of `Session`; they are checked before anything is opened."""
    fresh_s = as_age(fresh, "fresh")
    backend = checked_backend(backend, address)
    threads = slot_range(slots)
    memory_bytes = memory_budget(memory)
    statistics_bytes = collecting_bytes(statistics, memory_bytes)
    catalog.keeps_statistics = history is not False
    segments_bytes = kept_segments_bytes(memory_bytes, catalog)
    budget = divide(memory_bytes - statistics_bytes - segments_bytes, catalog, write)
    rules = read_rules(threads, tenants, limits, profile, backend == "ray")
    share = checked_slow_start(slow_start)
    recorder = Recorder(history_file(history, catalog), read_retention(retention))
    space = TempSpace(temp)
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
    place = (
        place_on_ray(wanted, address or "local") if backend == "ray" else place_here(wanted, nodes)
    )
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
    if backend == "local":
        place.engine.spares.keep(small_sizes(place.pool_bytes), host.run_later)
    if has_copies(catalog):
        host.run_later(lambda: load_planner(catalog))
    return Opened(host, rules, place.slots, memory_bytes, budget.session_bytes)
