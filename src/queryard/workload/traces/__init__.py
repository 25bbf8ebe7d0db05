"""Recorded workloads of other systems, one module per format, all read into the same model."""

from .formats import FORMATS, is_trace, read_trace
from .model import ReadOptions, TaskRecord, Trace
from .use import Use, parse_use, use_trace

__all__ = [
    "FORMATS",
    "ReadOptions",
    "TaskRecord",
    "Trace",
    "Use",
    "is_trace",
    "parse_use",
    "read_trace",
    "use_trace",
]
