"""Rows in an object store: bundles of partitions, columns without rows, and loss."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.backends.ray import exchange as module
from queryard.backends.ray.exchange import RayExchange
from queryard.engine.errors import QueryCancelled
from queryard.engine.staged.cancellation import Cancellation
from queryard.engine.staged.exchange import Partitions, Piece, PieceLost, Superseded

from .fake_ray import FakeRay


def put(exchange, key, table, partitions=0, attempt=1):
    parts = Partitions("part", partitions) if partitions else None
    with exchange.open(key, attempt, table.schema, parts) as writer:
        for batch in table.to_batches(max_chunksize=7):
            writer.append(batch)
        return writer.commit()


def sent(parts):
    rows = range(len(parts))
    return pa.table({"row": pa.array(rows, pa.int64()), "part": pa.array(parts, pa.uint8())})


@given(
    parts=st.lists(st.integers(0, 19), max_size=60),
    bundles=st.integers(1, 20),
    small=st.sampled_from([0, 1 << 20]),
    flush=st.sampled_from([64, 64 << 20]),
)
def test_every_partition_is_found_whole_whatever_the_bundles(parts, bundles, small, flush):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "SMALL_BYTES", small)
        patched.setattr(module, "FLUSH_BYTES", flush)
        ray = FakeRay()
        exchange = RayExchange(ray, "n", bundles)
        pieces = put(exchange, "q/m", sent(parts), 20)
        assert [piece.part for piece in pieces if piece.rows] == sorted(set(parts))
        for piece in pieces:
            expected = [row for row, part in enumerate(parts) if part == piece.part]
            rows = exchange.fetch([piece])
            assert rows.column("row").to_pylist() == expected
            assert rows.schema.names == ["row"]
        if flush > 64:
            assert exchange.objects <= min(bundles, 16)
        every = exchange.fetch(pieces).column("row").to_pylist()
        assert sorted(every) == list(range(len(parts)))


def test_small_outputs_are_one_object_and_large_ones_a_few(monkeypatch):
    exchange = RayExchange(FakeRay(), "n", 3)
    put(exchange, "q/small", sent(range(12)), 12)
    assert exchange.objects == 1
    monkeypatch.setattr(module, "SMALL_BYTES", 1)
    pieces = put(exchange, "q/large", sent(range(12)), 12)
    assert exchange.objects == 4
    # Neighbours lie together.
    refs = [piece.ref.stretches[0].ref for piece in pieces]
    assert [refs.index(ref) for ref in refs] == [0] * 4 + [4] * 4 + [8] * 4


def test_columns_are_known_without_fetching_rows():
    ray = FakeRay()
    exchange = RayExchange(ray, "n", 2)
    pieces = put(exchange, "q/m", sent([3, 1]), 4)
    ray.objects.clear()
    assert exchange.fetch([pieces[0].without_rows()]).schema.names == ["row"]
    nothing = put(exchange, "q/none", sent([]), 4)
    assert nothing[0].rows == 0
    assert exchange.fetch(nothing).num_rows == 0


def test_lost_objects_are_named_with_their_keys_and_holders():
    ray = FakeRay()
    exchange = RayExchange(ray, "n", 1)
    kept, gone = put(exchange, "q/kept", sent([0])), put(exchange, "q/gone", sent([0]))
    del ray.objects[gone[0].ref.stretches[0].ref.number]
    with pytest.raises(PieceLost) as caught:
        exchange.fetch([*kept, *gone])
    assert (caught.value.keys, caught.value.holders) == (("q/gone",), ("n",))


class Never(FakeRay):
    """Objects that do not come."""

    def wait(self, refs, num_returns, timeout):
        return [], list(refs)


def test_a_task_that_waits_for_rows_hears_of_a_lost_place_and_of_its_own_end():
    exchange = RayExchange(Never(), "n", 1)
    pieces = [piece._replace(holder="other") for piece in put(exchange, "q/m", sent([0]))]
    exchange.lose("other")
    with pytest.raises(PieceLost):
        exchange.fetch(pieces)
    stopped = Cancellation()
    stopped.ask()
    with pytest.raises(QueryCancelled):
        exchange.fetch([pieces[0]._replace(holder="n")], stopped)


def test_a_late_attempt_is_refused_and_what_is_dropped_is_let_go():
    exchange = RayExchange(FakeRay(), "n", 1)
    put(exchange, "q/m", sent([0]), attempt=2)
    with pytest.raises(Superseded):
        put(exchange, "q/m", sent([0]), attempt=1)
    assert exchange.objects == 1
    exchange.drop(["q/m", "q/unknown"])
    assert exchange.objects == 0


def test_published_rows_are_one_piece():
    exchange = RayExchange(FakeRay(), "driver", 1)
    piece = exchange.publish("q/frame", pa.table({"n": range(100)}))
    assert isinstance(piece, Piece)
    assert exchange.fetch([piece]).column("n").to_pylist() == list(range(100))
    empty = exchange.publish("q/empty", pa.table({"n": pa.array([], pa.int8())}))
    assert exchange.fetch([empty]).schema.names == ["n"]
