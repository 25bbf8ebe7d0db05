"""Where a text may be cut between two rows, and the proof that it may.

A line break inside quotes ends no row, so a line break is safe only if the number of quotes before
it, from the start of the text on, is even. That alone is no proof: DuckDB takes a quote in the
middle of a value that does not begin with one for an ordinary sign (`5" disk`). So every quote is
looked at. One that opens must follow a delimiter, a line break or (as the second of a pair) the
quote before it; one that closes must be followed by a delimiter, a line break or such a quote. By
induction the reader is inside quotes exactly where the number of quotes is odd. The first quote
that stands elsewhere ends the proof: the text after the last cut before it stays whole.

Line breaks must be all LF or all CR LF outside of quotes. DuckDB takes the first break of a text,
inside quotes or not, for the kind of all; so the first one must be of that kind, too, and the kind
is said when a part is read. No cut is made beside an empty line.

A block without quotes and carriage returns costs two searches of memory. Few quotes are looked at
one by one, many by Arrow, all at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

LF, CR = 10, 13
BOM = b"\xef\xbb\xbf"

# Quotes are few if the first bytes of a block have less than one in so many.
_SAMPLE, _FEW = 8192, 400


@dataclass(frozen=True, slots=True)
class Quoting:
    """How the proof reads a text.

    `stops` are signs that end the proof wherever they stand, as an escape sign that is not the
    quote. With `between` a row ends only at a line break between these two signs, which needs no
    further proof.
    """

    quote: int | None = None
    delimiter: int = ord(",")
    stops: bytes = b""
    between: bytes = b""


OBJECTS = Quoting(between=b"}{")
"""JSON: a line break between `}` and `{` is neither in a string, where none may stand, nor in an
array, where a comma would stand; so it is between two objects that are rows."""


@cache
def _scalar(sign: int) -> Any:
    """A byte for Arrow, made when it is needed: to make one, Arrow looks for pandas."""
    return pa.scalar(sign, pa.uint8())


@dataclass(frozen=True, slots=True)
class Cuts:
    """Where a text may be cut, and why it is not cut any further; `size` is the whole text's.

    `newline` is what ends its lines, where that was looked at.
    """

    places: tuple[int, ...]
    size: int
    reason: str = ""
    newline: str = ""


class Cutter:
    """Finds cuts at least `step` bytes apart in blocks that are handed in one after the other.

    >>> cutter = Cutter(Quoting(ord('"')), step=4)
    >>> for block in (b'a,b\\n"x', b'\\ny",2\\n3,4', b'\\n5,6\\n'):
    ...     cutter.feed(block)
    >>> cutter.finish()
    Cuts(places=(4, 12, 16), size=20, reason='', newline='\\n')
    """

    def __init__(self, quoting: Quoting, step: float) -> None:
        self._quoting = quoting
        self._step = step
        self._next = step
        self._places: list[int] = []
        # Of the text before the block that waits: its size, its last signs, the parity of quotes.
        self._offset = 0
        self._before = bytes((LF, LF))
        self._inside = 0
        # The last signs of a block are judged by those after them, so it waits for the next one.
        self._waiting = b""
        self._crlf: bool | None = None
        self._reason = ""
        # What may stand before a quote that opens, and after one that closes.
        self._allowed = frozenset({quoting.delimiter, LF, CR, quoting.quote})
        self._are_allowed = pa.array([sign in self._allowed for sign in range(256)])

    def feed(self, block: bytes) -> None:
        """The next bytes of the text."""
        if self._reason:
            self._offset += len(block)
        elif len(self._waiting) < len(BOM):
            self._waiting += block
        elif block:
            self._take(self._waiting, block[0])
            self._waiting = block

    def finish(self) -> Cuts:
        """All cuts; the text has ended."""
        if self._reason:
            self._offset += len(self._waiting)
        elif self._waiting:
            # The end of a text is as good as the end of a line.
            self._take(self._waiting, LF)
        self._waiting = b""
        newline = "" if self._crlf is None else "\r\n" if self._crlf else "\n"
        return Cuts(tuple(self._places), self._offset, self._reason, newline)

    def _take(self, text: bytes, after: int) -> None:
        """Judge a block, after which a sign follows."""
        if self._offset == 0 and text.startswith(BOM):
            # The mark of a text's encoding is no part of the first value.
            self._offset = len(BOM)
            text = text[len(BOM) :]
        end = self._end_of_proof(text)
        inside = self._inside
        if self._quoting.quote is not None:
            end, inside = self._judged_quotes(text, end, after)
        end = min(end, self._judged_breaks(text, end, after))
        self._cut(text, end, after)
        self._inside = inside
        self._before = (self._before + text[-2:])[-2:]
        self._offset += len(text)

    def _end_of_proof(self, text: bytes) -> int:
        """Where a sign stands that ends the proof, or the end."""
        end = len(text)
        for sign in self._quoting.stops:
            place = text.find(bytes((sign,)), 0, end)
            if place >= 0:
                end = place
                self._reason = (
                    f"{chr(sign)!r} at byte {self._offset + place} may make a line break part of "
                    "a value"
                )
        return end

    def _inside_at(self, text: bytes, start: int, place: int, inside: int) -> int:
        """Whether a place is inside quotes, from whether an earlier one is."""
        quote = self._quoting.quote
        if quote is None:
            return 0
        return (inside + text.count(bytes((quote,)), start, place)) % 2

    def _judged_quotes(self, text: bytes, end: int, after: int) -> tuple[int, int]:
        """The place of the first quote that stands where none should, or `end`; and the parity."""
        quote = bytes((self._quoting.quote or 0,))
        judge = self._judged_many
        if text.count(quote, 0, _SAMPLE) * _FEW < min(end, _SAMPLE):
            judge = self._judged_few
        wrong, inside = judge(text, end, after)
        if wrong < end:
            self._reason = f"a quote inside an unquoted value, at byte {self._offset + wrong}"
        return wrong, inside

    def _judged_few(self, text: bytes, end: int, after: int) -> tuple[int, int]:
        quote = bytes((self._quoting.quote or 0,))
        allowed, find, inside = self._allowed, text.find, self._inside
        place = find(quote, 0, end)
        while place >= 0:
            if inside:
                beside = text[place + 1] if place + 1 < len(text) else after
            else:
                beside = text[place - 1] if place else self._before[-1]
            if beside not in allowed:
                return place, inside
            inside = 1 - inside
            place = find(quote, place + 1, end)
        return end, inside

    def _judged_many(self, text: bytes, end: int, after: int) -> tuple[int, int]:
        before, here, next_one = self._signs(text, end, after)
        quotes = pc.indices_nonzero(pc.equal(here, _scalar(self._quoting.quote)))
        wrong = end
        if len(quotes):
            # Every other quote opens. One that does is fine after itself, one that closes before.
            fine = pc.and_(
                *(
                    pc.or_(
                        self._are_allowed.take(beside.take(quotes)),
                        _every_other(len(quotes), first),
                    )
                    for beside, first in (
                        (before, 1 - self._inside),
                        (next_one, self._inside),
                    )
                )
            )
            if not pc.all(fine).as_py():
                wrong = quotes[pc.index(fine, False).as_py()].as_py()
        return wrong, (self._inside + len(quotes)) % 2

    def _judged_breaks(self, text: bytes, end: int, after: int) -> int:
        """The place of the first line break that is written in another way, or `end`."""
        if self._quoting.between:
            return end
        if self._crlf is None:
            place = text.find(b"\n", 0, end)
            if place >= 0:
                self._crlf = self._around(text, place, after)[1] == CR
        if not self._crlf and text.find(b"\r", 0, end) < 0:
            return end
        before, here, next_one = self._signs(text, end, after)
        odd = pc.equal(here, _scalar(CR))
        if self._crlf is not False:
            odd = pc.and_(odd, pc.not_equal(next_one, _scalar(LF)))
            if self._crlf:
                bare = pc.and_(pc.equal(here, _scalar(LF)), pc.not_equal(before, _scalar(CR)))
                odd = pc.or_(odd, bare)
        start, inside = 0, self._inside
        for place in pc.indices_nonzero(odd).to_pylist():
            inside = self._inside_at(text, start, place, inside)
            start = place
            if not inside:
                self._reason = f"a line break of another kind at byte {self._offset + place}"
                return int(place)
        return end

    def _signs(self, text: bytes, end: int, after: int) -> tuple[pa.Array, pa.Array, pa.Array]:
        """The sign before each of the first `end` signs, the sign, and the one after it."""
        padded = pa.py_buffer(b"".join((self._before[-1:], text, bytes((after,)))))
        signs = pa.Array.from_buffers(pa.uint8(), len(text) + 2, [None, padded])
        return signs.slice(0, end), signs.slice(1, end), signs.slice(2, end)

    def _cut(self, text: bytes, end: int, after: int) -> None:
        while True:
            start = max(0, math.ceil(self._next) - self._offset - 1)
            place = self._safe_break(text, start, end) if start < end else None
            if place is None:
                return
            at = self._offset + place + 1
            self._next = at + 1.0
            older, old, _, new = self._around(text, place, after)
            if self._is_cut(older if old == CR else old, new):
                self._places.append(at)
                self._next = at + self._step

    def _is_cut(self, last: int, first: int) -> bool:
        """Whether a text may be cut between two lines that end and begin with these signs."""
        if self._quoting.between:
            return bytes((last, first)) == self._quoting.between
        return last != LF and first not in (LF, CR)

    def _around(self, text: bytes, place: int, after: int) -> bytes:
        """The two signs before a place, the one there and the one after it."""
        old = (self._before + text[max(0, place - 2) : place])[-2:]
        new = text[place + 1] if place + 1 < len(text) else after
        return bytes((*old, text[place], new))

    def _safe_break(self, text: bytes, start: int, end: int) -> int | None:
        """The first LF outside of quotes from a place on."""
        inside = self._inside_at(text, 0, start, self._inside)
        while (place := text.find(b"\n", start, end)) >= 0:
            inside = self._inside_at(text, start, place, inside)
            if not inside:
                return place
            start = place
            # All line breaks up to the quote that closes are inside.
            quote = self._quoting.quote
            assert quote is not None
            closing = text.find(bytes((quote,)), start, end)
            if closing < 0:
                return None
            inside, start = 0, closing + 1
        return None


def cuts_of(blocks: Iterable[bytes], quoting: Quoting, step: float) -> Cuts:
    """The cuts of a text that comes in blocks. Blocks after the end of a proof are counted only.

    >>> cuts_of([b'a\\n1\\n5" disk\\n7\\n'], Quoting(ord('"')), 1).reason
    'a quote inside an unquoted value, at byte 5'
    """
    cutter = Cutter(quoting, step)
    for block in blocks:
        cutter.feed(block)
    return cutter.finish()


def _every_other(count: int, first: int) -> pa.Array:
    """Booleans, true at `first` (0 or 1) and every second one after it."""
    bits = pa.py_buffer((b"\xaa" if first else b"\x55") * (count // 8 + 1))
    return pa.Array.from_buffers(pa.bool_(), count, [None, bits])
