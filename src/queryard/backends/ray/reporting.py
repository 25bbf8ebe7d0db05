"""What nodes hold now, and what they have cost."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any

from queryard.backends.protocol import BackendReport, NodeNote

from .link import Link
from .messages import NodeReport

# How long a node may take to say what it holds.
REPORT_S = 2.0
# How old what is known of what nodes hold may be, where it is shown.
NOTED_S = 1.0


class NodeNotes:
    """What there is to say of nodes. Pages ask often; nodes are asked at most once per second."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._lock = threading.Lock()
        # How many outputs of tasks nodes hold, and when that was asked.
        self._objects: dict[str, int] = {}
        self._asked_s = -NOTED_S

    def of(self, links: Sequence[Link]) -> dict[str, NodeNote]:
        now_s = time.monotonic()
        with self._lock:
            is_old = now_s - self._asked_s > NOTED_S
            self._asked_s = now_s if is_old else self._asked_s
        if is_old:
            reports = node_reports(self._ray, links)
            self._objects = {name: report.objects for name, report in reports.items()}
        objects = self._objects
        return {
            link.name: NodeNote(link.where, link.silent_s, objects.get(link.name, 0))
            for link in links
        }


def node_reports(ray: Any, links: Iterable[Link]) -> dict[str, NodeReport]:
    """What each node holds now, of those that answer soon."""
    until_s = time.monotonic() + REPORT_S
    asked = {link.name: link.actor.report.remote() for link in links if not link.is_suspect}
    found = {}
    for name, answer in asked.items():
        try:
            found[name] = ray.get(answer, timeout=max(0.0, until_s - time.monotonic()))
        except (ray.exceptions.RayError, TimeoutError):
            continue
    return found


def total_of(driver: BackendReport, reports: Iterable[NodeReport]) -> BackendReport:
    """What the driver and all nodes have cost together."""
    total = driver
    for report in reports:
        total = BackendReport(
            total.cpu_s + report.cpu_s,
            total.bursts + report.bursts,
            total.burst_s + report.burst_s,
            total.sprints + report.sprints,
            total.restarts + report.restarts,
            total.restart_s + report.restart_s,
        )
    return total
