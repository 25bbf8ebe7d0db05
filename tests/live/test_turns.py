"""Turns at databases: many read or one writes, in order of arrival; nothing waits for ever."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from queryard.engine.errors import DatabaseBusy, Deadlock
from queryard.live import inputs
from queryard.live.coordinating.turns import Turns

from .fake_host import FakeClient, FakeHost

WANTS = st.dictionaries(st.sampled_from(["a", "b"]), st.booleans(), min_size=1)


@given(st.lists(st.tuples(st.integers(0, 5), WANTS, st.booleans()), max_size=30))
def test_owners_that_hold_a_database_go_along_and_all_get_their_turn(steps):
    turns = Turns()
    held: dict[int, dict[str, bool]] = {}
    waiting: dict[int, tuple[int, dict[str, bool]]] = {}

    def take(owner, wants):
        mine = held.setdefault(owner, {})
        for key, writes in wants.items():
            mine[key] = mine.get(key, False) or writes

    def check():
        for key in ("a", "b"):
            modes = [mine[key] for mine in held.values() if key in mine]
            assert len(modes) <= 1 or not any(modes)

    def give():
        for token in turns.next():
            take(*waiting.pop(token))
        check()

    for token, (owner, wants, releases) in enumerate(steps):
        if releases:
            turns.release(owner)
            held.pop(owner, None)
            give()
        if owner in [other for other, _ in waiting.values()]:
            continue  # an owner asks for one thing at a time
        if turns.ask(token, owner, wants):
            take(owner, wants)
        elif turns.locked(token):
            turns.withdraw(token)
            turns.release(owner)
            held.pop(owner, None)
        else:
            waiting[token] = owner, wants
        give()
    while held:
        blocked = {owner for owner, _ in waiting.values()}
        free = [owner for owner in held if owner not in blocked]
        assert free  # else all would wait for each other
        turns.release(free[0])
        del held[free[0]]
        give()
    assert not waiting
    assert turns.empty


def test_a_writer_is_not_passed_by_readers_that_came_later():
    turns = Turns()
    assert turns.ask(1, "reader", {"a": False})
    assert not turns.ask(2, "writer", {"a": True})
    assert not turns.ask(3, "late", {"a": False})
    assert turns.ask(4, "other", {"b": True})
    assert turns.waits_for(2) == "a"
    turns.release("reader")
    assert turns.next() == [2]
    turns.release("writer")
    assert turns.next() == [3]


def test_transactions_that_wait_for_each_other_are_found():
    turns = Turns()
    turns.ask(1, "one", {"a": True})
    turns.ask(2, "two", {"b": True})
    assert not turns.ask(3, "one", {"b": False})
    assert not turns.locked(3)
    assert not turns.ask(4, "two", {"a": False})
    assert turns.locked(4)


def test_a_query_waits_for_its_turn_without_a_slot_and_can_be_cancelled():
    host = FakeHost()
    holder = host.submit("own writes db!shop")
    two = FakeClient("two")
    late = [host.submit(sql, two) for sql in ("db?shop", "db!shop", "db?shop")]
    other = host.submit("reads", two)
    assert host.coordinator.kernel.state.queries.keys() == {holder, other}
    assert [host.facts[query].waits_for for query in late] == ["shop"] * 3
    host.cancel(late[1])
    host.run()
    ends = [host.ended[query].ended_s for query in (holder, late[0], late[2])]
    assert ends[0] < ends[1] <= ends[2]
    assert all(host.ended[query].error is None for query in (holder, late[0], late[2], other))
    host.check_idle()


def test_a_transaction_holds_a_database_until_it_is_over():
    host = FakeHost()
    client, other = FakeClient("one"), FakeClient("two")
    client.in_transaction = True
    held = host.submit("own writes db!shop", client)
    host.run(until_s=5.0)
    assert host.ended[held].error is None
    late = host.submit("own writes db!shop", other)
    host.run(until_s=5.0)
    assert late not in host.ended
    again = host.submit("own writes db!shop", client)
    client.in_transaction = False  # it was the COMMIT
    host.run()
    assert host.ended[again].ended_s < host.ended[late].ended_s
    assert host.ended[late].error is None
    host.check_idle()


def test_a_client_that_leaves_lets_its_databases_go():
    host = FakeHost()
    client = FakeClient("one")
    client.in_transaction = True
    host.submit("own writes db!shop", client)
    host.run(until_s=5.0)
    host.post(inputs.AcquireTurn("caller", FakeClient("two"), {"shop": False}))
    late = host.submit("db!shop", FakeClient("two"))
    assert "caller" not in host.replies
    host.post(inputs.ClientLeft(client))
    assert host.replies["caller"].error is None
    host.run(until_s=6.0)
    assert late not in host.ended
    host.post(inputs.ReleaseTurn("caller"))
    host.run()
    assert host.ended[late].error is None
    host.check_idle()


def test_a_turn_is_waited_for_so_long():
    host = FakeHost()
    host.coordinator.wait_for_turns(3.0)
    client = FakeClient("one")
    client.in_transaction = True
    host.submit("own writes db!shop", client)
    late = host.submit("db?shop", FakeClient("two"))
    host.post(inputs.AcquireTurn("caller", FakeClient("two"), {"shop": False}))
    host.run(until_s=10.0)
    assert isinstance(host.ended[late].error, DatabaseBusy)
    assert isinstance(host.replies["caller"].error, DatabaseBusy)
    assert host.ended[late].ended_s == 3.0
    host.post(inputs.ClientLeft(client))
    host.check_idle()


def test_a_client_may_wait_for_less_and_not_for_more():
    host = FakeHost()
    host.coordinator.wait_for_turns(3.0)
    holder, hasty, patient = FakeClient("one"), FakeClient("two"), FakeClient("three")
    holder.in_transaction = True
    hasty.lock_s, patient.lock_s = 1.0, 60.0
    host.submit("own writes db!shop", holder)
    early = host.submit("db?shop", hasty)
    late = host.submit("db?shop", patient)
    host.run(until_s=10.0)
    assert host.ended[early].ended_s == 1.0
    assert "for 1 s" in str(host.ended[early].error)
    assert host.ended[late].ended_s == 3.0
    host.post(inputs.ClientLeft(holder))
    host.check_idle()


def test_transactions_that_wait_for_each_other_do_not_wait_for_ever():
    host = FakeHost()
    one, two = FakeClient("one"), FakeClient("two")
    one.in_transaction = two.in_transaction = True
    host.submit("own writes db!a", one)
    host.submit("own writes db!b", two)
    host.run(until_s=5.0)
    waits = host.submit("own writes db!b", one)
    fails = host.submit("own writes db!a", two)
    assert isinstance(host.ended[fails].error, Deadlock)
    host.post(inputs.ClientLeft(two))
    host.run(until_s=10.0)
    assert host.ended[waits].error is None
