"""The Ray cluster that this process is part of: one that is there, or one of its own.

A cluster of its own listens on 127.0.0.1 only, keeps its files in a folder of its own and ends with
the session. A process can be part of one cluster at a time.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from queryard.core.errors import QueryardError
from queryard.engine.temp import TempSpace, own_root

from .importing import import_on_loopback, import_ray

LOCAL, AUTO = "local", "auto"
# Of Ray's object store in a cluster of one's own, unless it is said.
STORE_BYTES = 512 << 20


# How long a cluster may take to answer at its address. Ray tries for minutes, deaf to signals.
ANSWER_S = 5.0

# Ray gives way to every other program: its workers have the lowest priority but for a few. Queries
# have the priority of the program that asks them, as in a process of its own.
SYSTEM_CONFIG = {"worker_niceness": 0}


class RayNode(NamedTuple):
    """A node as Ray knows it; `id` is another one for every start of it."""

    id: str
    address: str
    cpus: int
    store_bytes: int
    hostname: str = ""
    labels: Mapping[str, str] = MappingProxyType({})
    memory_bytes: int = 0
    """What Ray gives to processes there, beside its object store; 0 if it does not say."""


class Cluster:
    """Ray, joined; `close` leaves it as it was found."""

    def __init__(self, ray: Any, ends: contextlib.ExitStack) -> None:
        self.ray = ray
        self._ends = ends

    @classmethod
    def join(
        cls,
        address: str = LOCAL,
        cpus: int = 1,
        store_bytes: int = STORE_BYTES,
        namespace: str | None = None,
    ) -> Cluster:
        """Join the cluster at an address; "auto" finds the one that runs on this machine.

        With "local" a cluster is started here, of one node with so many `cpus` and an object store
        of so many bytes. `namespace` is Ray's, in which the processes at nodes are listed.
        """
        if address.startswith("ray://"):
            raise QueryardError(
                f"address={address!r}: Ray Client is not supported; run the program inside the "
                "cluster with address='auto', or use a server there (`queryard serve`)"
            )
        with contextlib.ExitStack() as ends:
            if address == LOCAL:
                ray = _started(cpus, store_bytes, namespace, ends)
            else:
                ray = _joined(address, namespace, ends)
            return cls(ray, ends.pop_all())

    def nodes(self) -> dict[str, RayNode]:
        """The nodes that live now, by their ids; those without CPUs are left out."""
        found = {}
        for node in self.ray.nodes():
            resources = node["Resources"]
            cpus = int(resources.get("CPU", 0))
            if node["Alive"] and cpus:
                store = int(resources.get("object_store_memory", 0))
                name = node["NodeID"]
                found[name] = RayNode(
                    name,
                    node["NodeManagerAddress"],
                    cpus,
                    store,
                    node.get("NodeManagerHostname", ""),
                    node.get("Labels") or {},
                    int(resources.get("memory", 0)),
                )
        return found

    def driver_cpus(self) -> int:
        """How many CPUs the node of this process has for Ray; a head that runs nothing has none."""
        here = self.ray.get_runtime_context().get_node_id()
        found = [node["Resources"] for node in self.ray.nodes() if node["NodeID"] == here]
        return int(found[0].get("CPU", 0)) if found else 0

    def pinned_to(self, node: RayNode) -> Any:
        """The scheduling strategy of an actor that runs at a node and nowhere else."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(node.id, soft=False)

    def ask_for(self, nodes: int, cpus: int) -> None:
        """Let Ray's autoscaler have so many nodes ready, of so many CPUs each; none: as it likes.

        It starts what is missing. A node that is more than asked for goes once nothing has run
        there for a while.
        """
        from ray.autoscaler.sdk import request_resources

        request_resources(bundles=[{"CPU": cpus}] * nodes)

    def close(self) -> None:
        self._ends.close()


def _started(cpus: int, store_bytes: int, namespace: str | None, ends: contextlib.ExitStack) -> Any:
    ray = import_on_loopback()
    _refuse_second(ray, "start one of its own")
    # What a killed program has left there goes as well.
    space = TempSpace(own_root(_root()))
    ends.callback(space.close)
    ends.callback(_end_children, space.path)
    ends.callback(ray.shutdown)
    try:
        ray.init(
            address="local",
            num_cpus=cpus,
            namespace=namespace,
            object_store_memory=store_bytes,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="ERROR",
            configure_logging=False,
            _node_ip_address="127.0.0.1",
            _temp_dir=str(space.path),
            _system_config=dict(SYSTEM_CONFIG),  # Ray adds to it
        )
    except Exception as error:
        raise QueryardError(
            f"address='local': Ray could not be started on this machine, with {cpus} CPUs (slots) "
            f"and an object store of {store_bytes >> 20} MB (store): {_first_line(error)}; give "
            "less of them, or name the address of a cluster that is there"
        ) from error
    return ray


def _end_children(folder: Path) -> None:
    """End what Ray has started with a folder, and has not ended: of a start that failed halfway."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            is_ours = os.fsencode(folder) in (entry / "cmdline").read_bytes()
            if parent == os.getpid() and is_ours:
                os.kill(int(entry.name), signal.SIGKILL)
                os.waitpid(int(entry.name), 0)


def _root() -> Path:
    """Where clusters of this user's own have their files.

    Paths of sockets are short, and the usual place for temporary files may be deep.
    """
    short = Path("/tmp")
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return (short if short.is_dir() else Path(tempfile.gettempdir())) / f"qyray-{user}"


def _joined(address: str, namespace: str | None, ends: contextlib.ExitStack) -> Any:
    ray = import_ray()
    if ray.is_initialized():
        if address not in (AUTO, ray.get_runtime_context().gcs_address):
            _refuse_second(ray, f"join {address}")
        return ray  # joined by the program, and left to it
    try:
        _check_answers(ray, address)
        ray.init(
            address=address,
            namespace=namespace,
            log_to_driver=False,
            logging_level="ERROR",
            configure_logging=False,
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise QueryardError(
            f"address={address!r}: no Ray cluster can be joined there: {_first_line(error)}; start "
            "one with `ray start --head`, name the address of another, or use address='local'"
        ) from None
    ends.callback(ray.shutdown)
    return ray


def _check_answers(ray: Any, address: str) -> None:
    """Raise if nothing listens at an address, where it is one of a host and a port."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        return  # Ray says what is wrong with it, or finds the cluster itself
    host = host.strip("[]")
    # To Ray this machine is one address, also where it is called by another name.
    is_here = host in ("localhost", "127.0.0.1", "::1")
    hosts = [host, ray.util.get_node_ip_address()] if is_here else [host]
    for each in hosts:
        try:
            socket.create_connection((each, int(port)), ANSWER_S).close()
        except (OSError, OverflowError) as error:
            failed = error
        else:
            return
    raise ConnectionError(f"nothing answers at {address} ({failed})")


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _refuse_second(ray: Any, what: str) -> None:
    if ray.is_initialized():
        raise QueryardError(
            f"backend ray: this process is part of a Ray cluster already, and cannot {what}; close "
            "the other session, call ray.shutdown(), or use address='auto'"
        )
