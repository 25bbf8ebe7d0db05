"""The primitives of DuckDB's binary serializer: field ids, variable-length numbers, texts.

An object is a series of fields, each with an id of two bytes, and ends with `END`. There is no way
to skip a field: an id that is not expected is an error.
"""

from __future__ import annotations

from .errors import Malformed

END = b"\xff\xff"
_END_ID = 0xFFFF
# An optional number that is not set.
UNSET = 2**64 - 1
_MASK_128 = 2**128 - 1
# The longest forms of a number: 64 bits, seven per byte.
_MOST_BYTES = 10
# Rows that one message may stand for: a constant of a few bytes may mean any number of them.
MOST_ROWS = 1 << 22
# How deep types and vectors may be nested.
MOST_DEPTH = 64


def field(number: int) -> bytes:
    """The id of a field."""
    return number.to_bytes(2, "little")


def unsigned(value: int) -> bytes:
    """A number from 0, in seven bits per byte.

    >>> unsigned(5).hex(), unsigned(300).hex()
    ('05', 'ac02')
    """
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def signed(value: int) -> bytes:
    """A number with its sign extended, in seven bits per byte.

    >>> signed(-2).hex(), signed(64).hex()
    ('7e', 'c000')
    """
    out = bytearray()
    while not -0x40 <= value < 0x40:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value & 0x7F)
    return bytes(out)


def text(value: str | bytes) -> bytes:
    """A text, or any bytes, behind their length."""
    raw = value.encode() if isinstance(value, str) else value
    return unsigned(len(raw)) + raw


def optional(value: int | None) -> bytes:
    """A number that may be absent."""
    return unsigned(UNSET if value is None else value)


def huge(value: int) -> bytes:
    """A number of 128 bits, whatever its sign."""
    value &= _MASK_128
    upper = value >> 64
    return signed(upper - (1 << 64) if upper >> 63 else upper) + unsigned(value & UNSET)


class Reader:
    """Reads a message from its first byte to its last; every step is checked."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0
        self._rows_left = MOST_ROWS
        self._depth = 0

    def _take(self, size: int) -> int:
        """Step over some bytes, which must be there; where they begin."""
        start = self.place
        if size > len(self.data) - start:
            raise Malformed(f"the message ends within a value at byte {start}")
        self.place = start + size
        return start

    def peek(self) -> int:
        """The id of the field that comes next."""
        start = self._take(2)
        self.place = start
        return self.data[start] | self.data[start + 1] << 8

    def expect(self, number: int) -> None:
        """Step over the id of a field that must be here."""
        if (found := self.peek()) != number:
            what = "the end of an object" if found == _END_ID else f"field {found}"
            raise Malformed(f"{what} at byte {self.place}, where field {number} is expected")
        self.place += 2

    def has(self, number: int) -> bool:
        """Whether a field is here; its id is stepped over."""
        if self.peek() != number:
            return False
        self.place += 2
        return True

    def end(self) -> None:
        """The end of an object must be here."""
        if (found := self.peek()) != _END_ID:
            raise Malformed(f"field {found} at byte {self.place}, where an object should end")
        self.place += 2

    def byte(self) -> int:
        return self.data[self._take(1)]

    def flag(self) -> bool:
        return self._checked_flag(self.byte())

    def _checked_flag(self, value: int) -> bool:
        if value > 1:
            raise Malformed(f"the byte {value} at {self.place - 1} is neither true nor false")
        return value == 1

    def _number(self) -> tuple[int, int, int]:
        """The bits of a number, how many they are, and its last byte."""
        data, place = self.data, self.place
        value = shift = 0
        for at in range(place, min(place + _MOST_BYTES, len(data))):
            last = data[at]
            value |= (last & 0x7F) << shift
            shift += 7
            if last < 0x80:
                self.place = at + 1
                return value, shift, last
        raise Malformed(f"the number at byte {place} does not end")

    def unsigned(self) -> int:
        value, _, _ = self._number()
        if value > UNSET:
            raise Malformed(f"the number before byte {self.place} has more than 64 bits")
        return value

    def signed(self) -> int:
        value, shift, last = self._number()
        value = value - (1 << shift) if last & 0x40 else value
        if not -(1 << 63) <= value < 1 << 63:
            raise Malformed(f"the number before byte {self.place} has more than 64 bits")
        return value

    def optional(self) -> int | None:
        value = self.unsigned()
        return None if value == UNSET else value

    def huge(self) -> int:
        """A number of 128 bits, without its sign."""
        upper = self.signed()
        return (upper << 64 | self.unsigned()) & _MASK_128

    def raw(self) -> bytes:
        """Bytes behind their length."""
        size = self.unsigned()
        start = self._take(size)
        return self.data[start : start + size]

    def text(self) -> str:
        try:
            return self.raw().decode()
        except UnicodeDecodeError as error:
            raise Malformed(f"a text before byte {self.place} is no UTF-8: {error}") from None

    def count(self) -> int:
        """How many items of a list follow, each of which takes a byte at least."""
        found = self.unsigned()
        if found > len(self.data) - self.place:
            raise Malformed(f"a list of {found} items at byte {self.place} is longer than all")
        return found

    def rows(self, count: int) -> int:
        """Take note that some rows are made; more than a message may mean are refused."""
        self._rows_left -= count
        if self._rows_left < 0:
            raise Malformed(f"the message stands for more than {MOST_ROWS:,} values")
        return count

    def deeper(self) -> None:
        """Something is nested in something."""
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise Malformed(f"the message is nested deeper than {MOST_DEPTH} levels")

    def back(self) -> None:
        self._depth -= 1

    def done(self) -> None:
        """The message must end here."""
        if self.place != len(self.data):
            raise Malformed(f"{len(self.data) - self.place} bytes follow the end of the message")
