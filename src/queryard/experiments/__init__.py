"""The papers' tables and figures, run again: a folder each paper, a module each of them."""

from collections.abc import Mapping

from . import ablation, posum, recorded, relaqs, s3, tls, tumm
from .outcome import (
    Chart,
    Experiment,
    Finding,
    Interval,
    Joint,
    Outcome,
    RunOptions,
    Table,
    interval,
)

EXPERIMENTS: Mapping[str, Experiment] = {
    experiment.name: experiment
    for paper in (tls, relaqs, s3, tumm, posum, recorded)
    for experiment in paper.EXPERIMENTS
} | {ablation.EXPERIMENT.name: ablation.EXPERIMENT}
JOINTS: tuple[Joint, ...] = recorded.JOINTS

__all__ = [
    "EXPERIMENTS",
    "JOINTS",
    "Chart",
    "Experiment",
    "Finding",
    "Interval",
    "Joint",
    "Outcome",
    "RunOptions",
    "Table",
    "interval",
]
