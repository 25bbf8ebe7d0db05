"""The bench of the portfolio in virtual time: it repeats, and it keeps to its share of a core."""

from __future__ import annotations

import pytest

from bench.portfolio_live.__main__ import main
from bench.portfolio_live.loads import LOADS
from bench.portfolio_live.results import CANDIDATES, PORTFOLIO, Results, Seed
from bench.portfolio_live.virtual import MACHINE, Variant, fixed_run, portfolio_run
from queryard.portfolio import objective_of

PHASE_S = 1.5


def played(load: str, variant: Variant):
    draw, words = LOADS[load]
    objective, asked = objective_of(words), draw(MACHINE, PHASE_S, 0)
    document = {"objective": words, "candidates": ["marshal", "swrd"]}
    return portfolio_run(document, objective, asked, 0, variant)


def test_a_run_is_the_same_again_and_ends_all_queries():
    draw, words = LOADS["flood"]
    asked = draw(MACHINE, PHASE_S, 0)
    first, again = played("flood", Variant()), played("flood", Variant())
    assert first == again
    assert first.chosen
    assert len(first.schedule.queries) == len(asked)
    fixed = fixed_run("marshal", objective_of(words), asked, 0)
    assert {each.id for each in fixed.schedule.queries} == {each.id for each in asked}


@pytest.mark.parametrize("variant", [Variant(), Variant(reflects=False, remembers=False)])
def test_deciding_keeps_to_its_share_in_a_short_run_too(variant):
    found = played("deadlines", variant)
    assert 0.0 < found.cpu_s <= 0.05 * found.took_s + 0.01


def test_what_is_shown():
    scores = {PORTFOLIO: 2.2, "marshal": 4.0, "fifo": 8.0, "swrd": 2.0, "edf": 3.0}
    seed = Seed(3, 10, scores, cpu_s=0.1, took_s=10.0, chosen=("swrd", "swrd"))
    results = Results("flood", "fair to tenants", [seed, seed])
    assert (seed.best, seed.apart, seed.ratio) == ("swrd", 4.0, pytest.approx(1.1))
    of_best, mean, over_all, apart, share = results.figures()
    assert of_best.value == mean.value == over_all.value == pytest.approx(1.1)
    assert (of_best.reached, apart.value, share.value) == (False, 4.0, 0.01)
    assert results.table().row_count == len(CANDIDATES) + 2


def test_it_prints_its_tables(capsys):
    main(["--virtual", "--seeds=1", "--only=flood", f"--phase-s={PHASE_S}"])
    told = capsys.readouterr().out
    assert "flood, seed 0" in told
    assert "share of a core" in told


def test_unknown_names_are_told(capsys):
    for wrong in ("--only=none", "--without=none"):
        with pytest.raises(SystemExit):
            main(["--virtual", wrong])
        assert "'none' (valid: " in capsys.readouterr().err
