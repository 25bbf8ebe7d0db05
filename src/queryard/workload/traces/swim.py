"""SWIM: a day of Facebook's MapReduce, tab-separated, one job per line: its time and its bytes.

There are no tasks and no durations, so they are made up from the bytes: a map for each block of the
input, a reduce for each `REDUCE_BYTES` of the shuffle, and times by what the maps and reduces of a
production cluster of 2009 took (fitted to Rumen's folder trace of Hadoop's public test data: 587
maps, 105 reduces that read more than 8 MB).
"""

from __future__ import annotations

import math
from pathlib import Path

from queryard.core.model import Job, Phase, Query, TableInput
from queryard.workload.model import Arrival, JobTruth, Workload

from .model import ReadOptions, Trace, as_id
from .numbers import LARGEST
from .text import Cut, fail, lines, name_of

NAME = "SWIM"
# A task's fixed time, then bytes per second.
MAP_START_S, MAP_RATE = 3.3, 6.5e6
SHUFFLE_RATE = 2.9e6
REDUCE_START_S, REDUCE_RATE = 1.9, 0.9e6
# Bytes per reduce, unless that makes more reduces than Hive would.
REDUCE_BYTES, MOST_REDUCES = 256 * 2.0**20, 999
# An upper limit on the maps of one job.
MOST_MAPS = 10_000_000
JOB = "job"


def recognises(head: str) -> bool:
    fields = head.split("\n", 1)[0].split("\t")
    return 6 <= len(fields) <= 9 and all(field.isdigit() for field in fields[1:6])


def read(file: Path, options: ReadOptions) -> Trace:
    """Every job is a query."""
    arrivals = []
    totals = {"jobs": 0.0, "input bytes": 0.0, "shuffle bytes": 0.0, "output bytes": 0.0}
    maps_only = 0
    before_s = 0.0
    names: set[str] = set()
    try:
        for number, line in lines(file):
            fields = line.rstrip("\r\n").split("\t")
            if fields == [""]:
                continue
            if len(fields) < 6:
                expected = "six fields or more are expected: a name and five numbers"
                fail(file, f"{expected}; is the line cut off?", number)
            try:
                at_s, _, input_bytes, shuffle_bytes, output_bytes = map(float, fields[1:6])
            except ValueError as error:
                fail(file, f"five numbers are expected after the name: {error}", number)
            values = (at_s, input_bytes, shuffle_bytes, output_bytes)
            if not all(map(math.isfinite, values)) or max(values) > LARGEST:
                fail(file, "times and bytes must be finite numbers of up to 64 bits", number)
            maps = input_bytes / options.block_bytes
            if maps > MOST_MAPS:
                block = f"blocks of {options.block_bytes:g} bytes"
                advice = "give larger ones with --trace block=…, such as block=256MiB"
                fail(file, f"{block} make {maps:.3g} maps of the input; {advice}", number)
            if min(at_s, input_bytes, shuffle_bytes, output_bytes) < 0:
                fail(file, "times and bytes cannot be negative", number)
            if at_s < before_s:
                fail(file, f"submitted at {at_s:g} s, before the job of the line above", number)
            before_s = at_s
            if fields[0] in names:
                fail(file, f"another line is about the job {fields[0]!r} as well", number)
            names.add(fields[0])
            path = fields[6] if len(fields) > 6 else ""
            arrivals.append(
                _arrival(fields[0], at_s, input_bytes, shuffle_bytes, output_bytes, path, options)
            )
            maps_only += not shuffle_bytes
            for name, value in zip(
                totals, (1, input_bytes, shuffle_bytes, output_bytes), strict=True
            ):
                totals[name] += value
    except Cut as error:
        fail(file, f"ends in the middle ({error})")
    block = f"{options.block_bytes / 2**20:g} MiB"
    notes = (
        f"tasks are made up: a map for each {block} of the input, a reduce for each "
        f"{REDUCE_BYTES / 2**20:g} MiB of the shuffle, at most {MOST_REDUCES}",
        f"times are made up: a map takes {MAP_START_S:g} s and a second for each "
        f"{MAP_RATE / 1e6:g} MB, a reduce {REDUCE_START_S:g} s and a second for each "
        f"{SHUFFLE_RATE / 1e6:g} MB it fetches and each {REDUCE_RATE / 1e6:g} MB it reduces",
        "users are unknown: all jobs belong to one tenant",
    )
    totals["jobs without a shuffle"] = maps_only
    return Trace(
        name_of(file), NAME, Workload(name_of(file), tuple(arrivals)), (), {}, totals, notes
    )


def _arrival(
    name: str,
    at_s: float,
    input_bytes: float,
    shuffle_bytes: float,
    output_bytes: float,
    path: str,
    options: ReadOptions,
) -> Arrival:
    maps = max(1, -int(-input_bytes // options.block_bytes))
    map_bytes = input_bytes / maps
    reduces = min(MOST_REDUCES, max(1, -int(-shuffle_bytes // REDUCE_BYTES)))
    reduce_bytes = shuffle_bytes / reduces
    left_bytes = shuffle_bytes or output_bytes
    job = Job(
        JOB,
        "groupby" if shuffle_bytes else "extract",
        inputs=(TableInput(path, input_bytes),) if path else (),
        map=Phase(maps, map_bytes),
        reduce=Phase(reduces, reduce_bytes) if shuffle_bytes else None,
    )
    truth = JobTruth(
        map_s=MAP_START_S + map_bytes / MAP_RATE,
        shuffle_s=reduce_bytes / SHUFFLE_RATE,
        reduce_s=REDUCE_START_S + reduce_bytes / REDUCE_RATE if shuffle_bytes else 0.0,
        map_output_bytes=left_bytes / maps,
    )
    return Arrival(Query(as_id(name), (job,), submit_s=at_s), {JOB: truth})
