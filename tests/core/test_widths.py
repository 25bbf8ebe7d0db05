"""How many slots divisible work can use may change on the way, also to none."""

from __future__ import annotations

import pytest
from by_hand import Hand, divisible, granted, launched, maps, of_type, revoked

from queryard.core import events as ev
from queryard.core.commands import Command, Finish, Grant, Revoke
from queryard.core.model import Node
from queryard.policies import catalogue, resolve_profile
from queryard.sim import forecast


def resize(hand: Hand, job: str, width: int) -> list[Command]:
    return hand.do(ev.WidthChanged(hand.now, job, width))


def test_what_exceeds_the_width_is_revoked_and_goes_to_others():
    hand = Hand("fifo", "1x4")
    hand.submit("slow", divisible("d", 4))
    hand.submit("next", maps("j", 5))
    commands = resize(hand.wait(1.0), "slow/d", 1)
    assert commands == [Revoke("slow/d", "n0", 3)]
    assert launched(hand.returned(commands)) == ["next/j:m0", "next/j:m1", "next/j:m2"]
    assert hand.slots("slow") == 1
    hand.check_replay()


def test_a_query_that_can_use_nothing_is_held_with_its_memory():
    hand = Hand("fifo", [Node("n0", 2, 100.0)])
    hand.submit("slow", divisible("d", 2), memory_bytes=60.0)
    hand.returned(resize(hand.wait(1.0), "slow/d", 0))
    assert hand.slots("slow") == 0
    assert hand.state.reserved_bytes == 60.0
    assert hand.state.queries["slow"].stage == "running"
    assert str(hand.scheduler.why("slow")) == "slow is running: job d can use no slots now"
    assert hand.wait(9.0).submit("big", maps("j", 1), memory_bytes=60.0) == []
    assert launched(hand.submit("small", maps("j", 1), memory_bytes=0.0)) == ["small/j:m0"]
    assert granted(resize(hand, "slow/d", 2)) == {"slow/d": 1}
    assert granted(hand.finish("small/j:m0")) == {"slow/d": 1}
    hand.check_replay()


def test_it_may_become_wider_than_it_was_submitted():
    hand = Hand("fifo", "1x4")
    hand.submit("q", divisible("d", 1))
    assert granted(resize(hand, "q/d", 9)) == {"q/d": 3}, "what there is"
    assert granted(hand.join(Node("more", 8, host="one"))) == {"q/d": 5}, "what it can use"


def test_a_job_wider_than_the_cluster_uses_what_is_there():
    hand = Hand("fifo", "2x2")
    assert granted(hand.submit("q", divisible("d", 1000))) == {"q/d": 4}
    assert of_type(Finish, hand.lease_over("q/d")) == [Finish("q")]


def test_slots_on_their_way_back_are_not_asked_for_again():
    hand = Hand("fifo", "1x4")
    hand.submit("q", divisible("d", 4))
    first = resize(hand, "q/d", 2)
    assert first == [Revoke("q/d", "n0", 2)]
    assert resize(hand.wait(1.0), "q/d", 2) == []
    assert resize(hand, "q/d", 1) == [Revoke("q/d", "n0", 1)]
    assert resize(hand, "q/d", 4) == [], "three are still on their way"
    assert granted(hand.returned(first)) == {"q/d": 2}


def test_the_last_word_of_an_instant_counts():
    hand = Hand("fifo", "1x3")
    hand.submit("q", divisible("d", 3))
    events = [ev.WidthChanged(1.0, "q/d", width) for width in (0, 5, 2)]
    assert hand.do(*events) == [Revoke("q/d", "n0", 1)]


def test_before_its_turn_a_job_may_be_told_its_width_too():
    hand = Hand("fifo", "1x2")
    hand.submit("q", maps("first", 1), divisible("then", 2, upstream=("first",)))
    assert resize(hand, "q/then", 0) == []
    assert hand.finish("q/first:m0") == []
    assert granted(resize(hand, "q/then", 1)) == {"q/then": 1}


def test_a_query_that_ends_is_not_disturbed():
    hand = Hand("fifo", "2x1")
    hand.submit("q", divisible("d", 2))
    hand.do(ev.LeaseEnded(0.0, "q/d", "n0", 1, "finished"))
    assert resize(hand, "q/d", 0) == [], "its other slot comes back by itself"
    assert hand.do(ev.LeaseEnded(0.0, "q/d", "n1", 1, "finished")) == [Finish("q")]
    assert resize(hand, "q/d", 3) == [], "the query is gone"


def test_the_story_tells_of_it():
    hand = Hand("fifo", "1x1")
    hand.submit("q", divisible("d", 2))
    resize(hand.wait(2.0), "q/d", 0)
    assert (2.0, "WidthChanged job=q/d width=0") in hand.scheduler.story("q")


def test_a_fork_knows_the_width():
    hand = Hand("fifo", "1x4")
    hand.submit("q", divisible("d", 4))
    hand.returned(resize(hand, "q/d", 1))
    fork = hand.scheduler.fork()
    assert fork.handle(ev.WidthChanged(0.0, "q/d", 3)) == [Grant("q/d", "n0", 2)]
    assert hand.state.jobs["q/d"].width == 1


@pytest.mark.parametrize("profile", ["fifo", "relaqs", "qef-resized"])
def test_a_forecast_does_not_wait_for_a_query_that_is_held(profile: str):
    given = {"order": "qef", "provisioning": "+x"} if profile == "qef-resized" else profile
    hand = Hand(resolve_profile(given), "1x4")
    for name in ("slow", "other", "third"):
        hand.submit(name, divisible("d", 4, 3), estimates=10.0, kind="online")
    for job in ("slow/d", "other/d"):
        hand.returned(resize(hand, job, 0))
    ends = {name: seen.end_s for name, seen in forecast(hand.scheduler).items()}
    assert ends["slow"] is None
    assert ends["third"] is not None


@pytest.mark.parametrize("profile", [info.name for info in catalogue()])
def test_every_profile_gives_the_slots_of_a_held_query_to_another(profile: str):
    hand = Hand(profile, "1x4")
    hand.submit("slow", divisible("d", 4), estimates=50.0)
    commands = hand.submit("other", divisible("d", 4), estimates=50.0)
    hand.obey(commands)
    hand.obey(resize(hand.wait(1.0), "slow/d", 0))
    assert hand.slots("slow") == 0
    assert hand.slots("other") >= 1
    hand.obey(resize(hand.wait(20.0), "slow/d", 4))
    hand.run_all()
    assert hand.ended.keys() == {"slow", "other"}
    hand.check_replay()


# --- the end of a job whose slots are being taken back ------------------------------------------


def revoking() -> tuple[Hand, list[Command]]:
    """Of four slots of a job on one node, two are on their way back."""
    hand = Hand("swrd", "1x4")
    hand.submit("big", divisible("d", 4), maps("after", 1, upstream=("d",)), estimates=100.0)
    commands = hand.wait(1.0).submit("small", divisible("d", 2), estimates=1.0)
    assert revoked(commands) == {"big/d": 2}
    return hand, commands


def test_one_report_ends_all_slots_held_and_revoked():
    hand, late = revoking()
    commands = hand.wait(1.0).do(ev.LeaseEnded(hand.now, "big/d", "n0", 4, "finished"))
    assert granted(commands) == {"small/d": 2}
    assert launched(commands) == ["big/after:m0"]
    assert not revoked(commands)
    assert hand.returned(late) == [], "a late answer to the revoke changes nothing"
    hand.check_replay()


def test_the_finish_of_what_is_held_waits_for_what_was_revoked():
    hand, late = revoking()
    commands = hand.wait(1.0).do(ev.LeaseEnded(hand.now, "big/d", "n0", 2, "finished"))
    assert granted(commands) == {"small/d": 2}
    assert not launched(commands)
    assert launched(hand.returned(late)) == ["big/after:m0"]
    hand.check_replay()


@pytest.mark.parametrize("outcomes", [("revoked", "finished"), ("finished", "revoked")])
def test_both_may_come_in_one_instant(outcomes: tuple[str, str]):
    hand, _ = revoking()
    hand.wait(1.0)
    ends = [ev.LeaseEnded(hand.now, "big/d", "n0", 2, outcome) for outcome in outcomes]  # type: ignore[arg-type]
    commands = hand.do(*ends)
    assert granted(commands) == {"small/d": 2}
    assert launched(commands) == ["big/after:m0"]
    hand.check_replay()
