"""What arrives: workloads with their hidden truth, generators, and readers of files."""

from .alone import alone_time_s
from .cluster import parse_nodes
from .demo import demo_workload
from .files import load_workload, save_workload
from .generate import generate
from .heavy_tailed import heavy_tailed
from .mix import Mix, SizeBin, parse_mix
from .model import Arrival, JobTruth, Workload

__all__ = [
    "Arrival",
    "JobTruth",
    "Mix",
    "SizeBin",
    "Workload",
    "alone_time_s",
    "demo_workload",
    "generate",
    "heavy_tailed",
    "load_workload",
    "parse_mix",
    "parse_nodes",
    "save_workload",
]
