"""Loads put to real data: played in real time, reported, and compared with ideals.

spec = read_spec("examples/load/demo.toml")
ground = prepare(spec, "data")
measured = measure_alone(ground, examples(spec))
requests = draw(spec, work_s=measured.work_s, slots=ground.slots)
played = run(requests, "marshal", ground, measured.alone, tenants=spec.tenants)
report(played, measured.alone).summary.response_s.mean
"""

from queryard.workload.load import (
    Alone,
    LoadSpec,
    Request,
    as_workload,
    draw,
    examples,
    read_recorded,
    read_spec,
    write_recorded,
)

from .alone import Measured, load_alone, measure_alone, save_alone
from .ground import Ground, prepare
from .outcome import Board, Cost, Glance, Outcome, Played
from .play import Show, play
from .report import Foresight, Report, ideals, report
from .running import recorded_requests, run
from .targets import PLAIN, PlainTarget, SessionTarget, Target, open_target

__all__ = [
    "PLAIN",
    "Alone",
    "Board",
    "Cost",
    "Foresight",
    "Glance",
    "Ground",
    "LoadSpec",
    "Measured",
    "Outcome",
    "PlainTarget",
    "Played",
    "Report",
    "Request",
    "SessionTarget",
    "Show",
    "Target",
    "as_workload",
    "draw",
    "examples",
    "ideals",
    "load_alone",
    "measure_alone",
    "open_target",
    "play",
    "prepare",
    "read_recorded",
    "read_spec",
    "recorded_requests",
    "report",
    "run",
    "save_alone",
    "write_recorded",
]
