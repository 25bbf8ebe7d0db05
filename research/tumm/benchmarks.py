"""Three jobs of one benchmark under fixed ratios of map to reduce slots and under TuMM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from queryard.policies.splits.best_static import best_static
from research.bars import bar_keys, bar_panel
from research.judging import beside, judge, whether
from research.numbers import ROUNDED, as_percent
from research.outcome import Chart, Experiment, Finding, Outcome, RunOptions, Table, interval
from research.trials import Profiles, Setting, change, over_seeds, pick

from .clusters import HOMOGENEOUS, SLOW_START, setting
from .jobs import BATCH, BENCHMARKS, CLASSIFICATION, GREP, INVERTED_INDEX, Benchmark, batch
from .shared import COMMON_PARAMETERS, STATIC, TUMM, makespan_s
from .variants import Gains, measure_variants, variants_table

COMPARED: Profiles = {
    **STATIC,
    "Fair, 2:2": {"order": "fair-jobs", "slots": "static"},
    "no kinds": {"slots": "open"},
    **TUMM,
}
# Under which fixed ratio the paper says each batch was fastest; of Grep it says that 1:3 is slower.
BEST_STATIC = {
    "Inverted Index": "1:3",
    "Histogram Rating": "3:1",
    "Classification": "3:1",
    "Grep": "2:2",
}
# Which phase it says is longer with 2:2.
LONGER = {INVERTED_INDEX: "reduces", CLASSIFICATION: "maps", GREP: "reduces"}

NOTES = (
    "TuMM's gain over 2:2 comes from slots that may change their kind, not from reduces that "
    "wait: with slow start 1 the fixed ratios take as long as before, their reduce slots being "
    "empty in place of held, and TuMM gains more, as no waiting reduce holds any of its slots",
    "Slots without kinds (not in the paper) are never idle and yet slower than TuMM: four tasks "
    "of a kind on a node slow each other most. Without contention they are the fastest of all",
    "Grep has more map than reduce work here, against §2: Table 4 has it so on Heter1, and how "
    "many maps and reduces §2 had is not printed (see tumm-fifo-fair). 2:2 before 1:3 holds anyway",
    "Absolute seconds cannot be compared: the paper prints none for these batches",
)

# Benchmark -> scheduler -> makespan of every seed.
Makespans = Mapping[str, Mapping[str, Sequence[float]]]


def _build(kind: Benchmark, seed: int) -> Setting:
    return setting(batch([kind] * BATCH))


def run(options: RunOptions) -> Outcome:
    found = {
        kind.name: pick(
            over_seeds(options, kind.name, partial(_build, kind.sized(options.size)), COMPARED),
            makespan_s,
        )
        for kind in BENCHMARKS
    }
    gains = measure_variants(options)
    return Outcome(
        (
            *_against_two_two(found),
            *_best(found),
            *_longer_phases(),
            _utilisation(found),
            _late_reduces(gains),
        ),
        (_makespans(found), variants_table(gains, options)),
        (_chart(found),),
        NOTES,
    )


def _late_reduces(gains: Gains) -> Finding:
    early, late = gains["slow start", SLOW_START][0], gains["slow start", 1.0][0]
    return Finding(
        "TuMM against 2:2 if no reduce holds a slot early (slow start 1)",
        "not measured; §2 blames reduces that wait",
        f"{as_percent(late)}; {as_percent(early)} with early ones",
        note="a fixed reduce slot is lost to maps whether a reduce waits in it or nothing does",
    )


def _against_two_two(found: Makespans) -> list[Finding]:
    gains = {name: change(of["TuMM"], of["2:2"]) for name, of in found.items()}
    by_seed = [
        sum(of["TuMM"][seed] / of["2:2"][seed] - 1.0 for of in found.values()) / len(found)
        for seed in range(len(found[INVERTED_INDEX.name]["TuMM"]))
    ]
    wins = [
        name
        for name, of in found.items()
        if all(sum(of["TuMM"]) < sum(of[ratio]) for ratio in (*STATIC, "Fair, 2:2"))
    ]
    return [
        beside(
            "TuMM against 2:2: mean of the five benchmarks", -0.2, interval(by_seed), as_percent
        ),
        beside("TuMM against 2:2: Inverted Index", -0.28, gains[INVERTED_INDEX.name], as_percent),
        Finding(
            "Inverted Index gains most",
            "yes",
            "yes" if min(gains, key=lambda name: gains[name].mean) == INVERTED_INDEX.name else "no",
            whether(min(gains, key=lambda name: gains[name].mean) == INVERTED_INDEX.name),
        ),
        Finding(
            "TuMM is faster than every fixed ratio",
            "5 of 5 benchmarks",
            f"{len(wins)} of {len(found)}",
            whether(len(wins) == len(found)),
        ),
    ]


def _best(found: Makespans) -> list[Finding]:
    findings = []
    for name, printed in BEST_STATIC.items():
        ours = min(STATIC, key=lambda ratio: sum(found[name][ratio]))
        findings.append(
            Finding(f"Best fixed ratio: {name}", printed, ours, whether(ours == printed))
        )
    return findings


def _longer_phases() -> list[Finding]:
    findings = []
    for kind, printed in LONGER.items():
        maps_s, reduces_s = kind.work_s
        ours = "maps" if maps_s > reduces_s else "reduces"
        findings.append(
            Finding(
                f"Longer phase with 2:2: {kind.name}",
                printed,
                f"{ours} ({maps_s:,.0f} s of maps, {reduces_s:,.0f} s of reduces)",
                whether(ours == printed),
                "" if ours == printed else "Table 4, 160 maps and 80 reduces leave no other",
            )
        )
    return findings


def _utilisation(found: Makespans) -> Finding:
    of = found[CLASSIFICATION.name]
    gain = change([1 / value for value in of["3:1"]], [1 / value for value in of["2:2"]])
    return Finding(
        "CPU use of Classification, 3:1 against 2:2",
        "+20 %",
        gain.text(as_percent),
        judge(0.2, gain),
        "the same work in less time: ours is the ratio of makespans; processors are not simulated",
    )


def _makespans(found: Makespans) -> Table:
    slots = sum(node.slots for node in HOMOGENEOUS)
    rows = []
    for kind in BENCHMARKS:
        of = found[kind.name]
        maps, reduces = best_static([kind.work_s] * BATCH, slots)
        rows.append(
            (
                kind.name,
                *(interval(of[name]).text(ROUNDED) for name in COMPARED),
                change(of["TuMM"], of["2:2"]).text(as_percent),
                f"{maps}:{reduces}",
            )
        )
    columns = ("batch of three", *COMPARED, "TuMM against 2:2", f"Alg. 1, of {slots} slots")
    return Table("Makespan (s)", columns, tuple(rows))


def _chart(found: Makespans) -> Chart:
    values = {name: [interval(found[kind.name][name]) for kind in BENCHMARKS] for name in COMPARED}
    groups = [kind.name.replace(" ", "\n") for kind in BENCHMARKS]
    panel = bar_panel("Batches of three jobs", "makespan (s)", groups, values)
    title = "Fixed slots and TuMM, 4 nodes of 4 slots"
    return Chart("tumm-benchmarks", title, (panel,), bar_keys(list(COMPARED)))


EXPERIMENT = Experiment(
    "tumm-benchmarks",
    "TuMM and fixed slot ratios, one benchmark at a time",
    "TuMM §2 and §6.2.1, Fig. 1 and 7",
    run,
    {
        **COMMON_PARAMETERS,
        "input": "10 GB of ratings (Histogram, Classification, Grep) or 7 GB of text, in blocks "
        "of 64 MB: 160 or 112 maps",
        "reduces of a job": "80, Inverted Index 150, as in the heterogeneous clusters",
    },
)
