"""Which nodes of the cluster take part: they join, are refused, fall silent, are lost."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from queryard.core.errors import QueryardError

from .actor import GROUPS, NodeActor
from .cluster import Cluster, RayNode
from .described import described
from .link import Gone, Hear, Link
from .messages import NodeFacts, NodeSetting
from .workplace import OpenWorkplace, versions

# How often the nodes of the cluster are looked at.
LOOK_S = 0.5
# A node that has been silent for so long is given up, without waiting for Ray's word, which takes
# between a quarter of a minute and a minute. It may join again as another node.
GIVE_UP_S = 20.0
# If the nodes are looked at so much later than they should be, this process was stopped for a while
# (its machine, too), and what nodes have said since is still to be heard.
PAUSED_S = 3.0
# How long a node may take until it has joined.
JOIN_S = 60.0
# How long the others are waited for once the first node has joined: they join later, as nodes do
# that come later.
OTHERS_S = 2.5
# How long the autoscaler of a cluster may take to start the first node.
BOOT_S = 300.0
# A node whose process dies so often within QUICK_S of joining is refused.
MOST_DEATHS = 3
# A node that was refused is asked again after so long: what was wrong may have passed, such as
# other work in Ray that held its CPUs, or a file that was being written.
REFUSED_S = 60.0
# How long a node that is let go may take to end its process.
LET_GO_S = 5.0
QUICK_S = 2.0


@dataclass(frozen=True, slots=True)
class MemberSetting:
    """What is asked of every node.

    `slots` and `memory_bytes` are None for all CPUs that Ray says it has, and a share of its
    memory. `files` are those that it must see as the driver does. At most so many nodes take part
    as the larger number of `nodes` says. With `autoscaler` they are asked of Ray's, the smaller
    number at first.
    """

    slots: int | None = None
    memory_bytes: int | None = None
    temp: str | None = None
    files: Callable[[], Mapping[str, tuple[int, int]]] = dict
    nodes: tuple[int, int] | None = None
    autoscaler: bool = False


class Members:
    """Keeps a link to every node that takes part; `joined` is told of each new one."""

    def __init__(
        self,
        cluster: Cluster,
        setting: MemberSetting,
        open_workplace: OpenWorkplace,
        joined: Callable[[Link], None],
        hear: Hear,
        gone: Gone,
        silent: Callable[[Link, bool], None],
    ) -> None:
        """`silent` is told of a node that does not answer, and when it answers again."""
        self._cluster = cluster
        self._setting = setting
        self._open_workplace = open_workplace
        self._joined = joined
        self._hear = hear
        self._gone = gone
        self._silent = silent
        self._lock = threading.Lock()
        self._links: dict[str, Link] = {}  # by Ray's id of the node
        self._joining: set[str] = set()
        self._incarnations: dict[str, int] = {}
        self._quick_deaths: Counter[str] = Counter()
        # Out of use, by name; their processes stay, unless the autoscaler is to have the nodes.
        self._released: dict[str, Link] = {}
        # How many nodes are to be in use at most, and how many the autoscaler was last asked for.
        self._wanted = None if setting.nodes is None else setting.nodes[1]
        self._to_ask = None if setting.nodes is None else setting.nodes[0]
        self._asked: int | None = None
        self.refused: dict[str, str] = {}
        """Nodes that do not take part, by Ray's id, with the reason."""
        self._refused_s: dict[str, float] = {}
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="queryard-nodes", daemon=True)

    def start(self) -> None:
        """Let all nodes join that are there; returns when each has joined or was refused, or some
        have and the others take long.
        """
        deadline_s = time.monotonic() + JOIN_S
        is_first = True
        self._look()
        while self._joining and time.monotonic() < deadline_s:
            self._closed.wait(0.02)
            if is_first and self.links():
                is_first = False
                deadline_s = min(deadline_s, time.monotonic() + OTHERS_S)
            if not self._joining and not self.links():
                self._look()  # once more, where a process has died
        if self._setting.autoscaler:
            deadline_s = time.monotonic() + BOOT_S
            while not self.links() and time.monotonic() < deadline_s:
                self._closed.wait(LOOK_S)
                self._look()
        self._thread.start()

    def links(self) -> tuple[Link, ...]:
        with self._lock:
            return tuple(self._links.values())

    def has(self, link: Link) -> bool:
        """Whether a link is to a node that takes part."""
        return self._links.get(link.ray_node) is link

    # --- how many are in use ------------------------------------------------------------------

    def want(self, nodes: int) -> list[Link]:
        """So many nodes are to be in use; those that are so again, of which were not.

        Others join when they are there.
        """
        with self._lock:
            self._wanted = self._to_ask = nodes
            missing = max(0, nodes - len(self._links) + len(self._released))
            again = [self._released.pop(name) for name in list(self._released)[:missing]]
        return again

    def release(self, link: Link) -> None:
        """A node is idle, and out of use."""
        with self._lock:
            self._released[link.name] = link
            in_use = len(self._links) - len(self._released)
            self._wanted = in_use if self._wanted is None else min(self._wanted, in_use)

    def _ask_autoscaler(self, nodes: Mapping[str, RayNode]) -> None:
        """Ask for as many nodes as are wanted, and let go those that are not."""
        with self._lock:
            wanted, idle = self._to_ask, list(self._released.values())
        if wanted is not None and wanted != self._asked:
            cpus = max((node.cpus for node in nodes.values()), default=self._setting.slots or 1)
            self._cluster.ask_for(wanted, cpus)
            self._asked = wanted
        for link in idle:
            if self._holds_something(link):
                continue
            with self._lock:
                is_out = self._released.pop(link.name, None) is not None
                if is_out and self._links.get(link.ray_node) is link:
                    del self._links[link.ray_node]
            if is_out:
                link.close(LET_GO_S)
                self._gone(link, "it was let go")

    def _holds_something(self, link: Link) -> bool:
        """Whether rows lie at a node that may still be read; also if it does not answer."""
        ray = self._cluster.ray
        try:
            report = ray.get(link.actor.report.remote(), timeout=LET_GO_S)
        except (ray.exceptions.RayError, TimeoutError):
            return True  # it is silent: its end is heard of otherwise
        return bool(report.objects or report.queries)

    # --- looking ------------------------------------------------------------------------------

    def _watch(self) -> None:
        began_s = time.monotonic()
        while not self._closed.wait(LOOK_S):
            if time.monotonic() - began_s > LOOK_S + PAUSED_S:
                for link in self.links():
                    link.wait_anew()
            # If Ray's head does not answer, its own clients will say so.
            with contextlib.suppress(Exception):
                self._look()
            began_s = time.monotonic()

    def _look(self) -> None:
        nodes = self._cluster.nodes()
        for link in self.links():
            if link.ray_node not in nodes:
                link.give_up("Ray says that its node is dead")
            elif link.silent_s > GIVE_UP_S:
                link.give_up(f"it has not answered for {GIVE_UP_S:g} s")
            elif (is_suspect := link.is_suspect) != link.told_suspect:
                self._silent(link, is_suspect)
        if self._setting.autoscaler:
            self._ask_autoscaler(nodes)
        with self._lock:
            known = self._links.keys() | self._joining | self._still_refused(nodes)
            new = [node for name, node in nodes.items() if name not in known]
            new.sort(key=lambda node: node.id in self.refused)
            if self._wanted is not None:
                in_use = len(self._links) - len(self._released) + len(self._joining)
                new = new[: max(0, self._wanted - in_use)]
            self._joining.update(node.id for node in new)
        for node in new:
            threading.Thread(
                target=self._let_join,
                args=(node,),
                name=f"queryard-join-{node.id[:8]}",
                daemon=True,
            ).start()

    def _still_refused(self, nodes: Mapping[str, RayNode]) -> set[str]:
        """The nodes that are not to be asked yet; those that are gone are forgotten."""
        for name in self.refused.keys() - nodes.keys():
            del self.refused[name], self._refused_s[name]
        until_s = time.monotonic() - REFUSED_S
        return {name for name, refused_s in self._refused_s.items() if refused_s > until_s}

    def lost(self, link: Link, was_busy: bool) -> None:
        """A link is dead; its node may join again under another name.

        If it was busy, its work may be to blame, and not the node.
        """
        with self._lock:
            self._released.pop(link.name, None)
            if self._links.get(link.ray_node) is not link:
                return  # it was let go
            del self._links[link.ray_node]
            if link.lived_s >= QUICK_S:
                del self._quick_deaths[link.ray_node]
            elif not was_busy:
                self._quick_deaths[link.ray_node] += 1

    # --- joining ------------------------------------------------------------------------------

    def _let_join(self, node: RayNode) -> None:
        try:
            link = self._linked(node)
        except Exception as error:
            self._died_joining(node, _told(error))
            return
        if isinstance(link, str):
            self._refuse(node, link)
            return
        with self._lock:
            closed = self._closed.is_set()
            self._joining.discard(node.id)
            if not closed:
                self._links[node.id] = link
                self.refused.pop(node.id, None)
                self._refused_s.pop(node.id, None)
        if closed:
            link.kill()
            return
        self._joined(link)
        link.start()

    def _linked(self, node: RayNode) -> Link | str:
        """A link to a new process there, or why there is none."""
        ray = self._cluster.ray
        with self._lock:
            # By what is shown of its id: several nodes may begin alike.
            short = node.id[:8]
            number = self._incarnations[short] = self._incarnations.get(short, 0) + 1
        if self._quick_deaths[node.id] >= MOST_DEATHS:
            return f"its process has died {MOST_DEATHS} times soon after it had joined"
        slots = min(self._setting.slots or node.cpus, node.cpus)
        name = f"{short}-{number}"
        setting = NodeSetting(
            name,
            slots,
            self._setting.memory_bytes,
            node.store_bytes,
            self._setting.temp,
            self._setting.files(),
            node.memory_bytes,
        )
        actor = self._actor(node, slots).remote(setting, self._open_workplace)
        try:
            facts: NodeFacts = ray.get(actor.facts.remote(), timeout=JOIN_S)
        except ray.exceptions.GetTimeoutError:
            ray.kill(actor)
            return (
                f"its process was not ready within {JOIN_S:g} s; other work in Ray may hold the "
                f"{slots} CPUs that it needs"
            )
        if (reason := _difference(facts)) is not None:
            ray.kill(actor)
            return reason
        spec = described(name, slots, node, facts)
        return Link(ray, actor, spec, node.id, node.address, facts, self._hear, self._gone)

    def _actor(self, node: RayNode, slots: int) -> Any:
        """A process at a node; if it dies, all that it held is gone."""
        return self._cluster.ray.remote(
            num_cpus=slots,
            max_restarts=0,
            max_task_retries=0,
            concurrency_groups=dict(GROUPS),
            scheduling_strategy=self._cluster.pinned_to(node),
        )(NodeActor)

    def _died_joining(self, node: RayNode, reason: str) -> None:
        """Its process could not be started, or died before it had joined."""
        with self._lock:
            self._quick_deaths[node.id] += 1
            again = self._quick_deaths[node.id] < MOST_DEATHS
            if again:
                self._joining.discard(node.id)
        if not again:
            self._refuse(node, f"its process could not be started: {reason}")

    def _refuse(self, node: RayNode, reason: str) -> None:
        with self._lock:
            self.refused[node.id] = f"node {node.id[:8]} at {node.address}: {reason}"
            self._refused_s[node.id] = time.monotonic()
            self._quick_deaths.pop(node.id, None)
            self._joining.discard(node.id)

    # --- the end ------------------------------------------------------------------------------

    def close(self, timeout_s: float) -> bool:
        """End the processes at all nodes; False if work goes on for longer than that."""
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join(5.0)
        if self._asked is not None:
            with contextlib.suppress(Exception):  # the cluster may be gone
                self._cluster.ask_for(0, 0)
        with self._lock:
            links, self._links = tuple(self._links.values()), {}
        stopped: list[bool] = []
        closing = [
            threading.Thread(
                target=lambda link=link: stopped.append(link.close(timeout_s)), daemon=True
            )
            for link in links
        ]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join(timeout_s + 5.0)
        return len(stopped) == len(closing) and all(stopped)


def _told(error: BaseException) -> str:
    """What Ray says of a process that has not started, in one line.

    Where starting has raised an error there, Ray tells its trace; its last line is the error.

    >>> _told(ValueError("The actor died because of an error raised in its creation task, a()\\n"
    ...     "  File b\\nqueryard.core.errors.QueryardError: c: no such folder; name another"))
    'c: no such folder; name another'
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    if "creation task" not in lines[0]:
        return lines[0]
    return lines[-1].removeprefix(f"{QueryardError.__module__}.{QueryardError.__name__}: ")


def _difference(facts: NodeFacts) -> str | None:
    """Why a node cannot take part; None if it can."""
    mine = versions()
    other = [
        f"{name} {facts.versions.get(name, '?')} in place of {version}"
        for name, version in mine.items()
        if facts.versions.get(name) != version
    ]
    if other:
        return f"it has {', '.join(other)}; install the same versions on every node"
    if facts.differing:
        shown = "; ".join(facts.differing[:3])
        more = len(facts.differing) - 3
        rest = f" and {more} more" if more > 0 else ""
        return f"it does not see the files of the catalog as the driver does: {shown}{rest}"
    return None
