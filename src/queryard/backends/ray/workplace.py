"""What work is done with at a node: an engine of its own over the driver's catalog."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import threading
from collections.abc import Callable
from typing import Any, Protocol

from queryard.backends.local.leases import Engine
from queryard.backends.local.member import Serving
from queryard.engine.calibration import machine_rates
from queryard.engine.errors import QueryFailed
from queryard.engine.instances.budget import memory_budget
from queryard.engine.native import NativeEngine, SentStatement
from queryard.engine.program import Program, ProgramRun
from queryard.engine.sealing.access import Access, Reach
from queryard.engine.staged.instance import open_instance
from queryard.engine.temp import TempSpace
from queryard.results.fan import Fan
from queryard.sql.catalog.carried import arrived
from queryard.sql.catalog.catalog import Catalog
from queryard.sql.catalog.contents import Contents
from queryard.sql.catalog.survey import Survey
from queryard.sql.statistics.store import cache_folder

from .exchange import NodeExchange
from .messages import NodeFacts, NodeSetting, Tables
from .node_tasks import NodeTasks, Tell
from .packing import Unreadable
from .peers import Peers

# What small queries reserve: instances of this size are kept ready.
WARM_BYTES = 128 << 20
# Of the memory of a node, without Ray's object store: the part of its instances.
POOL_SHARE = 0.9


class Workplace(Protocol):
    """What a node has beside its slots."""

    engine: Engine
    peers: Peers

    def facts(self) -> NodeFacts:
        """What the driver compares before it lets the node join."""

    def take(self, tables: Tables) -> None:
        """The catalog has changed."""

    def open_tasks(self, query: str, opening: Any, tell: Tell) -> NodeTasks:
        """Tasks of a staged query will run here."""

    def close(self) -> None: ...


OpenWorkplace = Callable[[NodeSetting], Workplace]


class EngineHere:
    """The engine of a node, as its local backend knows it."""

    def __init__(self, engine: NativeEngine, catalog: Catalog) -> None:
        self._engine = engine
        self._catalog = catalog
        self._reaches: dict[Access, Reach] = {}

    def reach(self, access: Access) -> Reach:
        return self._reaches.setdefault(access, Reach(access, self._catalog))

    def open(self, statement: SentStatement | Unreadable, output: Fan) -> Serving:
        if isinstance(statement, Unreadable):
            failed = ProgramRun(Program(lambda step: None, 1), output)
            failed.cancel(QueryFailed(statement.why))
            return failed
        return self._engine.open_sent(statement, self.reach(statement.access), output)


class DuckWorkplace(Workplace):
    """DuckDB at a node."""

    def __init__(self, setting: NodeSetting) -> None:
        import ray

        self.peers = Peers(ray, setting.store_bytes)
        self._setting = setting
        self._memory_bytes = setting.memory_bytes or own_bytes(setting, memory_budget(None))
        self._pool_bytes = int(self._memory_bytes * POOL_SHARE)
        self._space = TempSpace(setting.temp)
        self._contents = Contents()
        self._survey = Survey()
        self._catalog = Catalog(self._survey, lambda: self._contents)
        self._catalog.keeps_statistics = False
        self._native = NativeEngine(
            self._catalog, setting.slots, self._pool_bytes, self._space.path
        )
        self.engine = EngineHere(self._native, self._catalog)

    def _warm_up(self) -> None:
        """Do once what the first query would wait for: imports, and an instance of each kind."""
        importlib.import_module("queryard.sql.planner")
        with open_instance(WARM_BYTES, self._space.path) as instance:
            instance.sql("SELECT 1").to_arrow_table()
        self._native.pool.open_spare(WARM_BYTES, None)
        self._native.spares.keep([WARM_BYTES], _beside)

    def facts(self) -> NodeFacts:
        self._warm_up()
        return NodeFacts(
            os.getpid(),
            versions(),
            self._memory_bytes,
            self._pool_bytes,
            tuple(_differing(self._setting)),
            machine_rates(cache_folder() / "rates.json"),
        )

    def take(self, tables: Tables) -> None:
        self._contents = arrived(tables.tables, tables.databases, self._survey.metadata)
        self._catalog.refresh()

    def open_tasks(self, query: str, opening: Any, tell: Tell) -> NodeTasks:
        part = opening.part(self._pool_bytes)
        half = part.memory_bytes // 2
        exchange = NodeExchange(self.peers, self._setting.name, query, half, self._space.path)
        reach = self.engine.reach(opening.access)
        return NodeTasks(part, reach, self._native.pool, self._space.path, exchange, tell)

    def close(self) -> None:
        self._native.close()
        self._space.close()


def own_bytes(setting: NodeSetting, budget_bytes: int) -> int:
    """What queries of a node may use, of a budget from which Ray's object store is taken.

    >>> own_bytes(NodeSetting("n", 2, None, 3 << 30, None, {}), 16 << 30) >> 30
    13
    >>> own_bytes(NodeSetting("n", 2, None, 3 << 30, None, {}, 8 << 30), 16 << 30) >> 30
    8
    """
    left = max(budget_bytes - setting.store_bytes, budget_bytes // 4)
    return min(left, setting.ray_bytes) if setting.ray_bytes else left


def _beside(work: Callable[[], None]) -> None:
    """Run something on a thread of its own."""
    threading.Thread(target=work, name="queryard-spares", daemon=True).start()


def versions() -> dict[str, str]:
    """What must be the same at the driver and at a node: pickles and C structs depend on it."""
    python = ".".join(platform.python_version_tuple()[:2])
    arrow = importlib.metadata.version("pyarrow").partition(".")[0]
    return {
        "Python": python,
        "queryard": importlib.metadata.version("queryard"),
        "duckdb": importlib.metadata.version("duckdb"),
        "pyarrow": arrow,
    }


def _differing(setting: NodeSetting) -> list[str]:
    """The files that this node does not see as the driver does."""
    found = []
    for path, (size, changed_ns) in setting.files.items():
        try:
            seen = os.stat(path)
        except OSError as error:
            found.append(f"{path}: {error.strerror or error}")
            continue
        if (seen.st_size, seen.st_mtime_ns) != (size, changed_ns):
            found.append(f"{path}: has another size or time of change there")
    return found
