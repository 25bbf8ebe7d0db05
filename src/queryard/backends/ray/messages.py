"""What the driver and its nodes tell each other: plain data.

The driver sends *orders* in batches, which a node carries out in their order. A node answers with
*events*: what its local backend posts, and beside it where rows lie and the rows of answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from queryard.backends.protocol import BackendEvent
from queryard.core.commands import Grant, Kill, Launch, Revoke
from queryard.core.model import TaskId
from queryard.engine.staged.exchange import Piece
from queryard.estimate.prices import Rates
from queryard.sql.catalog.carried import CarriedTable
from queryard.sql.catalog.model import AttachedDatabase

DRIVER = "driver"
"""The place of what runs, and of rows that lie, in the driver's own process."""

# --- orders --------------------------------------------------------------------------------------


class Tables(NamedTuple):
    """The tables of the catalog are these from now on."""

    tables: tuple[CarriedTable, ...]
    databases: tuple[AttachedDatabase, ...]


class Lease(NamedTuple):
    """A query runs here on leased slots."""

    query: str
    width: int
    statement: Any


class Open(NamedTuple):
    """Tasks of a staged query will run here; `opening` is what they have in common."""

    query: str
    opening: Any


class StartTask(NamedTuple):
    """Start a task; its job has the full name in the launch, and `spec` says the rest."""

    launch: Launch
    spec: Any


class Execute(NamedTuple):
    """A command of the kernel."""

    command: Grant | Revoke | Kill


class Stop(NamedTuple):
    """A query is not wanted any more."""

    query: str
    error: BaseException


class Forget(NamedTuple):
    """A query has ended: nothing of it is to stay."""

    query: str


class Met(NamedTuple):
    """A node has joined; its rows can be asked for."""

    place: str
    actor: Any


class Lost(NamedTuple):
    """A node is gone, and the rows there with it."""

    place: str


class Ahead(NamedTuple):
    """A task that is to run here waits for others; these rows it will read."""

    query: str
    pieces: tuple[Piece, ...]


class Credit(NamedTuple):
    """The reader of a run has taken so many bytes; as many more may be sent."""

    run: str
    bytes: int


class Unmet(NamedTuple):
    """Whether a waiting tenant has less than its guarantee."""

    unmet: bool


Order = (
    Tables
    | Lease
    | Open
    | StartTask
    | Ahead
    | Execute
    | Stop
    | Forget
    | Met
    | Lost
    | Credit
    | Unmet
)


# --- events --------------------------------------------------------------------------------------


class Made(NamedTuple):
    """What a task has made, and where it lies; it comes before the end of its launch."""

    launch: int
    task: TaskId
    outcome: Any


class RowsBegan(NamedTuple):
    """The columns of a run are known."""

    run: str
    schema: Any
    types: tuple[str, ...]
    returns: Any


class RowsCame(NamedTuple):
    """Rows of a run, and how many bytes they count for."""

    run: str
    batch: Any
    bytes: int


class RowsEnded(NamedTuple):
    """All rows of a run have come."""

    run: str


NodeEvent = Made | RowsBegan | RowsCame | RowsEnded | BackendEvent


# --- rows from node to node ----------------------------------------------------------------------


class Wanted(NamedTuple):
    """Rows of a piece, of the attempt that made it."""

    key: str
    part: int | None
    attempt: int
    first: int
    rows: int


class Shared(NamedTuple):
    """The rows lie in the object store."""

    ref: Any


class Gone(NamedTuple):
    """Some of the rows are not there."""

    keys: tuple[str, ...]


# --- joining -------------------------------------------------------------------------------------


class NodeSetting(NamedTuple):
    """What a node is told when it joins.

    `memory_bytes` is what its queries may use, beside Ray's object store; None for a share of its
    machine's, and no more than Ray gives to processes there (`ray_bytes`, 0 if it does not say).
    `files` are files that it must see as the driver does: size, and time of the last change in
    nanoseconds.
    """

    name: str
    slots: int
    memory_bytes: int | None
    store_bytes: int
    temp: str | None
    files: Mapping[str, tuple[int, int]]
    ray_bytes: int = 0


class NodeFacts(NamedTuple):
    """What a node says of itself when it joins."""

    pid: int
    versions: Mapping[str, str]
    memory_bytes: int
    pool_bytes: int
    differing: tuple[str, ...]
    """Files that it does not see as the driver does, each with what is wrong."""
    rates: Rates | None = None
    """What kinds of work take there, by the calibration; None if it was not run."""


class NodeReport(NamedTuple):
    """What a node holds now."""

    queries: int
    objects: int
    cpu_s: float
    bursts: int
    burst_s: float
    sprints: int
    restarts: int
    restart_s: float
