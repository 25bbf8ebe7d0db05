"""Groups of bars, as papers like to print their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from queryard.figures.palette import policy_colour
from queryard.figures.panels import Axis, Bar, Key, Panel

from .numbers import short
from .outcome import Interval

# Of the room a group has, what its bars take; of a bar, what the line of its interval takes.
FILLED, WHISKER = 0.8, 0.12
INK = "#222222"
# What stands between the parts of a bar's text.
_OF, _IS = ", ", ": "


def bar_panel(
    title: str,
    label: str,
    groups: Sequence[str],
    values: Mapping[str, Sequence[Interval | None]],
) -> Panel:
    """A panel of grouped bars with their intervals: for each name a value for each group."""
    width = FILLED / max(1, len(values))
    bars = []
    for place, (name, of_name) in enumerate(values.items()):
        for group, value in enumerate(of_name):
            if value is None:
                continue
            left = group - FILLED / 2 + place * width
            text = f"{name}{_OF}{groups[group]}{_IS}{value.text(short)}"
            low, high = sorted((0.0, value.mean))
            bars.append(Bar(left, left + width * 0.94, low, high, policy_colour(place), text))
            if value.seeds > 1:
                middle, half = left + width * 0.47, width * WHISKER / 2
                # A mean above 0 of what cannot be below it.
                least = max(0.0, value.low) if value.mean > 0 else value.low
                bars.append(Bar(middle - half, middle + half, least, value.high, INK))
    seen = [value for of_name in values.values() for value in of_name if value is not None]
    top = max([0.0, *(max(value.mean, min(value.high, 2 * value.mean)) for value in seen)])
    bottom = min([0.0, *(value.low for value in seen if value.mean < 0)])
    ticks = tuple((float(place), group) for place, group in enumerate(groups))
    x_axis = Axis("", -0.6, len(groups) - 0.4, ticks=ticks)
    return Panel(title, x_axis, Axis(label, bottom * 1.1, top * 1.1 or 1.0), bars=tuple(bars))


def bar_keys(names: Sequence[str]) -> tuple[Key, ...]:
    """The legend of `bar_panel`."""
    return tuple(Key(name, policy_colour(place)) for place, name in enumerate(names))


class Column(NamedTuple):
    """A bar in words: its group, its name, its height, and the height with its interval."""

    group: str
    name: str
    value: float
    text: str


def columns_of(panel: Panel) -> list[Column]:
    """The values of a `bar_panel`, to be shown as text, in the order they came in.

    >>> panel = bar_panel("Response", "s", ["small"], {"fair": [Interval(2.0, 1.5, 2.5, 3)]})
    >>> columns_of(panel)
    [Column(group='small', name='fair', value=2.0, text='2 (1.5 to 2.5)')]
    """
    found = []
    for bar in panel.bars:
        if not bar.text:
            continue  # the line of an interval
        _, group = panel.x.ticks[round((bar.start + bar.end) / 2)]
        name, _, text = bar.text.partition(f"{_OF}{group}{_IS}")
        # One end of every bar is at 0.
        found.append(Column(group, name, bar.bottom + bar.top, text))
    return found
