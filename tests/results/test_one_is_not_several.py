"""What there is one of is said in the singular."""

from __future__ import annotations

import pyarrow as pa

from queryard.core.speedup import PERFECT
from queryard.estimate.expected import Expected, around
from queryard.estimate.spreading import Crowd, Member, compared
from queryard.results.estimate import Estimate
from queryard.results.online import exact_answer


def test_one_row_one_slot_and_one_node_are_told_as_one():
    one = Expected(1.0, 1.0, 1.0)
    found = Estimate("", "native", "plan", one, 1e6, around(2.0, 0.3), None, 1, 1, around(2.0, 0.3))
    assert found.answer() == "reads 1.0 MB, gives 1 row"
    assert "1 row<" in found._repr_html_()
    answer = exact_answer(pa.table({"n": [1]}), ["BIGINT"], 0.5)
    assert repr(answer) == "<OnlineAnswer 1 row, exact, 0.50 s>"
    crowd = Crowd((Member(1, 1.0, 1e9),))
    assert "on 1 slot of 1 node, " in compared(crowd, 2.0, PERFECT, 1e6, 1.0).reason
