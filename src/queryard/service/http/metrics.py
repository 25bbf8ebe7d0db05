"""`GET /metrics` for Prometheus: queue, response, slots, memory and predictions, by tenant.

A tenant is that of a token here: clients may name tenants below it, of which there could be any
number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fastapi import APIRouter, Request
from prometheus_client import (
    CollectorRegistry,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client import Counter as Total
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector
from starlette.responses import Response

from queryard.version import __version__

from ..own_cpu import own_cpu
from ..submitted import Submitted
from .context import Context, context_of, figures_of
from .documents import errors

router = APIRouter(tags=["server"])
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
# A prediction that is right has the ratio 1.
_RATIOS = (0.1, 0.2, 0.33, 0.5, 0.67, 0.8, 0.9, 1.1, 1.25, 1.5, 2, 3, 5, 10)
# Below this a query is too short for its prediction to matter.
_LEAST_WORK_S = 0.001


class Figures(Collector):
    """What is counted as it happens, and what is looked up when Prometheus asks."""

    def __init__(self, context: Context) -> None:
        self._context = context
        # A second series per counter, which says when it began, is of no use here.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        self._submitted = Total(
            "queryard_queries_submitted",
            "Queries that were admitted.",
            ["tenant", "protocol"],
            registry=registry,
        )
        self._ended = Total(
            "queryard_queries_ended",
            "Queries by outcome.",
            ["tenant", "outcome"],
            registry=registry,
        )
        self._response = Histogram(
            "queryard_query_response_seconds",
            "From the submission of a query to the end of its answer, of finished queries.",
            ["tenant"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._wait = Histogram(
            "queryard_query_wait_seconds",
            "From the submission of a query to its first slot.",
            ["tenant"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._work = Total(
            "queryard_query_work_seconds",
            "Core-seconds that queries took.",
            ["tenant"],
            registry=registry,
        )
        self._prediction = Histogram(
            "queryard_query_prediction_ratio",
            "Predicted over actual work, of finished queries that took a millisecond or more.",
            ["tenant"],
            buckets=_RATIOS,
            registry=registry,
        )
        self._responses = Total(
            "queryard_http_responses",
            "Answers to requests over HTTP.",
            ["method", "status"],
            registry=registry,
        )
        ProcessCollector(registry=registry)
        registry.register(self)
        context.yard.watch(self)

    # --- as it happens ---------------------------------------------------------------------------

    def began(self, submitted: Submitted) -> None:
        self._submitted.labels(submitted.principal.tenant, submitted.protocol).inc()

    def ended(self, submitted: Submitted) -> None:
        tenant, ticket = submitted.principal.tenant, submitted.ticket
        timing, outcome = ticket.timing(), ticket.status
        self._ended.labels(tenant, outcome).inc()
        self._work.labels(tenant).inc(max(0.0, timing.work_s))
        if timing.started_s is not None:
            self._wait.labels(tenant).observe(max(0.0, timing.started_s - timing.submitted_s))
        if outcome != "finished" or timing.ended_s is None:
            return
        self._response.labels(tenant).observe(max(0.0, timing.ended_s - timing.submitted_s))
        if timing.predicted_work_s is not None and timing.work_s >= _LEAST_WORK_S:
            self._prediction.labels(tenant).observe(timing.predicted_work_s / timing.work_s)

    def responded(self, method: str, status: int) -> None:
        """An answer was sent."""
        self._responses.labels(method, str(status)).inc()

    # --- when it is asked for --------------------------------------------------------------------

    def text(self) -> bytes:
        """All figures now."""
        self._context.yard.watchers.tell()
        return generate_latest(self.registry)

    def describe(self) -> list[GaugeMetricFamily]:
        """Nothing: the names are known when they are collected."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily | InfoMetricFamily]:
        yield from self._of_queries()
        yard = self._context.yard
        usage, report = yard.usage, yard.session.report()
        yield InfoMetricFamily("queryard_build", "The server.", {"version": __version__})
        for name, text, value in (
            ("slots", "Slots that queries share.", yard.session.slots),
            ("memory_budget_bytes", "Memory that all queries share.", yard.session.memory_bytes),
            ("connections", "Open connections and requests.", usage.connections),
            ("open_results", "Queries that run or have rows to read.", usage.open_results),
            ("result_held_bytes", "Rows that are held for readers.", usage.held_bytes),
            (
                "result_memory_bytes",
                "Of these, in memory.",
                self._context.results.memory.used_bytes + usage.waiting_bytes,
            ),
            (
                "result_waiting_bytes",
                "Of these in memory, rows that no reader has taken yet.",
                usage.waiting_bytes,
            ),
            ("draining", "1 while no queries are taken.", int(yard.draining)),
            ("paused", "1 while no waiting query starts.", int(yard.controls.paused)),
        ):
            yield GaugeMetricFamily(f"queryard_{name}", text, value)
        yield CounterMetricFamily(
            "queryard_scheduler_decisions", "Decisions of the scheduler.", report.decisions
        )
        yield CounterMetricFamily(
            "queryard_burst_slots", "Times a slot beyond the others was used.", report.bursts
        )
        cpu = CounterMetricFamily(
            "queryard_own_cpu_seconds",
            "Processor time of the server itself, without what queries take.",
            labels=["part"],
        )
        beside_s = yard.session.host.policy.beside_cpu_s
        for part, seconds in own_cpu(beside_s).items():
            cpu.add_metric([part], seconds)
        yield cpu

    def _of_queries(self) -> Iterator[GaugeMetricFamily]:
        yard = self._context.yard
        owners = {each.id: each for each in yard.active()}
        states: Counter[tuple[str, str]] = Counter()
        slots: Counter[str] = Counter()
        memory: Counter[str] = Counter()
        for info in yard.tokens.list():  # tenants without queries have zeros, not gaps
            for state in ("waiting", "running"):
                states[info.tenant, state] += 0
            slots[info.tenant] += 0
            memory[info.tenant] += 0
        for view in yard.session.queries():
            owner = owners.get(view.id)
            tenant = view.tenant.partition("/")[0] if owner is None else owner.principal.tenant
            states[tenant, "waiting" if view.started_s is None else "running"] += 1
            slots[tenant] += view.slots
            if owner is not None and view.started_s is not None:
                memory[tenant] += owner.ticket.facts.memory_bytes
        queue = GaugeMetricFamily(
            "queryard_queries", "Queries on their way.", labels=["tenant", "state"]
        )
        for (tenant, state), count in sorted(states.items()):
            queue.add_metric([tenant, state], count)
        yield queue
        for name, text, found in (
            ("slots_used", "Slots that queries hold.", slots),
            ("memory_reserved_bytes", "Memory that running queries have reserved.", memory),
        ):
            gauge = GaugeMetricFamily(f"queryard_{name}", text, labels=["tenant"])
            for tenant, amount in sorted(found.items()):
                gauge.add_metric([tenant], amount)
            yield gauge


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"description": "Figures.", "content": {"text/plain": {"schema": {"type": "string"}}}},
        **errors(401, 403, 429),
    },
    summary="Figures for Prometheus",
)
async def metrics(request: Request) -> Response:
    """Queue, response, slots, memory and predictions, by tenant.

    For a token with the role `metrics`, or an admin's.
    """
    figures_of(request)
    figures: Figures = request.app.state.figures
    content = await context_of(request).run(figures.text)
    return Response(content, media_type=MEDIA_TYPE)
