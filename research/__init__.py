"""The papers' tables and figures, run again: a folder per paper, a module per table or figure."""

from collections.abc import Mapping

from . import ablation, online, posum, recorded, relaqs, s3, tls, tumm
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

PAPERS: Mapping[str, tuple[Experiment, ...]] = {
    "tls": tls.EXPERIMENTS,
    "relaqs": relaqs.EXPERIMENTS,
    "s3": s3.EXPERIMENTS,
    "tumm": tumm.EXPERIMENTS,
    "posum": posum.EXPERIMENTS,
    "recorded": recorded.EXPERIMENTS,
    "online": online.EXPERIMENTS,
}
EXPERIMENTS: Mapping[str, Experiment] = {
    experiment.name: experiment for paper in PAPERS.values() for experiment in paper
} | {ablation.EXPERIMENT.name: ablation.EXPERIMENT}
JOINTS: tuple[Joint, ...] = recorded.JOINTS
# The page of docs/experiments that an experiment or a joint verdict is on.
PAGES: Mapping[str, str] = {
    **{item.name: paper for paper, of_paper in PAPERS.items() for item in of_paper},
    **{joint.name: "recorded" for joint in JOINTS},
}

__all__ = [
    "EXPERIMENTS",
    "JOINTS",
    "PAGES",
    "PAPERS",
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
