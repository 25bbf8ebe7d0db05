"""Classes of queries: a class runs the same statement on different data.

Costs and selectivities belong to the class, so that a predictor which has seen some queries of
a class can know the next one; what it cannot know is drawn for each query by `build_query`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from queryard.core.model import Job, Operator, Phase, Query, Table, TableInput

from .mix import GB
from .model import Arrival, JobTruth
from .shapes import Shape, Stage, draw_shape

# Data that one reduce task takes.
REDUCER_BYTES = 1e9
# Seconds per byte of a reduce's shuffle, merge and reduce, each as a part of the map's.
SHUFFLE, MERGE, REDUCE = 0.10, 0.05, 0.25
# Spread of the costs around their mean, between classes and between queries of one class.
CLASS_SPREAD, QUERY_SPREAD = 0.4, 0.1

# Map output over input, reduce output over map output: between these bounds, by operator.
_SELECTIVITY: Mapping[Operator, tuple[tuple[float, float], tuple[float, float]]] = {
    "join": ((0.2, 0.6), (0.3, 0.8)),
    "groupby": ((0.05, 0.3), (0.05, 0.5)),
    "extract": ((0.05, 0.4), (0.8, 1.0)),
}


@dataclass(frozen=True, slots=True)
class StageCost:
    """Seconds per byte of map input, and what share of the bytes comes out of either phase."""

    map_s_per_byte: float
    map_out: float
    reduce_out: float
    has_reduce: bool = True


@dataclass(frozen=True, slots=True)
class QueryClass:
    """A shape and the cost of each of its stages."""

    name: str
    shape: Shape
    costs: tuple[StageCost, ...]


def draw_class(number: int, shape_name: str, map_s_per_gb: float, rng: Random) -> QueryClass:
    """A class of SQL queries; costs are log-normal around `map_s_per_gb`."""
    shape = draw_shape(shape_name, rng)
    costs = []
    for stage in shape.stages:
        map_out, reduce_out = _SELECTIVITY[stage.operator]
        rate = map_s_per_gb / GB * _spread(rng, CLASS_SPREAD)
        costs.append(StageCost(rate, rng.uniform(*map_out), rng.uniform(*reduce_out)))
    return QueryClass(f"{shape.name}-{number:02}", shape, tuple(costs))


def plain_job_classes(map_s_per_gb: float) -> tuple[QueryClass, ...]:
    """Terasort, WordCount and Grep, the single jobs that TLS's QMix adds."""
    rate = map_s_per_gb / GB

    def single(name: str, operator: Operator, cost: StageCost) -> QueryClass:
        return QueryClass(
            name, Shape("single", (Stage("job", operator, table=0),), (1.0,)), (cost,)
        )

    return (
        single("terasort", "extract", StageCost(0.7 * rate, 1.0, 1.0)),
        single("wordcount", "groupby", StageCost(1.6 * rate, 0.15, 0.2)),
        single("grep", "extract", StageCost(0.5 * rate, 0.001, 1.0, has_reduce=False)),
    )


def build_query(
    query_id: str,
    kind: QueryClass,
    tables: Sequence[Table],
    block_bytes: float,
    rng: Random,
) -> Arrival:
    """A query of a class over the given tables: one map task per split, or per block of the
    output of stages upstream; one reduce task per GB of map output.
    """
    out_bytes: dict[str, float] = {}
    jobs: list[Job] = []
    truth: dict[str, JobTruth] = {}
    luck = _spread(rng, QUERY_SPREAD)
    for stage, cost in zip(kind.shape.stages, kind.costs, strict=True):
        table = tables[stage.table] if stage.table is not None else None
        if table is not None:
            in_bytes, maps = table.bytes, len(table.splits)
        else:
            in_bytes = sum(out_bytes[name] for name in stage.upstream)
            maps = _pieces(in_bytes, block_bytes)
        map_bytes = in_bytes * cost.map_out
        reduces = _pieces(map_bytes, REDUCER_BYTES) if cost.has_reduce else 0
        out_bytes[stage.name] = map_bytes * cost.reduce_out
        rate = cost.map_s_per_byte * luck
        per_reduce = map_bytes / reduces if reduces else 0.0
        jobs.append(
            Job(
                stage.name,
                stage.operator,
                stage.upstream,
                (TableInput(table.name, table.bytes),) if table else (),
                Phase(maps, in_bytes / maps),
                Phase(reduces, per_reduce) if reduces else None,
                (table.name,) if table else (),
            )
        )
        truth[stage.name] = JobTruth(
            map_s=in_bytes / maps * rate,
            shuffle_s=per_reduce * rate * SHUFFLE,
            merge_s=per_reduce * rate * MERGE,
            reduce_s=per_reduce * rate * REDUCE,
            map_output_bytes=map_bytes / maps,
        )
    return Arrival(Query(query_id, tuple(jobs), class_name=kind.name), truth)


def _pieces(size_bytes: float, piece_bytes: float) -> int:
    return max(1, -int(-size_bytes // piece_bytes))


def _spread(rng: Random, sigma: float) -> float:
    """A log-normal factor of mean 1."""
    return rng.lognormvariate(-sigma * sigma / 2, sigma)
