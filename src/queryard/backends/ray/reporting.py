"""What nodes hold now, and what they have cost."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from queryard.backends.protocol import BackendReport

from .link import Link
from .messages import NodeReport

# How long a node may take to say what it holds.
REPORT_S = 2.0


def node_reports(ray: Any, links: Iterable[Link]) -> dict[str, NodeReport]:
    """What each node holds now, of those that answer soon."""
    until_s = time.monotonic() + REPORT_S
    asked = {link.name: link.actor.report.remote() for link in links}
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
