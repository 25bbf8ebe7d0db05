"""Which format a file has, by what stands at its beginning."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from queryard.core.errors import InvalidModel, InvalidRecord

from . import decima, history_avro, history_text, rumen, sls, spark, spark_log, swim, topology
from .model import ReadOptions, Trace
from .text import fail, head, json_objects


class WorkloadFile(InvalidRecord):
    """What should be a trace is a workload file of our own."""


class Format(NamedTuple):
    """A name, whether the beginning of a file looks like it, and its reader."""

    name: str
    recognises: Callable[[str], bool]
    read: Callable[[Path, ReadOptions], Trace]


# So many files of subfolders are looked at, before it is said that there is nothing.
_LOOKED_AT = 500
FORMATS: Sequence[Format] = tuple(
    Format(module.NAME, module.recognises, module.read)
    for module in (history_avro, history_text, spark, sls, decima, rumen, swim)
)


def read_trace(place: str | Path, options: ReadOptions | None = None) -> Trace:
    """Read a file, or a folder of Spark's: a rolling log, or the logs of several applications."""
    path = Path(place)
    options = options or ReadOptions()
    try:
        return _read_folder(path, options) if path.is_dir() else _read_file(path, options)
    except InvalidModel as error:  # which readers should have said with the line
        fail(path, f"holds what cannot have been: {error}")


def _read_file(path: Path, options: ReadOptions) -> Trace:
    begin = head(path)
    if not begin.strip():
        fail(path, "is empty")
    for format in FORMATS:
        if format.recognises(begin):
            return format.read(path, options)
    if topology.recognises(begin):
        advice = f"give a trace, and --trace topology={quote(str(path))} beside it"
        fail(path, f"lists the nodes of a cluster and no jobs; {advice}")
    if sls.is_recipe(begin):
        fail(path, "says how SLS is to draw jobs and has none, so that it cannot be read")
    is_json, keys = _outermost(path, begin)
    if "queries" in keys:
        run = f"run it with: queryard compare {quote(str(path))}"
        raise WorkloadFile(f"{path}: is a workload file and no trace; {run}")
    known = ", ".join(format.name for format in FORMATS)
    what = "JSON, but neither a trace nor a workload" if is_json else "no trace that can be read"
    fail(path, f"is {what}; known are: {known}")


def _outermost(path: Path, begin: str) -> tuple[bool, Collection[str]]:
    """Whether it is JSON, and the outermost keys of it or of a TOML file."""
    if path.suffix == ".toml":
        return False, re.findall(r"^\s*(?:\[\[)?(queries)\b", begin, re.MULTILINE)
    if not begin.lstrip().startswith(("{", "[")):
        return False, ()
    try:
        values = [value for _, value in json_objects(path)]
    except InvalidRecord:
        return False, ()
    return True, values[0] if len(values) == 1 and isinstance(values[0], dict) else ()


def is_trace(place: Path) -> bool:
    """Whether it looks like a trace, and not like a workload file or nothing at all."""
    if place.is_dir():
        return True
    begin = head(place)
    return any(format.recognises(begin) for format in FORMATS)


def _read_folder(folder: Path, options: ReadOptions) -> Trace:
    """What can be read of a folder; one file that cannot does not take the others with it."""
    if spark_log.is_rolling(folder):
        return spark.read(folder, options)
    logs: list[spark_log.SparkLog] = []
    problems: list[str] = []
    others: list[str] = []
    for place in sorted(folder.iterdir()):
        try:
            if _is_log(place):
                logs.append(spark_log.read_log(place))
            elif place.is_file() and place.stat().st_size and not place.name.startswith("."):
                others.append(place.name)
        except (InvalidRecord, OSError) as error:
            problems.append(str(error))
    if not logs:
        why = "".join(f"; {problem}" for problem in problems)
        advice = "; ".join(_advice(folder))
        fail(folder, f"there is no Spark event log in this folder{why}; {advice}")
    trace = spark.trace_of(folder, logs)
    notes = [f"left out, since it cannot be read: {problem}" for problem in problems]
    if others:
        more = f" and {len(others) - 3:,} more" if len(others) > 3 else ""
        notes.append(f"left out, since no event log of Spark's: {', '.join(others[:3])}{more}")
    return replace(trace, notes=(*notes, *trace.notes))


def _advice(folder: Path) -> list[str]:
    """Where Spark's logs are, if they are below; how other files of a folder are read."""
    below = (place for depth in ("*/*", "*/*/*") for place in sorted(folder.glob(depth)))
    logs = (place for place in islice(below, _LOOKED_AT) if _found(_is_log, place))
    holding = {place.parent for place in logs if not spark_log.is_rolling(place.parent)}
    advice = []
    if holding:
        names = sorted(f"{place}" for place in holding)
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        advice.append(f"there are some in {', '.join(names[:3])}{more}")
    files = [place for place in sorted(folder.iterdir()) if place.is_file()]
    others = [place for place in islice(files, _LOOKED_AT) if _found(is_trace, place)]
    advice.append("other traces are read one by one, a file each")
    if others:
        advice[-1] += f", such as {others[0]}"
    if any(_found(_is_history, place) for place in others):
        advice.append("of several job histories, Hadoop's Rumen makes one trace")
    return advice


def _found(is_such: Callable[[Path], bool], place: Path) -> bool:
    try:
        return is_such(place)
    except (InvalidRecord, OSError):
        return False


def _is_history(place: Path) -> bool:
    begin = head(place)
    return history_avro.recognises(begin) or history_text.recognises(begin)


def _is_log(place: Path) -> bool:
    if place.name.startswith("."):
        return False
    if place.is_dir():
        return spark_log.is_rolling(place)
    return place.stat().st_size > 0 and spark.recognises(head(place))
