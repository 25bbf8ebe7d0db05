"""Ray in one process: actors are objects, and die when a test says so. Nothing is started.

What the backend uses of Ray is here, with the rules that matter: values are pickled on their way,
an object dies with the actor that put it, and calls of an actor that is dead fail.
"""

from __future__ import annotations

import contextlib
import pickle
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as LateError
from concurrent.futures import wait as wait_for
from typing import Any

import pytest

from queryard.backends.ray import members
from queryard.backends.ray.cluster import Cluster
from queryard.backends.ray.exchange import RayExchange


class RayError(Exception):
    pass


class RayActorError(RayError):
    pass


class ActorUnavailableError(RayActorError):
    pass


class ObjectLostError(RayError):
    pass


class GetTimeoutError(RayError, TimeoutError):
    pass


class ObjectRef:
    """Names an object; equal where it travelled."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectRef) and other.number == self.number

    def __hash__(self) -> int:
        return self.number


class _Actor:
    """An object with threads by group, and the objects that it has put."""

    def __init__(self, ray: FakeRay, node: str, make: Callable[[], Any], groups: Any) -> None:
        self.ray = ray
        self.node = node
        self.alive = True
        self.died_of = "the actor is dead"
        self.place = ""
        self.freeing: threading.Thread | None = None
        self.puts: set[int] = set()
        self.calls: set[Future[Any]] = set()
        self.pools = {name: self._pool(size) for name, size in {"": 1, **groups}.items()}
        self.target = self.pools[""].submit(make)

    def _pool(self, size: int) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(size)

    def call(self, group: str, name: str, given: bytes) -> Future[Any]:
        answer: Future[Any] = Future()
        self.calls.add(answer)
        answer.add_done_callback(self.calls.discard)
        if not self.alive:
            answer.set_exception(RayActorError(self.died_of))
            return answer
        self.pools[group].submit(self._run, name, given, answer)
        return answer

    def _run(self, name: str, given: bytes, answer: Future[Any]) -> None:
        try:
            found = getattr(self.target.result(), name)(*pickle.loads(given))
            told = pickle.dumps(found)
        except BaseException as error:
            _settle(answer, error)
        else:
            _settle(answer, None if self.alive else RayActorError(self.died_of), told)

    def die(self, reason: str) -> None:
        self.died_of = reason  # Ray names it to later calls, too
        self.alive = False
        for number in self.puts:
            self.ray.objects.pop(number, None)
        for answer in list(self.calls):
            _settle(answer, RayActorError(reason))
        for pool in self.pools.values():
            pool.shutdown(wait=False)
        # A process would be gone; what it held in this one is freed beside.
        self.freeing = threading.Thread(target=self._free, daemon=True)
        self.freeing.start()

    def _free(self) -> None:
        with contextlib.suppress(Exception):
            self.target.result().close(5.0)


def _settle(answer: Future[Any], error: BaseException | None, told: bytes = b"") -> None:
    try:
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(told)
    except Exception:
        pass  # it is settled already


class _Method:
    def __init__(self, actor: _Actor, name: str, group: str = "") -> None:
        self._actor, self._name, self._group = actor, name, group

    def options(self, concurrency_group: str) -> _Method:
        return _Method(self._actor, self._name, concurrency_group)

    def remote(self, *given: Any) -> Future[Any]:
        # As Ray does: an argument that is a reference arrives as its object.
        ray = self._actor.ray
        given = tuple(ray.get(each) if isinstance(each, ObjectRef) else each for each in given)
        return self._actor.call(self._group, self._name, pickle.dumps(given))


class ActorHandle:
    """Travels beside messages, as Ray's own does."""

    def __init__(self, actor: _Actor) -> None:
        self.actor = actor

    def __getattr__(self, name: str) -> _Method:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Method(self.actor, name)

    def __reduce__(self) -> Any:
        return _handle_of, (id(self.actor),)


_HANDLES: dict[int, ActorHandle] = {}


def _handle_of(number: int) -> ActorHandle:
    return _HANDLES[number]


class FakeCluster:
    """What the backend knows of a cluster."""

    def __init__(self, ray: FakeRay) -> None:
        self.ray = ray

    nodes = Cluster.nodes

    def driver_cpus(self) -> int:
        return self.ray.driver_cpus

    def pinned_to(self, node: Any) -> Any:
        return types.SimpleNamespace(node_id=node.id)

    def ask_for(self, nodes: int, cpus: int) -> None:
        self.ray.asked_for(nodes, cpus)

    def close(self) -> None:
        self.ray.shutdown()


@contextlib.contextmanager
def ray_faked(*cpus: int) -> Iterator[FakeRay]:
    """Sessions on Ray have nodes of this process."""
    fake = FakeRay(*cpus)
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "ray", fake)
        patched.setattr(Cluster, "join", lambda *given, **named: FakeCluster(fake))
        patched.setattr(RayExchange, "put", lambda self, rows: fake.put(rows, self.place))
        patched.setattr(members, "LOOK_S", 0.02)
        yield fake
    for actor in fake.actors:  # no test is to find threads of another
        if actor.freeing is not None:
            actor.freeing.join(10.0)


class FakeRay(types.ModuleType):
    """Stands for the module `ray` and for a cluster."""

    def __init__(self, *cpus: int) -> None:
        super().__init__("ray")
        self.ObjectRef = ObjectRef
        self.actor = types.SimpleNamespace(ActorHandle=ActorHandle)
        self.objects: dict[int, Any] = {}
        self.actors: list[_Actor] = []
        self.asked: list[tuple[int, int]] = []
        # Those of the node of this process.
        self.driver_cpus = 8
        self.exceptions = types.SimpleNamespace(
            RayError=RayError,
            RayActorError=RayActorError,
            ActorUnavailableError=ActorUnavailableError,
            ObjectLostError=ObjectLostError,
            GetTimeoutError=GetTimeoutError,
        )
        self._nodes: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()
        self._last = 0
        for number in cpus:
            self.add(number)

    # --- nodes --------------------------------------------------------------------------------

    def add(self, cpus: int, **labels: str) -> str:
        name = f"{len(self._nodes):08d}fake"
        self._nodes[name] = {
            "NodeID": name,
            "Alive": True,
            "NodeManagerAddress": "127.0.0.1",
            "NodeManagerHostname": f"machine-{len(self._nodes)}",
            "Labels": labels,
            "Resources": {"CPU": cpus, "object_store_memory": 1 << 20},
        }
        return name

    def nodes(self) -> list[dict[str, Any]]:
        return list(self._nodes.values())

    def lose(self, node: str) -> None:
        """A node dies, with its actors."""
        self._nodes[node]["Alive"] = False
        for actor in self.actors:
            if actor.node == node and actor.alive:
                actor.die("its node has died")

    def asked_for(self, nodes: int, cpus: int) -> None:
        """An autoscaler: nodes are added, and those go on which no actor lives."""
        self.asked.append((nodes, cpus))
        alive = [node for node in self._nodes.values() if node["Alive"]]
        for _ in range(nodes - len(alive)):
            self.add(cpus)

    def let_go_idle(self, nodes: int) -> None:
        """Its idle time is over: so many nodes stay."""
        busy = {actor.node for actor in self.actors if actor.alive}
        alive = [name for name, node in self._nodes.items() if node["Alive"]]
        for name in [name for name in alive if name not in busy][: max(0, len(alive) - nodes)]:
            self.lose(name)

    # --- actors -------------------------------------------------------------------------------

    def remote(self, **options: Any) -> Callable[[Any], Any]:
        def make(cls: Any) -> Any:
            def started(*given: Any) -> ActorHandle:
                packed = pickle.dumps(given)
                actor = _Actor(
                    self,
                    options["scheduling_strategy"].node_id,
                    lambda: cls(*pickle.loads(packed)),
                    options["concurrency_groups"],
                )
                actor.place = given[0].name
                self.actors.append(actor)
                handle = _HANDLES[id(actor)] = ActorHandle(actor)
                return handle

            return types.SimpleNamespace(remote=started)

        return make

    def kill(self, handle: ActorHandle, no_restart: bool = True) -> None:
        if handle.actor.alive:
            handle.actor.die("it was killed")

    # --- objects ------------------------------------------------------------------------------

    def put(self, value: Any, place: str = "") -> ObjectRef:
        """Keep a value; it is lost with the actor of its place."""
        with self._lock:
            self._last += 1
            number = self._last
        for actor in self.actors:
            if actor.place == place:
                if not actor.alive:
                    return ObjectRef(number)
                actor.puts.add(number)
        self.objects[number] = value
        return ObjectRef(number)

    def get(self, asked: Any, timeout: float | None = None) -> Any:
        if isinstance(asked, ObjectRef):
            try:
                return self.objects[asked.number]
            except KeyError:
                raise ObjectLostError(f"object {asked.number}") from None
        try:
            return pickle.loads(asked.result(timeout))
        except LateError:
            raise GetTimeoutError("too late") from None

    def wait(self, refs: Sequence[Any], num_returns: int, timeout: float) -> Any:
        calls = [ref for ref in refs if isinstance(ref, Future)]
        if len(calls) == len(refs):
            wait_for(calls, timeout, "FIRST_COMPLETED")
        done = [ref for ref in refs if not isinstance(ref, Future) or ref.done()][:num_returns]
        return done, [ref for ref in refs if ref not in done]

    # --- the module ---------------------------------------------------------------------------

    def is_initialized(self) -> bool:
        return True

    def shutdown(self) -> None:
        for actor in self.actors:
            if actor.alive:
                actor.die("shut down")
