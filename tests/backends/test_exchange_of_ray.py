"""Rows between nodes: kept where they were made, asked for in part, lost with their node."""

from __future__ import annotations

import gc
import pickle
import random
import threading

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.backends.ray import exchange as module
from queryard.backends.ray import peers as peering
from queryard.backends.ray.exchange import NodeExchange, RayExchange
from queryard.backends.ray.messages import Gone, Shared
from queryard.backends.ray.packing import packed, unpacked
from queryard.backends.ray.peers import Peers, asks_for
from queryard.engine.errors import QueryCancelled
from queryard.engine.staged.cancellation import Cancellation
from queryard.engine.staged.exchange import Partitions, Piece, PieceLost, Superseded

from .fake_ray import FakeRay

STORE_BYTES = 1 << 30


class Answer:
    """A call that was answered."""

    def __init__(self, told):
        self.told = told


class Calls:
    """Stands for the handle of an actor; counts what it is asked."""

    def __init__(self, exchange):
        self.exchange = exchange
        self.asked = []
        self.rows = self

    def options(self, concurrency_group):
        return self

    def remote(self, query, wanted):
        self.asked.append(wanted)
        return Answer(self.exchange.rows(wanted))


class Ray(FakeRay):
    """Calls are answered at once, in any order, or never."""

    answers = True
    order = random.Random(1)

    def get(self, asked, timeout=None):
        return asked.told if isinstance(asked, Answer) else super().get(asked, timeout)

    def wait(self, refs, num_returns, timeout):
        refs = sorted(refs, key=lambda ref: self.order.random())
        return (refs[:num_returns], []) if self.answers else ([], refs)


class Nodes:
    """Exchanges of one query at some nodes, which know each other."""

    def __init__(self, *names, memory_bytes=1e9, folder=None, store_bytes=STORE_BYTES):
        self.ray = Ray()
        self.at = {}
        self.calls = {}
        everyone = {name: Peers(self.ray, store_bytes) for name in (*names, "driver")}
        for name in names:
            made = NodeExchange(everyone[name], name, "q", memory_bytes, folder)
            self.at[name] = made
            self.calls[name] = Calls(made)
        for name, known in everyone.items():
            for other in names:
                if other != name:
                    known.meet(other, self.calls[other])
        self.driver = RayExchange(everyone["driver"], "driver", "q")

    def __getitem__(self, name):
        return self.at[name]

    def asked(self):
        return sum(len(each.asked) for each in self.calls.values())


def put(exchange, key, table, partitions=0, attempt=1):
    parts = Partitions("part", partitions) if partitions else None
    with exchange.open(key, attempt, table.schema, parts) as writer:
        for batch in table.to_batches(max_chunksize=7):
            writer.append(batch)
        return exchange.told(writer.commit(), attempt)


def sent(parts):
    rows = range(len(parts))
    return pa.table({"row": pa.array(rows, pa.int64()), "part": pa.array(parts, pa.uint8())})


def rows_of(table):
    return table.column("row").to_pylist()


@given(
    parts=st.lists(st.integers(0, 9), max_size=60),
    more=st.lists(st.integers(0, 9), max_size=60),
    memory_bytes=st.sampled_from([0, 1e9]),
    store_bytes=st.sampled_from([0, 3200, STORE_BYTES]),
)
def test_every_partition_is_read_whole_at_every_place(
    tmp_path_factory, parts, more, memory_bytes, store_bytes
):
    folder = tmp_path_factory.mktemp("rows")
    nodes = Nodes("a", "b", memory_bytes=memory_bytes, folder=folder, store_bytes=store_bytes)
    pieces = [*put(nodes["a"], "q/1", sent(parts), 10), *put(nodes["b"], "q/2", sent(more), 10)]
    for exchange in (nodes["a"], nodes["b"], nodes.driver):
        for number in range(10):
            wanted = [piece for piece in pieces if piece.part == number]
            expected = [
                row for all_ in (parts, more) for row, part in enumerate(all_) if part == number
            ]
            if wanted:
                found = exchange.fetch(wanted)
                assert rows_of(found) == expected
                assert found.schema.names == ["row"]
        assert len(rows_of(exchange.fetch(pieces))) == len(parts) + len(more)
    for node in nodes.at.values():
        node.close()
        assert node.objects == 0


def test_rows_that_are_read_where_they_were_made_are_neither_asked_for_nor_put():
    nodes = Nodes("a")
    pieces = put(nodes["a"], "q/m", sent(range(9)), 9)
    assert rows_of(nodes["a"].fetch(pieces)) == list(range(9))
    assert (nodes.asked(), nodes.ray.objects) == (0, {})


def test_pieces_of_a_node_are_asked_for_together_and_large_ones_in_stretches():
    pieces = [Piece(f"q/{n}", 0, "ab"[n % 2], 10, 100, 1) for n in range(6)]
    asks = asks_for(enumerate(pieces), 1000)
    assert [(ask.holder, ask.places) for ask in asks] == [("a", [0, 2, 4]), ("b", [1, 3, 5])]
    (large,) = [Piece("q/m", None, "a", 10, 350, 1)]
    asks = asks_for([(0, large)], 100)
    assert [(ask.wanted[0].first, ask.wanted[0].rows) for ask in asks] == [
        (0, 2),
        (2, 3),
        (5, 2),
        (7, 3),
    ]


def test_columns_are_known_without_rows():
    nodes = Nodes("a", "b")
    pieces = put(nodes["a"], "q/m", sent([3, 1]), 4)
    nothing = put(nodes["a"], "q/none", sent([]), 4)
    for exchange in (nodes["a"], nodes["b"], nodes.driver):
        found = exchange.fetch([pieces[0].without_rows()])
        assert (found.schema.names, found.num_rows) == (["row"], 0)
        assert exchange.fetch(nothing).num_rows == 0


def test_what_several_nodes_ask_for_is_put_once(monkeypatch):
    monkeypatch.setattr(module, "SHARED_BYTES", 1)
    nodes = Nodes("a", "b", "c", "d")
    pieces = put(nodes["a"], "q/m", sent(range(50)))
    for name in "bcd":
        assert rows_of(nodes[name].fetch(pieces)) == list(range(50))
    assert len(nodes.ray.objects) == 1
    assert nodes["a"].objects == 2
    nodes["a"].close()
    assert nodes["a"].objects == 0


def test_rows_that_are_gone_are_named_with_their_keys_and_holders():
    nodes = Nodes("a", "b")
    kept, gone = put(nodes["a"], "q/kept", sent([0])), put(nodes["a"], "q/gone", sent([0]))
    nodes["a"].drop(["q/gone", "q/unknown"])
    for exchange in (nodes["a"], nodes["b"], nodes.driver):
        with pytest.raises(PieceLost) as caught:
            exchange.fetch([*kept, *gone])
        assert (caught.value.keys, caught.value.holders) == (("q/gone",), ("a",))


def test_rows_of_another_attempt_are_not_taken_for_those_that_were_asked_for():
    nodes = Nodes("a", "b")
    old = put(nodes["a"], "q/m", sent([0, 1]), attempt=1)
    new = put(nodes["a"], "q/m", sent([1, 0]), attempt=2)
    assert rows_of(nodes["b"].fetch(new)) == [0, 1]
    with pytest.raises(PieceLost):
        nodes["b"].fetch(old)
    with pytest.raises(Superseded):
        put(nodes["a"], "q/m", sent([0]), attempt=1)


def test_no_other_attempt_takes_the_place_of_rows_while_they_are_read(monkeypatch):
    nodes = Nodes("a", "b")
    old = put(nodes["a"], "q/m", sent([0, 1]), attempt=1)
    store = nodes["a"]._own.store
    threads = []

    def get(key, part):
        # The attempt was found to be right: another one ends now.
        other = threading.Thread(target=put, args=(nodes["a"], "q/m", sent([0] * 9), 0, 2))
        threads.append(other)
        other.start()
        other.join(0.05)
        return type(store).get(store, key, part)

    monkeypatch.setattr(store, "get", get)
    assert rows_of(nodes["b"].fetch(old)) == [0, 1]
    threads.pop().join()
    monkeypatch.undo()
    for exchange in (nodes["a"], nodes["b"]):
        with pytest.raises(PieceLost):
            exchange.fetch(old)


def test_a_large_output_is_read_in_turn():
    nodes = Nodes("a", store_bytes=3200)
    pieces = put(nodes["a"], "q/m", sent([0] * 200))
    parts = list(nodes.driver.in_turn(pieces))
    assert [row for part in parts for row in rows_of(part)] == list(range(200))
    assert max(part.num_rows for part in parts) < 60
    rest = nodes.driver.in_turn(pieces)
    next(rest)
    nodes.driver.lose("a")
    with pytest.raises(PieceLost):
        next(rest)


def test_a_task_whose_rows_cannot_be_reached_hears_of_its_own_end(monkeypatch):
    monkeypatch.setattr(peering, "_AGAIN_S", 0.0)
    nodes = Nodes("a", "b")
    pieces = put(nodes["a"], "q/m", sent([0]))
    stopped = Cancellation()
    tries = []

    def get(asked, timeout=None):
        tries.append(asked)
        if len(tries) == 3:
            stopped.ask()
        assert len(tries) < 9
        raise nodes.ray.exceptions.ActorUnavailableError

    monkeypatch.setattr(nodes.ray, "get", get)
    with pytest.raises(QueryCancelled):
        nodes["b"].fetch(pieces, stopped)


def test_all_tasks_of_a_process_together_keep_little_of_the_object_store():
    stream = module.as_stream(pa.table({"row": range(1000)}))
    nodes = Nodes("a", "b", store_bytes=stream.size * 8 * 2)
    pieces = [put(nodes["a"], f"q/{n}", pa.table({"row": range(1000)}))[0] for n in range(5)]
    pins = nodes["b"]._peers.pins
    read = [nodes["b"].fetch([piece]) for piece in pieces]
    assert 0 < pins.bytes <= 2 * stream.size
    assert all(rows_of(table) == list(range(1000)) for table in read)
    del read
    gc.collect()
    assert pins.bytes == 0


def test_a_task_that_waits_for_rows_hears_of_a_lost_place_and_of_its_own_end(monkeypatch):
    monkeypatch.setattr(peering, "_LOOK_S", 0.001)
    nodes = Nodes("a", "b")
    pieces = put(nodes["a"], "q/m", sent([0]))
    nodes.ray.answers = False
    stopped = Cancellation()
    stopped.ask()
    with pytest.raises(QueryCancelled):
        nodes["b"].fetch(pieces, stopped)
    nodes["b"].lose("a")
    with pytest.raises(PieceLost):
        nodes["b"].fetch(pieces)


def test_rows_that_were_asked_for_ahead_are_not_asked_for_again(monkeypatch):
    nodes = Nodes("a", "b")
    first, second = (put(nodes["a"], f"q/{n}", sent(range(4)), 4) for n in range(2))
    nodes["b"].ask_ahead([first[1], first[1], second[1]])
    assert nodes["b"].objects == 2
    asked = nodes.asked()
    assert rows_of(nodes["b"].fetch([first[1], second[1]])) == [1, 1]
    assert (nodes.asked(), nodes["b"].objects) == (asked, 0)
    assert rows_of(nodes["b"].fetch([first[1]])) == [1]
    assert nodes.asked() == asked + 1
    monkeypatch.setattr(module, "AHEAD_BYTES", 0)
    nodes["b"].ask_ahead([first[2]])
    assert nodes["b"].objects == 0
    monkeypatch.undo()
    nodes["b"].ask_ahead([first[3], put(nodes["b"], "q/own", sent([0]))[0]])
    assert nodes["b"].objects == 2
    nodes["b"].close()
    assert nodes["b"].objects == 0


def test_what_is_asked_for_ahead_goes_with_its_node_and_with_a_later_attempt():
    nodes = Nodes("a", "b", "c")
    old = put(nodes["a"], "q/m", sent(range(4)), 4, attempt=1)
    nodes["b"].ask_ahead(old)
    assert nodes["b"].objects == 4
    new = put(nodes["c"], "q/m", sent(range(4)), 4, attempt=2)
    nodes["b"].ask_ahead(new[:2])
    assert nodes["b"].objects == 4
    nodes["b"].lose("a")
    assert (nodes["b"].objects, nodes["b"]._ahead_bytes) == (2, sum(p.bytes for p in new[:2]))
    nodes["b"].lose("c")
    assert (nodes["b"].objects, nodes["b"]._ahead_bytes) == (0, 0)


def test_frames_of_the_driver_are_put_once_and_read_everywhere():
    nodes = Nodes("a")
    piece = nodes.driver.publish("q/frame", pa.table({"row": range(100)}))
    empty = nodes.driver.publish("q/empty", pa.table({"row": pa.array([], pa.int8())}))
    for exchange in (nodes["a"], nodes.driver):
        assert rows_of(exchange.fetch([piece])) == list(range(100))
        assert exchange.fetch([empty]).schema.names == ["row"]
    assert len(nodes.ray.objects) == 2
    del nodes.ray.objects[piece.ref.number]
    with pytest.raises(PieceLost):
        nodes["a"].fetch([piece])


def test_messages_carry_what_only_ray_can_carry_beside_their_bytes():
    Peers(FakeRay(), 0.0)
    ref = FakeRay().put("x")
    batch = pa.record_batch({"n": [1, 2]})
    told = [Shared(ref), Gone(("q/m",)), batch, ["long " * 500]]
    parcel = packed(told)
    text, beside = parcel
    assert beside == [ref, batch]
    assert len(text) < 300
    assert unpacked(parcel) == told


def test_whatever_ray_says_of_rows_the_task_that_asks_is_not_at_fault(monkeypatch):
    nodes = Nodes("a", "b")
    pieces = put(nodes["a"], "q/m", sent([0]))

    class SystemError_(nodes.ray.exceptions.RayError):
        """The disk of the object store is full, or the node that was asked has failed."""

    def get(asked, timeout=None):
        raise SystemError_("no space left\nand more")

    monkeypatch.setattr(nodes.ray, "get", get)
    told_of = r"are gone from a \(SystemError_: no space left\); the tasks"
    with pytest.raises(PieceLost, match=told_of) as told:
        nodes["b"].fetch(pieces)
    assert told.value.outputs == (("q/m", "a"),)
    again = pickle.loads(pickle.dumps(told.value))
    assert (str(again), again.outputs) == (str(told.value), told.value.outputs)


def test_an_answer_that_has_gone_again_is_waited_for_and_the_task_can_be_stopped(monkeypatch):
    nodes = Nodes("a", "b")
    pieces = put(nodes["a"], "q/m", sent([0, 0]))
    got = nodes.ray.get
    late = []

    def get(asked, timeout=None):
        assert timeout, "it would wait for ever"
        late.append(asked)
        if len(late) < 3:
            raise nodes.ray.exceptions.GetTimeoutError
        return got(asked, timeout)

    monkeypatch.setattr(nodes.ray, "get", get)
    assert rows_of(nodes["b"].fetch(pieces)) == [0, 1]
    assert nodes.asked() == 1
    late.clear()
    stopped = Cancellation()
    stopped.ask()
    with pytest.raises(QueryCancelled):
        nodes["b"].fetch(pieces, stopped)


def test_what_a_node_copies_counts_against_the_memory_of_its_query(tmp_path):
    """Rows that it has made give way to files meanwhile."""
    table = pa.table({"row": range(1000)})
    memory_bytes = 1.5 * table.nbytes
    nodes = Nodes("a", "b", memory_bytes=memory_bytes, folder=tmp_path, store_bytes=0)
    own, other = put(nodes["b"], "q/own", table), put(nodes["a"], "q/other", table)
    store = nodes["b"]._own.store
    assert store.spilled_bytes == 0
    copied = nodes["b"].fetch(other)
    assert store.spilled_bytes == table.nbytes
    assert store.memory_used_bytes >= table.nbytes
    assert rows_of(copied) == rows_of(nodes["b"].fetch(own)) == list(range(1000))
    del copied
    gc.collect()
    assert store.memory_used_bytes == 0
    for node in nodes.at.values():
        node.close()
