"""How much faster a query gets with more slots: what is expected, and what was seen.

A slot that sleeps inside a query while another one works is not needed there. The share of such
slots tells the serial share of the work, on whatever number of slots the query runs.
"""

from __future__ import annotations

from typing import NamedTuple

from queryard.core.speedup import Speedup

# Of TPC-H queries of 16 ms to 1 s on two threads (`bench/widths.py`): planning, starting and
# handing over rows are serial, and so is a small part of the rest.
SERIAL_S, SERIAL_SHARE = 0.006, 0.02
# What was expected counts as so many looks at a slot.
DOUBT = 8.0
# Older looks at a template count half once there are this many.
LOOKS = 256.0


class Idling(NamedTuple):
    """What was seen of the slots of a query, in looks at all of them at once.

    Only looks at two slots or more count. `beside` adds up the slots beyond the first of each look,
    `asleep` those of them that did nothing.
    """

    looks: float = 0.0
    beside: float = 0.0
    asleep: float = 0.0

    def plus(self, other: Idling) -> Idling:
        """Both together."""
        return Idling(*(mine + its for mine, its in zip(self, other, strict=True)))


NOTHING_SEEN = Idling()


def expected_speedup(work_s: float) -> Speedup:
    """The usual curve of a query with so many core-seconds of work.

    >>> expected_speedup(0.1), expected_speedup(3.0)
    (Speedup(serial=0.08, most=inf), Speedup(serial=0.022, most=inf))
    """
    return Speedup(min(1.0, SERIAL_SHARE + SERIAL_S / max(work_s, SERIAL_S)))


def corrected(expected: Speedup, seen: Idling) -> Speedup:
    """The curve after some looks at the slots.

    On k slots a share f of the time is serial if the serial share of the work is
    f / (k - f (k - 1)).

    >>> seen = Idling(looks=100, beside=100, asleep=50)
    >>> round(corrected(Speedup(0.02), seen).serial, 2)
    0.3
    """
    if not seen.beside:
        return expected
    slots = 1.0 + seen.beside / seen.looks
    usual = expected.serial * expected.speed(slots)
    share = (DOUBT * usual + seen.asleep) / (DOUBT + seen.beside)
    return Speedup(min(1.0, share / (slots - share * (slots - 1.0))), expected.most)


def remembered(past: Idling, new: Idling) -> Idling:
    """What is kept of a template after another query of it."""
    total = past.plus(new)
    fading = 0.5 if total.looks > LOOKS else 1.0
    return Idling(*(value * fading for value in total))
