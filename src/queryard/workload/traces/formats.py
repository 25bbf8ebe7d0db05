"""Which format a file has, by what stands at its beginning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from . import decima, history_avro, history_text, rumen, sls, spark, spark_log, swim, topology
from .model import ReadOptions, Trace
from .text import fail, head


class Format(NamedTuple):
    """A name, whether the beginning of a file looks like it, and its reader."""

    name: str
    recognises: Callable[[str], bool]
    read: Callable[[Path, ReadOptions], Trace]


FORMATS: Sequence[Format] = tuple(
    Format(module.NAME, module.recognises, module.read)
    for module in (history_avro, history_text, spark, sls, decima, rumen, swim)
)


def read_trace(place: str | Path, options: ReadOptions | None = None) -> Trace:
    """Read a file, or a folder of Spark's: a rolling log, or the logs of several applications."""
    path = Path(place)
    options = options or ReadOptions()
    if path.is_dir():
        return _read_folder(path, options)
    begin = head(path)
    if not begin.strip():
        fail(path, "is empty")
    for format in FORMATS:
        if format.recognises(begin):
            return format.read(path, options)
    if topology.recognises(begin):
        fail(path, "lists the nodes of a cluster and no jobs; name it with --trace topology=FILE")
    if sls.is_recipe(begin):
        fail(path, "says how SLS is to draw jobs; draw them with --generate, or give a trace")
    known = ", ".join(format.name for format in FORMATS)
    fail(path, f"is no trace that can be read; known are: {known}")


def is_trace(place: Path) -> bool:
    """Whether it looks like a trace, and not like a workload file or nothing at all."""
    if place.is_dir():
        return True
    begin = head(place)
    return any(format.recognises(begin) for format in FORMATS)


def _read_folder(folder: Path, options: ReadOptions) -> Trace:
    if spark_log.is_rolling(folder):
        return spark.read(folder, options)
    logs = sorted(
        place
        for place in folder.iterdir()
        if not place.name.startswith(".")
        and (
            spark_log.is_rolling(place)
            if place.is_dir()
            else place.stat().st_size > 0 and spark.recognises(head(place))
        )
    )
    if not logs:
        fail(folder, "there is no Spark event log in this folder; other traces are single files")
    return spark.read_several(folder, logs)
