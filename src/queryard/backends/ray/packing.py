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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, NamedTuple

import pyarrow as pa

from queryard.engine.errors import QueryFailed
from queryard.engine.staged.exchange import Piece
from queryard.engine.staged.instance import Build
from queryard.engine.staged.task import Input, TaskOutcome, TaskSpec

from .messages import Lease

# Longer messages are compressed: names repeat in them.
PLAIN_BYTES = 600
_PLAIN, _COMPRESSED = b"p", b"z"

Parcel = bytes | tuple[bytes, list[Any]]
"""A message as it travels: bytes, which cost Ray least, and what is beside them if something is."""

_found = threading.local()
_table: dict[type, Any] = dict(copyreg.dispatch_table)


def carry_beside(*kinds: type) -> None:
    """Values of these types are not pickled: they travel as they are."""
    for kind in kinds:
        _table[kind] = _put_beside


def packed(message: object) -> Parcel:
    """A message as it travels.

    >>> parcel = packed(["a", pa.record_batch({"n": [1, 2]})])
    >>> len(parcel[1]), unpacked(parcel)[1].num_rows
    (1, 2)
    """
    beside: list[Any] = []
    return _parcel(_pickled(message, beside), beside)


def unpacked(parcel: Parcel) -> Any:
    text, _found.beside = _opened(parcel)
    return pickle.loads(text)


class Unreadable(NamedTuple):
    """Stands for a message that could not be packed, or not be read where it has come."""

    why: str


def packed_each(messages: Iterable[object], head: object = None) -> Parcel:
    """Messages as they travel together; one that cannot travel does not keep back the others.

    `head` goes with them, and is plain.

    >>> head, messages = unpacked_each(packed_each([1, lambda: 2, "c"], head=7))
    >>> head, [type(each).__name__ for each in messages]
    (7, ['int', 'Unreadable', 'str'])
    """
    beside: list[Any] = []
    each_text = [_pickled_or_why(message, beside) for message in messages]
    return _parcel(pickle.dumps((head, each_text), protocol=5), beside)


def unpacked_each(parcel: Parcel) -> tuple[Any, Iterator[Any]]:
    """The head, and the messages; each is read when it is its turn."""
    text, beside = _opened(parcel)
    head, each_text = pickle.loads(text)

    def messages() -> Iterator[Any]:
        for each in each_text:
            _found.beside = beside
            yield _read_or_why(each)

    return head, messages()


def as_carried(error: BaseException) -> BaseException:
    """An error as it can travel: one that cannot becomes one that can."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return QueryFailed(f"{type(error).__name__}: {error}")
    return error


def _pickled_or_why(message: object, beside: list[Any]) -> bytes:
    try:
        return _pickled(message, beside)
    except Exception as error:
        kind = type(message).__name__
        why = f"a value of type {kind} cannot be sent to a node: {type(error).__name__}: {error}"
        return _pickled(Unreadable(why), beside)


def _read_or_why(text: bytes) -> Any:
    try:
        return pickle.loads(text)
    except Exception as error:
        why = f"what another process has sent cannot be read: {type(error).__name__}: {error}"
        return Unreadable(why)


def _pickled(message: object, beside: list[Any]) -> bytes:
    text = io.BytesIO()
    packer = pickle.Pickler(text, protocol=5)
    packer.dispatch_table = _table
    _found.beside = beside
    packer.dump(message)
    return text.getvalue()


def _parcel(plain: bytes, beside: list[Any]) -> Parcel:
    is_long = len(plain) > PLAIN_BYTES
    text = _COMPRESSED + zlib.compress(plain, 1) if is_long else _PLAIN + plain
    return (text, beside) if beside else text


def _opened(parcel: Parcel) -> tuple[bytes, Sequence[Any]]:
    text, beside = (parcel, ()) if isinstance(parcel, bytes) else parcel
    return zlib.decompress(text[1:]) if text[:1] == _COMPRESSED else text[1:], beside


def _put_beside(value: Any) -> tuple[Any, ...]:
    _found.beside.append(value)
    return _take_beside, (len(_found.beside) - 1,)


def _take_beside(place: int) -> Any:
    return _found.beside[place]


carry_beside(pa.RecordBatch)


# --- statements: one that cannot travel is its query's failure, and the rest of the order is needed


def _of_lease(given: Lease) -> tuple[Any, ...]:
    return _lease, (given.query, given.width, _pickled_or_why(given.statement, _found.beside))


def _lease(query: str, width: int, text: bytes) -> Lease:
    return Lease(query, width, _read_or_why(text))


_table[Lease] = _of_lease


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
    return _outcome, (_rest_of_outcome(given), *_columns(given.pieces))


def _outcome(rest: tuple[Any, ...], *columns: tuple[Any, ...]) -> TaskOutcome:
    return TaskOutcome(**dict(zip(_OUTCOME, rest, strict=True)), pieces=_pieces(columns))


# --- specifications, one per task: Python's own way asks for the fields of the class each time ----


def _of_spec(given: TaskSpec) -> tuple[Any, ...]:
    return TaskSpec, _fields_of_spec(given)


_OUTCOME = tuple(field.name for field in fields(TaskOutcome) if field.name != "pieces")
_rest_of_outcome = attrgetter(*_OUTCOME)
_fields_of_spec = attrgetter(*(field.name for field in fields(TaskSpec)))
_table.update({Input: _of_input, Build: _of_build, TaskOutcome: _of_outcome, TaskSpec: _of_spec})
