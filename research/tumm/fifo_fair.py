"""Three Greps at once: one after another, or side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from research.bars import bar_keys, bar_panel
from research.judging import judge, remark
from research.numbers import ROUNDED, as_percent
from research.outcome import Chart, Experiment, Finding, Outcome, RunOptions, Table, interval
from research.trials import Profiles, Setting, change, over_seeds, pick

from .clusters import SLOW_START, setting
from .jobs import BATCH, GREP, Benchmark, batch
from .shared import COMMON_PARAMETERS, STATIC, makespan_s

COMPARED: Profiles = {"FIFO": STATIC["2:2"], "Fair": {"order": "fair-jobs", **STATIC["2:2"]}}
PRINTED_S = {"FIFO": 594.0, "Fair": 772.0}
# §4.3 on these very jobs: a map takes 18.5 s alone on its node, 23.1 s beside another.
PRINTED_MAP_S = 18.5
USUAL = "160 maps of 64 MB"

# Title, jobs and slow start; the first is as in all other experiments.
CASES: tuple[tuple[str, Benchmark, float], ...] = (
    (USUAL, GREP, SLOW_START),
    ("80 maps of 128 MB, 18.5 s", replace(GREP, maps=80, map_s=PRINTED_MAP_S), SLOW_START),
    ("40 maps of 256 MB, 18.5 s", replace(GREP, maps=40, map_s=PRINTED_MAP_S), SLOW_START),
    ("160 maps, 40 reduces", replace(GREP, reduces=40), SLOW_START),
    ("160 maps, 160 reduces", replace(GREP, reduces=160), SLOW_START),
    ("160 maps, slow start 1", GREP, 1.0),
)

Found = Mapping[str, Sequence[float]]


def _build(kind: Benchmark, slow_start: float, seed: int) -> Setting:
    return setting(batch([kind] * BATCH), slow_start=slow_start)


def run(options: RunOptions) -> Outcome:
    cases: dict[str, Found] = {}
    for title, kind, slow_start in CASES:
        build = partial(_build, kind, slow_start)
        cases[title] = pick(over_seeds(options, title, build, COMPARED), makespan_s)
    printed = PRINTED_S["Fair"] / PRINTED_S["FIFO"] - 1.0
    gain = change(cases[USUAL]["Fair"], cases[USUAL]["FIFO"])
    finding = Finding(
        "Makespan of three Greps, Fair against FIFO",
        f"{as_percent(printed)} (772 s, 594 s)",
        gain.text(as_percent),
        judge(printed, gain),
        remark(printed, gain),
    )
    return Outcome(
        (finding,),
        (_table(cases),),
        (_chart(cases),),
        (
            "Side by side all maps end late and hardly any reduce can overlap with them; one after "
            "another, a job's reduces run beside the next job's maps",
            "The printed seconds do not fit together with blocks of 64 MB: three times 160 maps of "
            "23.1 s on 8 map slots are 1,386 s, not 594 s. Maps must have been fewer: with 40 of "
            "256 MB Grep has more reduce than map work, as §2 says of it",
        ),
    )


def _table(cases: Mapping[str, Found]) -> Table:
    rows = [
        ("printed", *(ROUNDED(value) for value in PRINTED_S.values()), as_percent(772 / 594 - 1))
    ]
    for title, found in cases.items():
        times = (interval(found[name]).text(ROUNDED) for name in COMPARED)
        rows.append((title, *times, change(found["Fair"], found["FIFO"]).text(as_percent)))
    return Table("Makespan (s)", ("jobs", *COMPARED, "Fair against FIFO"), tuple(rows))


def _chart(cases: Mapping[str, Found]) -> Chart:
    values = {name: [interval(found[name]) for found in cases.values()] for name in COMPARED}
    groups = [
        title.replace(", ", "\n").replace(" of ", "\nof ").replace(" reduces", "\nreduces")
        for title in cases
    ]
    panel = bar_panel("Slots 2:2", "makespan (s)", groups, values)
    return Chart("tumm-fifo-fair", "Three Greps", (panel,), bar_keys(list(COMPARED)))


EXPERIMENT = Experiment(
    "tumm-fifo-fair",
    "FIFO and Fair with fixed slots: three Greps",
    "TuMM §3.1",
    run,
    {**COMMON_PARAMETERS, "slots": "2:2 on each node for both"},
)
