"""Messages as bytes: pickled plainly, which costs less than half of Ray's own way.

What only Ray can carry (handles of actors, references to objects) and what it carries without a
copy (rows) travels beside the bytes.
"""

from __future__ import annotations

import copyreg
import io
import pickle
import threading
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

import pyarrow as pa

from queryard.engine.staged.exchange import Piece
from queryard.engine.staged.instance import Build
from queryard.engine.staged.task import Input, TaskOutcome

# Longer messages are compressed: names repeat in them.
PLAIN_BYTES = 600
_PLAIN, _COMPRESSED = b"p", b"z"

_found = threading.local()
_table: dict[type, Any] = dict(copyreg.dispatch_table)


def carry_beside(*kinds: type) -> None:
    """Values of these types are not pickled: they travel as they are."""
    for kind in kinds:
        _table[kind] = _put_beside


def packed(message: object) -> tuple[bytes, list[Any]]:
    """A message as it travels: bytes, and what is beside them.

    >>> text, beside = packed(["a", pa.record_batch({"n": [1, 2]})])
    >>> len(beside), unpacked(text, beside)[1].num_rows
    (1, 2)
    """
    text = io.BytesIO()
    packer = pickle.Pickler(text, protocol=5)
    packer.dispatch_table = _table
    beside: list[Any] = []
    _found.beside = beside
    packer.dump(message)
    plain = text.getvalue()
    if len(plain) > PLAIN_BYTES:
        return _COMPRESSED + zlib.compress(plain, 1), beside
    return _PLAIN + plain, beside


def unpacked(text: bytes, beside: Sequence[Any]) -> Any:
    _found.beside = beside
    return pickle.loads(zlib.decompress(text[1:]) if text[:1] == _COMPRESSED else text[1:])


def _put_beside(value: Any) -> tuple[Any, ...]:
    _found.beside.append(value)
    return _take_beside, (len(_found.beside) - 1,)


def _take_beside(place: int) -> Any:
    return _found.beside[place]


carry_beside(pa.RecordBatch)


# --- pieces, of which there are many: column by column --------------------------------------------


def _columns(pieces: Iterable[Piece]) -> tuple[tuple[Any, ...], ...]:
    return tuple(zip(*pieces, strict=True))


def _pieces(columns: Iterable[tuple[Any, ...]]) -> tuple[Piece, ...]:
    return tuple(map(Piece._make, zip(*columns, strict=True)))


def _of_input(given: Input) -> tuple[Any, ...]:
    return _input, (given.name, *_columns(given.pieces))


def _input(name: str, *columns: tuple[Any, ...]) -> Input:
    return Input(name, _pieces(columns))


def _of_build(given: Build) -> tuple[Any, ...]:
    return _build, (given.job, given.select, given.drop, *_columns(given.pieces))


def _build(job: str, select: str, drop: tuple[str, ...], *columns: tuple[Any, ...]) -> Build:
    return Build(job, select, _pieces(columns), drop)


def _of_outcome(given: TaskOutcome) -> tuple[Any, ...]:
    rest = tuple(getattr(given, name) for name in _OUTCOME)
    return _outcome, (rest, *_columns(given.pieces))


def _outcome(rest: tuple[Any, ...], *columns: tuple[Any, ...]) -> TaskOutcome:
    return TaskOutcome(**dict(zip(_OUTCOME, rest, strict=True)), pieces=_pieces(columns))


_OUTCOME = tuple(field.name for field in fields(TaskOutcome) if field.name != "pieces")
_table.update({Input: _of_input, Build: _of_build, TaskOutcome: _of_outcome})
