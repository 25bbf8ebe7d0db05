"""What a query has cost at all nodes together."""

from __future__ import annotations

from queryard.backends.protocol import QueryUsed, Usage


class UsageAtNodes:
    """The latest that each node has told of each query; its owner makes one call at a time.

    >>> known = UsageAtNodes()
    >>> _ = known.summed("a", QueryUsed("q", Usage(work_s=1.0)))
    >>> known.summed("b", QueryUsed("q", Usage(work_s=2.0))).usage.work_s
    3.0
    """

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Usage]] = {}

    def summed(self, node: str, used: QueryUsed) -> QueryUsed:
        by_node = self._known.setdefault(used.query, {})
        by_node[node] = used.usage
        if len(by_node) == 1:
            return used
        total = Usage()
        for usage in by_node.values():
            total = Usage(
                total.work_s + usage.work_s,
                total.held_s + usage.held_s,
                total.burst_s + usage.burst_s,
                total.slots + usage.slots,
                total.idling.plus(usage.idling),
            )
        return QueryUsed(used.query, total)

    def forget(self, query: str) -> None:
        self._known.pop(query, None)
