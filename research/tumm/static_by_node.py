"""Fixed map and reduce slots that differ from node to node, as Heter1 has them.

The `static` part scales one ratio to the slots of every node, so that three slots cannot be 1:2 on
one node and 2:1 on another. A kernel that composes its policy with this split can do it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from queryard.core.nodes import NodeState
from queryard.core.state import Settings, State
from queryard.metrics import Summary, summarise
from queryard.policies.splits.static import Static
from queryard.sim import SimResult, build
from queryard.sim.run import run_to_end
from research.outcome import RunOptions
from research.trials import Setting, kernel_with, over_seeds

from .clusters import Groups, group_nodes
from .shared import H_TUMM, TUMM

Ratios = Mapping[str, tuple[int, int]]
COMPARED = ("FIFO", "TuMM", "H_TuMM")


class StaticByNode(Static):
    """Run at most so many maps and so many reduces at once on each node by its id. O(1)."""

    name = "static-by-node"
    citation = "TuMM Table 3"

    def __init__(self, ratios: Ratios) -> None:
        super().__init__()
        self._splits = {node: Static(maps, reduces) for node, (maps, reduces) in ratios.items()}

    def serve(self, node: NodeState, state: State) -> tuple[int, ...]:
        return self._splits[node.spec.id].serve(node, state)


def simulate_fixed(setting: Setting, groups: Groups, order: str, seed: int) -> SimResult:
    """A setting under an order, with the slots that Table 3 gives each node."""
    ratios = {name: (group.maps, group.reduces) for name, group in group_nodes(groups).items()}
    driver = build(
        setting.workload,
        setting.nodes,
        {"order": order, "slots": "static"},
        conditions=setting.conditions,
        estimates=setting.estimates,
        seed=seed,
        settings=Settings(slow_start=setting.slow_start, seed=seed),
        kernel=kernel_with(lambda policy: replace(policy, split=StaticByNode(ratios))),
    )
    run = run_to_end(driver)
    setting.check_ended(run, f"{order} with fixed slots")
    return run


def compare(
    options: RunOptions,
    title: str,
    make: Callable[[int], Setting],
    groups: Groups,
    order: str = "fifo",
) -> dict[str, list[Summary]]:
    """Fixed slots, TuMM and H_TuMM under one order; lists are in the order of seeds."""
    profiles = {name: {"order": order, **of} for name, of in {**TUMM, **H_TUMM}.items()}
    adaptive = over_seeds(options, title, make, profiles)
    fixed = []
    for seed in range(options.seeds):
        setting = make(seed)
        bins = {arrival.query.id: arrival.size_bin for arrival in setting.workload.arrivals}
        journal = simulate_fixed(setting, groups, order, seed).journal
        fixed.append(summarise(journal, size_bins=bins))
    return {"FIFO": fixed, **adaptive}
