"""Charts in a terminal."""

from __future__ import annotations

import math

import pytest
from rich.console import Console

from queryard.figures.panels import Axis, Line, Panel
from research.bars import bar_panel, columns_of
from research.outcome import Chart, Interval
from research.pictures import MOST_LINES, picture_of


def exact(value: float) -> Interval:
    return Interval(value, value, value, 1)


def grid(title: str, groups: int, names: int) -> Panel:
    """Group g of name n is as high as g + n."""
    values = {
        f"policy {n}": [Interval(g + n, g + n - 0.5, g + n + 0.5, 5) for g in range(groups)]
        for n in range(1, names + 1)
    }
    return bar_panel(title, "s", [f"load\n{g}" for g in range(groups)], values)


def shown(chart: Chart, width: int = 80) -> list[str]:
    """The lines of a picture, as they are written to a file."""
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        for part in picture_of(console, chart):
            console.print(part)
    lines = captured.get().splitlines()
    assert max(map(len, lines)) <= width
    return [line.rstrip() for line in lines]


def test_few_bars_have_a_line_each_with_their_interval() -> None:
    values = {"[fair]": [Interval(8.0, 6.0, 10.0, 5), exact(4.0)], "tls": [exact(2.0), None]}
    panel = bar_panel("Bing", "response (s)", ["small", "large"], values)
    lines = shown(Chart("it", "Two policies", (panel,)))
    assert lines == [
        "Two policies",
        "Bing; response (s)",
        "  small  [fair]  ████████████████████████████████████████ 8 (6 to 10)",
        "         tls     ██████████ 2",
        "  large  [fair]  ████████████████████ 4",
    ]


def test_more_bars_stand_beside_one_another_with_their_values() -> None:
    lines = shown(Chart("it", "Many", (grid("A", 6, 3), grid("B", 6, 3))))
    assert len(lines) == 1 + 2 * (2 + 6)
    assert lines[2].split() == ["policy", "1", "policy", "2", "policy", "3"]
    # The longest is the highest.
    assert [line.count("█") for line in lines[3:9]] == sorted(
        line.count("█") for line in lines[3:9]
    )
    assert lines[8].split()[:2] == ["load", "5"]
    assert [cell for cell in lines[8].split() if cell.isdigit()] == ["5", "6", "7", "8"]


def test_of_many_names_and_few_groups_the_groups_are_beside_one_another() -> None:
    lines = shown(Chart("it", "Many", (grid("A", 3, 9),)))
    assert lines[2].split() == ["load"] * 3
    assert lines[3].split() == ["0", "1", "2"]
    assert [line.split()[1] for line in lines[4:]] == [str(n) for n in range(1, 10)]


@pytest.mark.parametrize("width", [30, 40, 60, 80, 200])
@pytest.mark.parametrize(("panels", "groups", "names"), [(1, 12, 12), (4, 5, 3), (6, 9, 2)])
def test_a_picture_is_never_long_or_wide(width: int, panels: int, groups: int, names: int) -> None:
    chart = Chart("it", "Large", tuple(grid(f"{n}", groups, names) for n in range(panels)))
    lines = shown(chart, width)
    if width >= 60:
        assert len(lines) <= MOST_LINES
    drawn = sum(line.endswith("; s") for line in lines)
    assert drawn >= 1
    assert (drawn < panels) == ("more panel" in " ".join(lines))


def test_what_is_negative_is_on_the_other_side_and_what_is_cut_off_says_so() -> None:
    values = {"a": [exact(-10.0), exact(10.0), exact(1000.0), exact(math.nan)]}
    panel = bar_panel("Gain", "%", ["loss", "gain", "much", "none"], values)
    panel = Panel(panel.title, panel.x, Axis("%", -10.0, 30.0), bars=panel.bars)
    loss, gain, much, none = shown(Chart("it", "Gains", (panel,)))[2:]
    zero = gain.index("█")
    assert loss.rindex("█") == zero - 1
    assert gain.count("█") == loss.count("█") == 10
    assert much.split()[-2].endswith("▶")
    assert much.endswith("1,000")
    assert none.endswith("nan")


def test_lines_are_rows_of_small_bars() -> None:
    rising = Line("rising", (0.0, 5.0), (1.0, 8.0), "")
    late = Line("late", (5.0, 9.0), (4.0, math.nan), "")
    never = Line("never", (), (), "")
    x, y = Axis("s", 0.0, 10.0), Axis("slots", 0.0, 8.0)
    panel = Panel("Over time", x, y, lines=(rising, late, never))
    lines = shown(Chart("it", "Two lines", (panel, Panel("empty", x, y))))
    assert lines[:2] == ["Two lines", "Over time; slots"]
    assert lines[2].split() == ["s,", "0", "to", "10", "middle", "at", "most"]
    assert lines[3].split() == ["rising", "▁" * 20 + "█" * 20, "8.00", "8.00"]
    assert lines[4].split() == ["late", "▄" * 16, "4.00", "4.00"]
    assert lines[5].split() == ["never", "–", "–"]
    assert len(lines) == 6


def test_a_logarithmic_axis_is_shown_as_one() -> None:
    line = Line("it", (1.0, 10.0), (0.0, 1.0), "")
    panel = Panel(
        "Errors", Axis("error", 1.0, 100.0, "log"), Axis("share", 0.0, 1.0), lines=(line,)
    )
    lines = shown(Chart("it", "Errors", (panel,)))
    assert "error, 1 to 100 (log)" in lines[2]
    assert lines[3].split()[1] == "█" * 20


def test_what_was_put_into_bars_can_be_read_from_them() -> None:
    panel = grid("A", 2, 2)
    assert [(c.group, c.name, c.value) for c in columns_of(panel)] == [
        ("load\n0", "policy 1", 1.0),
        ("load\n1", "policy 1", 2.0),
        ("load\n0", "policy 2", 2.0),
        ("load\n1", "policy 2", 3.0),
    ]
    assert columns_of(panel)[3].text == "3 (2.5 to 3.5)"
