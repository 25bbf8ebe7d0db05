"""A long-tailed mix: 85 % small queries, some of a few seconds, three of 20 s to a minute.

100 queries arrive by a Poisson process at 80 % load. Beside plain DuckDB stands clairvoyant
shortest remaining work first, simulated as a fluid on what each template was measured to take
alone; and the same with slots that overstay as those of the session did (see `overstaying`). The
history is empty at the start of every run, or, with `--history warm`, holds one run of every
template with other parameters. Slowdown is the response over the time alone; the largest query is
the one with the most work.

python -m bench.live.long_tail [--seeds 5]: about 4 min per run on two cores, two runs per seed; it
prints an estimate first. `--scale-time 0.2` shrinks all data, and with it the time, to a fifth.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random

from queryard.load import Alone, Ground, LoadSpec, Played, Request, draw, ideals, run

from . import mixes
from .overstaying import clairvoyant, play_watched, shortest, told
from .setting import OURS, PLAIN, Setting, checked, in_turn, setting
from .verdict import Figure, show

QUERIES, LOAD = 100, 0.8
SRPT = "clairvoyant SRPT"
STEPS = "SRPT, overstaying"


class _Responses:
    """Response and slowdown by request."""

    def __init__(self, responses_s: Mapping[str, float], alone_s: Mapping[str, float]) -> None:
        self.mean_s = statistics.fmean(responses_s.values())
        self.slowdowns = {name: took_s / alone_s[name] for name, took_s in responses_s.items()}
        self.mean_slowdown = statistics.fmean(self.slowdowns.values())


def bench(chosen: Setting) -> None:
    size = chosen.given.scale_time or (0.1 if chosen.quick else 1.0)
    ground = chosen.ground(*mixes.scales(size))
    spec = mixes.spec("long tail", mixes.long_tailed(size), QUERIES, size, LOAD)
    measured = chosen.measure(ground, [spec])
    _estimate(chosen, spec, measured.work_s)
    found = []
    with tempfile.TemporaryDirectory(prefix="queryard-bench-") as temporary:
        past = Path(temporary) / "past.sqlite"
        if chosen.given.history == "warm":
            _remember(spec, ground, past)
        for seed in range(chosen.seeds):
            asked = draw(spec, seed=seed, work_s=measured.work_s, slots=ground.slots)
            found.append(_one_seed(seed, asked, ground, measured.alone, past))
    largest = [_largest(one[PLAIN], measured.alone) for one, _ in found]
    seen = [seen for _, seen in found]
    figures = [
        Figure(f"mean response of {SRPT}'s", _ratios(seen, SRPT, "mean_s"), 1.2),
        Figure("mean response of plain DuckDB's", _ratios(seen, PLAIN, "mean_s"), 0.75),
        Figure("mean slowdown of plain DuckDB's", _ratios(seen, PLAIN, "mean_slowdown"), 0.55),
        Figure(f"mean slowdown of {STEPS}'s", _ratios(seen, STEPS, "mean_slowdown")),
        Figure(
            f"{STEPS}: mean slowdown of plain DuckDB's",
            [one[STEPS].mean_slowdown / one[PLAIN].mean_slowdown for one in seen],
        ),
        Figure(
            "largest query's slowdown, largest over seeds, of plain DuckDB's",
            [
                max(one[OURS].slowdowns[name] for one, name in zip(seen, largest, strict=True))
                / max(one[PLAIN].slowdowns[name] for one, name in zip(seen, largest, strict=True))
            ],
            1.5,
        ),
    ]
    for name in (OURS, PLAIN, SRPT, STEPS):
        figures.append(Figure(f"{name}: mean response", [o[name].mean_s for o in seen], unit="s"))
        figures.append(Figure(f"{name}: mean slowdown", [o[name].mean_slowdown for o in seen]))
    title = f"a long-tailed mix, {chosen.given.history} history"
    show(title, figures, chosen, size=size)


def _one_seed(
    seed: int, asked: Sequence[Request], ground: Ground, alone: Mapping[str, Alone], past: Path
) -> tuple[dict[str, Played], dict[str, _Responses]]:
    own = None
    if past.exists():
        own = past.with_name(f"warm-{seed}.sqlite")
        shutil.copy(past, own)
    overstays: dict[str, list[float]] = {}

    def ours() -> Played:
        one, seen = play_watched(asked, OURS, ground, alone, own)
        overstays.update(seen)
        return one

    played = in_turn(
        seed,
        {
            PLAIN: partial(run, asked, PLAIN, ground, alone),
            OURS: ours,
        },
    )
    checked(played)
    alone_s = {ask.id: alone[ask.template].alone_s for ask in asked}
    seen = {
        name: _Responses({o.request.id: o.response_s or 0.0 for o in one.outcomes}, alone_s)
        for name, one in played.items()
    }
    (best,) = [ideal for ideal in ideals(asked, alone, ground.slots) if ideal.name == SRPT]
    seen[SRPT] = _Responses(best.responses_s, alone_s)
    with_steps = clairvoyant(asked, alone, ground.slots, shortest, overstays, seed)
    seen[STEPS] = _Responses(with_steps, alone_s)
    print(f"  seed {seed}: {told(overstays)}", flush=True)
    for name, one in seen.items():
        span = f", span {played[name].span_s:5.0f} s" if name in played else ""
        print(
            f"  seed {seed}: {name:17} mean {one.mean_s:6.2f} s, mean slowdown "
            f"{one.mean_slowdown:6.2f}{span}",
            flush=True,
        )
    return played, seen


def _ratios(seen: Sequence[Mapping[str, _Responses]], of: str, figure: str) -> list[float]:
    return [getattr(one[OURS], figure) / getattr(one[of], figure) for one in seen]


def _largest(played: Played, alone: Mapping[str, Alone]) -> str:
    """The request with the most work."""
    most = max(played.outcomes, key=lambda outcome: alone[outcome.request.template].work_s)
    return most.request.id


def _remember(spec: LoadSpec, ground: Ground, past: Path) -> None:
    """Run every template once, one after another, into a history."""
    rng = Random("past")
    asked = [
        Request(name, float(at) / 1000, "default", name, template.text(rng))
        for at, (name, template) in enumerate(spec.templates.items())
        if any(name in asker.mix for asker in spec.askers)
    ]
    print(f"every one of {len(asked)} templates once, for the warm history", flush=True)
    checked({OURS: run(asked, "fifo", ground, {}, history=past)})


def _estimate(chosen: Setting, spec: LoadSpec, work_s: Mapping[str, float]) -> None:
    total_s = 0.0
    for seed in range(chosen.seeds):
        asked = draw(spec, seed=seed, work_s=work_s, slots=chosen.slots)
        total_s += sum(work_s[ask.template] for ask in asked) / (LOAD * chosen.slots)
    total_s *= 2 * 1.15  # both, and what is left when the last one has come
    print(
        f"this takes about {total_s / 60:.0f} min ({chosen.seeds} seeds, 2 runs each)", flush=True
    )


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scale-time", type=float, help="shrink all sizes by this factor")
    parser.add_argument("--history", choices=("empty", "warm"), default="empty")


def main(arguments: Sequence[str] | None = None) -> None:
    bench(setting("long_tail", __doc__, arguments, _options))


if __name__ == "__main__":
    main()
