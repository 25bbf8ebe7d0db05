"""Where queries run: the table `[backend]` of a file, and the option `backend` of `connect`.

[backend]
kind = "ray"                # or "local": this process, which is the default
address = "auto"            # the cluster of this machine, the address of a head, or "local"
slots = 8                   # of each node; of this process a number, or [least, most]
memory = "32 GB"            # of each node
nodes = [2, 16]             # the least and the most that take part
autoscaler = true           # whether nodes are asked of Ray's autoscaler
namespace = "queryard"      # Ray's, in which the processes at nodes are listed
store = "2 GB"              # Ray's object store of a cluster that is started here
temp = "/scratch"           # where nodes have their temporary files
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from queryard.core.amounts import some_bytes
from queryard.core.errors import QueryardError, unknown_name

LOCAL, RAY = "local", "ray"
KINDS = (LOCAL, RAY)
# Ray's own least.
LEAST_STORE_BYTES = 75 << 20


class InvalidBackend(QueryardError):
    """A setting of a backend that cannot be meant; `key` is its name in the table."""

    def __init__(self, problem: str, key: str = "") -> None:
        super().__init__(problem)
        self.key = key


@dataclass(frozen=True, slots=True)
class BackendSetting:
    """What is said of the place where queries run; None where the usual is wanted."""

    kind: str = LOCAL
    address: str | None = None
    slots: int | tuple[int, int] | None = None
    memory: int | str | None = None
    nodes: tuple[int, int] | None = None
    autoscaler: bool = False
    namespace: str | None = None
    store: int | None = None
    temp: str | None = None

    @property
    def is_cluster(self) -> bool:
        """Whether it is another place than this process."""
        return self.kind == RAY


def read_backend(given: object, address: object = None) -> BackendSetting:
    """A backend by its name, or by a table with the keys above; `address` counts first.

    >>> read_backend({"kind": "ray", "nodes": [1, 4]}).nodes
    (1, 4)
    >>> read_backend({"kind": "ray", "adress": "auto"})
    Traceback (most recent call last):
    ...
    queryard.live.backend_setting.InvalidBackend: backend: unknown key 'adress'; did you mean ...
    """
    if isinstance(given, BackendSetting):
        found = given
    elif isinstance(given, Mapping):
        found = _from_table(given)
    else:
        found = BackendSetting(_kind(given, "backend"))
    if address is not None:
        if not found.is_cluster:
            raise InvalidBackend(
                f"address: {address!r} is that of a cluster; say backend='ray' as well", "address"
            )
        found = replace(found, address=_address(address, "address"))
    _check_together(found)
    return found


def _from_table(given: Mapping[Any, object]) -> BackendSetting:
    for key in given:
        if key not in KEYS:
            raise InvalidBackend(f"backend: {unknown_name('key', str(key), KEYS)}", str(key))
    read: dict[str, Any] = {
        key: KEYS[key](value, f"backend: {key}") for key, value in given.items()
    }
    found = BackendSetting(**read)
    for key in given:
        if key in OF_CLUSTERS and not found.is_cluster:
            raise InvalidBackend(f'backend: {key}: is for a cluster; say kind = "ray" as well', key)
    return found


def _check_together(found: BackendSetting) -> None:
    """Refuse settings of which each can be meant, but not beside the others."""
    if found.autoscaler and found.nodes is None:
        raise InvalidBackend(
            "backend: autoscaler: needs the least and the most nodes, as nodes = [1, 8]",
            "autoscaler",
        )
    is_started_here = found.address in (None, "local")
    if found.autoscaler and is_started_here:
        raise InvalidBackend(
            "backend: autoscaler: a cluster that is started on this machine has none; name the "
            'address of a cluster that has, as address = "auto"',
            "autoscaler",
        )
    if found.is_cluster and isinstance(found.slots, tuple):
        raise InvalidBackend(
            f"backend: slots: {found.slots} is a range, and the slots of a Ray cluster are those "
            "of its nodes; give one number, of slots per node, and a range of nodes, if any",
            "slots",
        )
    if found.store is not None and not is_started_here:
        raise InvalidBackend(
            f"backend: store: is for a cluster that is started on this machine, and {found.address}"
            " has one already; leave it out (`ray start --object-store-memory` sets it there)",
            "store",
        )


# --- values ----------------------------------------------------------------------------------


def _kind(value: object, where: str) -> str:
    if value not in KINDS:
        what = unknown_name("backend", str(value), KINDS)
        raise InvalidBackend(what if where == "backend" else f"{where}: {what}", "kind")
    return str(value)


def _address(value: object, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidBackend(
            f"{where}: must be 'local', 'auto' or the address of a Ray cluster, got {value!r}",
            "address",
        )
    return value


def _count(value: object, where: str, what: str, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidBackend(f"{where}: must be {what}, got {value!r}", key)
    return value


def _range(value: object, where: str, what: str, key: str) -> tuple[int, int]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise InvalidBackend(f"{where}: must be {what}, got {value!r}", key)
    least, most = (_count(number, where, what, key) for number in value)
    if least > most:
        raise InvalidBackend(f"{where}: the least, {least}, is above the most, {most}", key)
    return least, most


def _slots(value: object, where: str) -> int | tuple[int, int]:
    what = "a whole number, at least 1, or two, as [1, 8]"
    if isinstance(value, list | tuple):
        return _range(value, where, what, "slots")
    return _count(value, where, what, "slots")


def _nodes(value: object, where: str) -> tuple[int, int]:
    return _range(value, where, "the least and the most nodes, as [1, 8]", "nodes")


def _bytes(key: str, least: int = 1) -> Callable[[object, str], int]:
    def read(value: object, where: str) -> int:
        try:
            found = int(some_bytes(value, where))
        except QueryardError as error:
            raise InvalidBackend(str(error), key) from None
        if found < least:
            raise InvalidBackend(f"{where}: must be at least {least >> 20} MB, got {value!r}", key)
        return found

    return read


def _bool(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidBackend(f"{where}: must be true or false, got {value!r}", "autoscaler")
    return value


def _text(key: str) -> Callable[[object, str], str]:
    def read(value: object, where: str) -> str:
        if not isinstance(value, str) or not value:
            raise InvalidBackend(f"{where}: must be a text, got {value!r}", key)
        return value

    return read


KEYS: Mapping[str, Callable[[object, str], Any]] = {
    "kind": _kind,
    "address": _address,
    "slots": _slots,
    "memory": _bytes("memory"),
    "nodes": _nodes,
    "autoscaler": _bool,
    "namespace": _text("namespace"),
    "store": _bytes("store", LEAST_STORE_BYTES),
    "temp": _text("temp"),
}
OF_CLUSTERS = frozenset({"address", "nodes", "autoscaler", "namespace", "store"})
