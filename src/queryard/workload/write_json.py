"""A workload as plain data, in the format that `load_workload` reads; defaults are left out."""

from __future__ import annotations

from typing import Any

from queryard.core.model import UNBOUNDED, Job, Node, Phase, Query, Tenant
from queryard.core.speedup import PERFECT

from .model import Arrival, JobTruth, Workload
from .read_jobs import usual_span

_QUERY = Query("q", (Job("j", map=Phase(1)),))
_TRUTH = JobTruth()


def to_json(workload: Workload) -> dict[str, Any]:
    """The whole workload, with tables split by split and the truth of every job.

    The truth of phases that a job does not have is not written: nothing could come of it.
    """
    data: dict[str, Any] = {"name": workload.name}
    if workload.nodes:
        data["nodes"] = [_node(node) for node in workload.nodes]
    if workload.tables:
        data["tables"] = [
            {
                "name": table.name,
                "splits": [
                    {"bytes": split.bytes, "nodes": list(split.nodes)} for split in table.splits
                ],
            }
            for table in workload.tables
        ]
    if workload.tenants:
        data["tenants"] = [_tenant(tenant) for tenant in workload.tenants]
    data["queries"] = [_arrival(arrival) for arrival in workload.arrivals]
    return data


def _node(node: Node) -> dict[str, Any]:
    data: dict[str, Any] = {"id": node.id, "slots": node.slots}
    if node.memory_bytes != UNBOUNDED:
        data["memory_bytes"] = node.memory_bytes
    return data | _unlike(
        node, Node("n", 1), ("map_speed", "reduce_speed", "rack", "kept_bytes", "host")
    )


def _tenant(tenant: Tenant) -> dict[str, Any]:
    shares = _unlike(tenant, Tenant("t"), ("weight", "guarantee", "cap"))
    return {"name": tenant.name, **shares}


def _arrival(arrival: Arrival) -> dict[str, Any]:
    query = arrival.query
    fields = (
        "tenant",
        "priority",
        "submit_s",
        "deadline_s",
        "kind",
        "class_name",
        "memory_bytes",
        "idempotency_key",
        "target_error",
    )
    data = {"id": query.id, **_unlike(query, _QUERY, fields)}
    if arrival.cancel_s is not None:
        data["cancel_s"] = arrival.cancel_s
    if arrival.size_bin:
        data["size_bin"] = arrival.size_bin
    data["jobs"] = [_job(job, arrival.truth[job.name]) for job in query.jobs]
    return data


def _job(job: Job, truth: JobTruth) -> dict[str, Any]:
    data: dict[str, Any] = {"name": job.name, "operator": job.operator}
    if job.upstream:
        data["upstream"] = list(job.upstream)
    if job.scans:
        data["scans"] = list(job.scans)
    if job.scans_alone:
        data["scans_alone"] = True
    if job.inputs or job.scans:
        data["inputs"] = {item.table: item.bytes for item in job.inputs}
    if job.divisible is not None:
        divisible = job.divisible
        data["divisible"] = {
            "width": divisible.width,
            "batches": divisible.batches,
            "nested": divisible.nested,
            "work_s": truth.work_s,
            **_unlike(truth, _TRUTH, ("growth_s", "batch_overhead_s", "sigma", "rows")),
            **_unlike(truth, _TRUTH, ("make_s", "ride_s")),
        }
        if truth.errors:
            data["divisible"]["errors"] = [list(point) for point in truth.errors]
        curve = _unlike(truth.speedup, PERFECT, ("serial", "most"))
        if curve:
            data["divisible"]["speedup"] = curve
        if divisible.span != usual_span(divisible.batches):
            data["divisible"]["span"] = divisible.span
    if job.map is not None:
        data["map"] = _phase(job.map) | {"seconds": truth.map_s}
        data["map"] |= _unlike(truth, _TRUTH, ("map_output_bytes",), drop="map_")
        data["map"] |= _unlike(truth, _TRUTH, ("make_s", "ride_s"))
        data["map"] |= _times(truth.map_times_s)
    if job.reduce is not None:
        data["reduce"] = _phase(job.reduce)
        data["reduce"] |= _unlike(truth, _TRUTH, ("shuffle_s", "merge_s", "reduce_s"))
        data["reduce"] |= _times(truth.reduce_times_s)
    return data


def _phase(phase: Phase) -> dict[str, Any]:
    sizes = {"sizes": list(phase.sizes)} if phase.sizes else {"bytes": phase.bytes_per_task}
    return {"tasks": phase.tasks, **sizes}


def _times(times_s: tuple[float, ...]) -> dict[str, Any]:
    return {"times": list(times_s)} if times_s else {}


def _unlike(value: Any, default: Any, fields: tuple[str, ...], drop: str = "") -> dict[str, Any]:
    """The fields that differ from the default, without the prefix to drop."""
    return {
        name.removeprefix(drop): getattr(value, name)
        for name in fields
        if getattr(value, name) != getattr(default, name)
    }
