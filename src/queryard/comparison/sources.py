"""The workload of a comparison: from a file, a trace, drawn, the demo, or made by the caller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from queryard.core.errors import InvalidRecord
from queryard.core.model import Node
from queryard.workload import (
    Mix,
    Workload,
    demo_workload,
    generate,
    load_workload,
    parse_mix,
    parse_nodes,
)
from queryard.workload.generate import DEFAULT_NODES
from queryard.workload.traces import Trace, Use, is_trace, parse_use, use_trace

# What policies know of task times unless the caller says otherwise. Of a made-up workload the
# truth; of a recorded one only what could have been learnt from the tasks before.
USUAL_ESTIMATES, TRACE_ESTIMATES = "oracle", "regression"


@dataclass(frozen=True, slots=True)
class Source:
    """A workload with its nodes, and the trace it comes from, if it does."""

    workload: Workload
    trace: Trace | None = None

    @property
    def usual_estimates(self) -> str:
        return USUAL_ESTIMATES if self.trace is None else TRACE_ESTIMATES

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the trace on the way."""
        return () if self.trace is None else self.trace.notes


def find_source(
    workload: Workload | Trace | Path | str | None,
    mix: Mix | str | None,
    demo: bool,
    nodes: Sequence[Node] | str | None,
    seed: int,
    use: Use | str | None = None,
) -> Source:
    """The workload asked for, on the nodes asked for; exactly one source must be named."""
    named = [
        word
        for word, given in (("workload", workload is not None), ("generate", mix is not None))
        if given
    ] + (["demo"] if demo else [])
    if len(named) != 1:
        problem = f"{' and '.join(named)} are too many" if named else "there is none"
        raise InvalidRecord(
            f"which workload? {problem}; give a workload or its file, generate=SPEC or demo=True"
        )
    cluster = parse_nodes(nodes) if isinstance(nodes, str) else tuple(nodes or ())
    if isinstance(workload, str | Path):
        file = Path(workload)
        if use is not None or not _is_workload_file(file):
            trace = open_trace(file, use, cluster, seed)
            return Source(trace.workload, trace)
        found = load_workload(file, cluster)
        return Source(found if found.nodes else load_workload(file, parse_nodes(DEFAULT_NODES)))
    if use is not None:
        raise InvalidRecord("trace= says how a trace is used; give the file of one")
    if isinstance(workload, Trace):
        found = _on(cluster, workload.workload)
        return Source(found, replace(workload, workload=found))
    if isinstance(workload, Workload):
        return Source(_on(cluster, workload))
    if mix is not None:
        return Source(generate(parse_mix(mix) if isinstance(mix, str) else mix, seed, cluster))
    return Source(demo_workload(seed, cluster))


def open_trace(file: Path, use: Use | str | None, nodes: Sequence[Node], seed: int) -> Trace:
    """A trace, used as asked."""
    wanted = parse_use(use) if isinstance(use, str) else use or Use()
    return use_trace(file, wanted, nodes, seed)


def _is_workload_file(file: Path) -> bool:
    """Whether it is to be read as a workload; what is wrong with it is for its reader to say."""
    return file.suffix in (".toml", ".json") and not (file.is_file() and is_trace(file))


def _on(nodes: Sequence[Node], workload: Workload) -> Workload:
    """A workload that was made already, on nodes of its own or on these."""
    if nodes and workload.nodes:
        raise InvalidRecord(
            f"nodes: workload {workload.name!r} has its own, where its tables lie; give others "
            "where it is made, as in load_workload(file, parse_nodes('4x4'))"
        )
    if workload.nodes:
        return workload
    return replace(workload, nodes=tuple(nodes) or parse_nodes(DEFAULT_NODES))
