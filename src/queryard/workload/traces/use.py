"""What to make of a trace: where it runs, how much of it, with which deadlines.

`key=value` pairs, as `--trace` takes them:

| key | meaning |
|---|---|
| `block` | SWIM: how large the blocks of the input are |
| `executors` | Decima: in which of the runs tasks were measured |
| `topology` | a file that lists the nodes (Rumen's topology, SLS's nodes) |
| `slots` | slots of each of its nodes |
| `load` | a cluster of its own, so large that the offered load (`Trace.load_on`) is this |
| `deadlines` | this share of the queries is due after 1 to 3 times what they take alone |
| `first` | only so many queries, those submitted first |
| `until` | only those submitted so soon after the first |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from random import Random

from queryard.core.amounts import parse_bytes, parse_seconds, several
from queryard.core.errors import InvalidRecord, unknown_name
from queryard.core.model import JobId, Node
from queryard.workload.alone import alone_time_s, capacity_slots
from queryard.workload.cluster import MOST_NODES, numbered
from queryard.workload.generate import SLACK
from queryard.workload.model import Arrival

from . import decima, swim
from .formats import WorkloadFile, read_trace
from .model import ReadOptions, Trace
from .topology import named

KEYS = ("block", "executors", "topology", "slots", "load", "deadlines", "first", "until")
# The nodes of a cluster that is made up for a load.
SLOTS_A_NODE = 12
# More slots of a node than anybody simulates.
MOST_SLOTS = 1_000_000
# How busy a cluster is that is made up because a trace names none.
USUAL_LOAD = 0.7
# How far from the load that is wanted nothing is said.
NEAR = 0.1
DAY_S = 86_400.0
# How long nobody may have asked anything before it is said.
LONG_GAP_S = 2 * DAY_S


@dataclass(frozen=True, slots=True)
class Use:
    """What is wanted of a trace."""

    read: ReadOptions = field(default_factory=ReadOptions)
    topology: Path | None = None
    slots: int | None = None
    load: float | None = None
    deadlines: float = 0.0
    first: int | None = None
    until_s: float = math.inf
    # The keys that somebody wrote, whatever their values.
    given: frozenset[str] = frozenset()


def parse_use(text: str) -> Use:
    """From `key=value` pairs.

    >>> use = parse_use("block=256MiB, load=0.95, deadlines=0.3")
    >>> use.read.block_bytes, use.load, use.deadlines
    (268435456.0, 0.95, 0.3)
    """
    use = Use()
    given: set[str] = set()
    for pair in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (part.strip() for part in pair.partition("="))
        if key not in KEYS:
            raise InvalidRecord(unknown_name("key", key, KEYS))
        if key in given:
            raise InvalidRecord(f"{key} is given twice")
        given.add(key)
        if not equals or not value:
            raise InvalidRecord(f"{pair!r}: write {key}=VALUE")
        use = _with(use, key, value)
    if {"topology", "load"} <= given:
        raise InvalidRecord(
            f"topology={use.topology} names a cluster, and load={use.load:g} makes one up; "
            "leave out one of them"
        )
    return replace(use, given=frozenset(given))


def _with(use: Use, key: str, value: str) -> Use:
    if key == "topology":
        return replace(use, topology=Path(value))
    if key == "until":
        return replace(use, until_s=_above_0(key, parse_seconds(value)))
    if key == "block":
        return replace(use, read=replace(use.read, block_bytes=_above_0(key, parse_bytes(value))))
    try:
        number = float(value)
    except ValueError as error:
        raise InvalidRecord(f"{key}={value}: expected a number") from error
    if key == "load":
        return replace(use, load=_above_0(key, number))
    if key == "deadlines":
        if not 0 <= number <= 1:
            raise InvalidRecord(f"deadlines must lie between 0 and 1, got {value}")
        return replace(use, deadlines=number)
    if not number.is_integer() or number < 1:
        raise InvalidRecord(f"{key}={value}: expected a whole number of at least 1")
    if key == "executors":
        executors = _up_to(MOST_NODES, key, number)
        return replace(use, read=replace(use.read, executors=executors))
    if key == "slots":
        return replace(use, slots=_up_to(MOST_SLOTS, key, number))
    return replace(use, first=int(number))


def _up_to(most: int, key: str, number: float) -> int:
    if number > most:
        raise InvalidRecord(f"{key}={number:g}: at most {most:,} can be simulated")
    return int(number)


def _above_0(key: str, value: float) -> float:
    if not 0 < value < math.inf:
        raise InvalidRecord(f"{key} must be above 0, got {value:g}")
    return value


def use_trace(place: Path, use: Use, nodes: Sequence[Node] = (), seed: int = 0) -> Trace:
    """Read a trace and settle on what nodes it runs."""
    _check_one_cluster(use, nodes)
    try:
        trace = read_trace(place, use.read)
    except WorkloadFile as error:
        raise InvalidRecord(f"{error}{', without --trace' if use.given else ''}") from error
    _check_fits(place, trace.format, use)
    if not trace.workload.arrivals:
        why = f": {'; '.join(trace.notes)}" if trace.notes else ""
        raise InvalidRecord(f"{place}: there is no job in it that could be replayed{why}")
    all_of_it = len(trace.workload.arrivals)
    trace = _part(trace, use)
    arrivals = trace.workload.arrivals
    cluster, notes = _cluster(place, trace, use, nodes)
    if cluster == trace.workload.nodes:
        # A topology may be named that is found by itself as well.
        notes = tuple(dict.fromkeys((*trace.notes, *notes)))
    else:
        notes = (*(note for note in trace.notes if note not in trace.node_notes), *notes)
    if len(arrivals) < all_of_it:
        notes += (
            f"of {several(all_of_it, 'query')} the first {len(arrivals):,} by submission "
            f"{'is' if len(arrivals) == 1 else 'are'} kept; bytes and failures are those of the "
            "whole trace",
        )
    notes += _gap(trace)
    if use.deadlines:
        slots = capacity_slots(cluster)
        arrivals = tuple(with_deadlines(arrivals, use.deadlines, slots, seed))
    if 0 < (ended := len(trace.finished_s)) < len(arrivals):
        notes += (
            f"how long a query took is known of {ended:,} of {len(arrivals):,}: what is "
            "shown as recorded is about these, what policies reach about all",
        )
    workload = replace(trace.workload, arrivals=arrivals, nodes=cluster)
    return replace(trace, workload=workload, notes=notes)


def _part(trace: Trace, use: Use) -> Trace:
    """The queries that are wanted, in the order of submission, which not every file is in."""
    ordered = sorted(trace.workload.arrivals, key=lambda arrival: arrival.query.submit_s)
    end_s = ordered[0].query.submit_s + use.until_s
    arrivals = tuple(a for a in ordered if a.query.submit_s < end_s)[: use.first]
    if not arrivals:
        raise InvalidRecord(f"no query is left of the first {use.until_s:g} s")
    kept = {arrival.query.id for arrival in arrivals}
    return replace(
        trace,
        workload=replace(trace.workload, arrivals=arrivals),
        finished_s={query: end for query, end in trace.finished_s.items() if query in kept},
        tasks=tuple(task for task in trace.tasks if JobId.of(task.job).query in kept),
    )


def _gap(trace: Trace) -> tuple[str, ...]:
    """What to do about days in which nobody asked anything."""
    times_s = [arrival.query.submit_s for arrival in trace.workload.arrivals]
    longest_s = max((after - before for before, after in pairwise(times_s)), default=0.0)
    if longest_s < LONG_GAP_S:
        return ()
    part = (
        "one log at a time"
        if "applications" in trace.counts
        else "a part of it (--trace first=… or until=…)"
    )
    return (
        f"up to {longest_s / DAY_S:,.0f} days pass from one submission to the next, so that no "
        f"cluster is kept busy; take {part}",
    )


def _check_one_cluster(use: Use, nodes: Sequence[Node]) -> None:
    """Nodes that are given, and something else that says what the nodes are, are one too many."""
    for key, value in (("load", use.load), ("slots", use.slots), ("topology", use.topology)):
        if nodes and value is not None:
            raise InvalidRecord(
                f"--nodes names the cluster, and --trace {key}={value} says what it is as well; "
                "leave out one of them"
            )


def _check_fits(place: Path, format: str, use: Use) -> None:
    """What is said to a reader of another format would be left unheard."""
    usual = ReadOptions()
    for key, differs, of in (
        ("block", use.read.block_bytes != usual.block_bytes, swim.NAME),
        ("executors", use.read.executors != usual.executors, decima.NAME),
    ):
        if (differs or key in use.given) and format != of:
            raise InvalidRecord(f"--trace {key}=…: that is for {of}, and {place} is: {format}")


def _cluster(
    place: Path, trace: Trace, use: Use, nodes: Sequence[Node]
) -> tuple[tuple[Node, ...], tuple[str, ...]]:
    """The nodes asked for, else those of a file, else those of the trace, else made-up ones."""
    if nodes:
        return tuple(nodes), ()
    if use.load is None:
        found, notes = named(use.topology) if use.topology else (trace.workload.nodes, ())
        if use.slots is not None:
            found, notes = tuple(replace(node, slots=use.slots) for node in found), ()
        if found:
            return found, notes
    elif not trace.span.seconds:
        raise InvalidRecord(
            f"{place}: load={use.load:g} cannot be set, since all queries come at once and no end "
            "is recorded; leave it out, or name the cluster with --nodes"
        )
    load = use.load or USUAL_LOAD
    slots = use.slots or SLOTS_A_NODE
    try:
        made = nodes_for_load(trace, load, slots, exactly=use.slots is not None)
    except InvalidRecord as error:
        raise InvalidRecord(f"{place}: {error}") from error
    note = (
        f"the cluster is made up: {several(len(made), 'node')} of {several(made[0].slots, 'slot')}"
    )
    reached = trace.load_on(made)
    if reached is not None:
        share = f"{reached:.0%}" if reached >= 0.01 else "less than 1%"
        over = f"from the first submission to the last {trace.span.last}"
        note += f"; all work is {share} of what it can do {over}"
        if use.load is not None and abs(reached / use.load - 1) > NEAR:
            least = len(made) == 1 and made[0].slots == (use.slots or 1) and reached < use.load
            why = "there is no smaller cluster" if least else "nodes and slots come whole"
            note += f"; a load of {use.load:g} cannot be reached, since {why}"
    return made, (note,)


def nodes_for_load(
    trace: Trace, load: float, slots: int, exactly: bool = False
) -> tuple[Node, ...]:
    """As many nodes as make the work so large a part of what they can do in the trace's span.

    Where few nodes would do, they have more or fewer slots, unless these are to be exactly so
    many; there is at least one of each.
    """
    span_s, work_s = trace.span.seconds, trace.work_s
    if span_s <= 0:  # all at once: any cluster is as busy as it can be
        return tuple(Node(name, slots) for name in numbered("n", 4))
    # So small a load that its product is 0 takes more than any number.
    wanted = work_s / (span_s * load) if span_s * load else math.inf
    if wanted / slots > MOST_NODES:
        least = work_s / (span_s * slots * MOST_NODES)
        raise InvalidRecord(
            f"a load of {load:g} would take {wanted / slots:.3g} nodes of {slots:,} slots, and "
            f"{MOST_NODES:,} can be simulated; ask for {least * 1.1:.2g} or more with "
            "--trace load=…, or name the cluster with --nodes"
        )
    count = max(1, round(wanted / slots))
    if not exactly:
        slots = max(1, round(wanted / count))
    return tuple(Node(name, slots) for name in numbered("n", count))


def with_deadlines(
    arrivals: Sequence[Arrival], share: float, slots: float, seed: int
) -> list[Arrival]:
    """A share of the queries, drawn by the seed, with deadlines as POSUM sets them."""
    rng = Random(f"{seed}/deadlines")
    chosen = set(rng.sample(range(len(arrivals)), round(share * len(arrivals))))
    due = []
    for number, arrival in enumerate(arrivals):
        slack = rng.uniform(*SLACK)
        if number in chosen:
            within_s = alone_time_s(arrival, slots) * slack
            query = replace(arrival.query, deadline_s=arrival.query.submit_s + within_s)
            arrival = replace(arrival, query=query)
        due.append(arrival)
    return due
