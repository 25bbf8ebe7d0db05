"""A session tells which policy is in force, since when, by what it was chosen and why."""

from __future__ import annotations

import queryard
from queryard.core.events import PolicyChosen
from queryard.history import HistoryReader


def test_the_policy_in_force_is_told_with_its_reason(tmp_path):
    file = tmp_path / "history.sqlite"
    with queryard.connect(tables={}, slots=1, profile="tls", history=file) as session:
        began = session.policy_state()
        assert (began.name, began.since_s, began.by, began.portfolio) == ("tls", 0.0, "start", None)
        session.use_profile("fair", by="token night", reason="the night shift shares evenly")
        now = session.policy_state()
        assert (now.name, now.by) == ("fair", "token night")
        assert now.since_s > 0.0
        session.use_profile({"order": "fifo"})
        assert session.policy_state().name == "of your own"
        assert session.chosen_profile == {"order": "fifo"}
        latest, first = session.policy_changes()
        assert (latest.before, latest.after, latest.by) == ("fair", "of your own", "operator")
        assert (first.before, first.after) == ("tls", "fair")
        assert session.policy_changes(1) == (latest,)
        assert session.policy_decisions() == []
    with HistoryReader(file) as reader:
        journal = reader.journal(reader.session(None).session)
    events = [event for step in journal.steps for event in step.events]
    chosen = next(event for event in events if isinstance(event, PolicyChosen))
    assert (chosen.by, chosen.reason) == ("token night", "the night shift shares evenly")
