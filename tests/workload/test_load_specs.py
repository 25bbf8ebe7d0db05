"""Specs of loads: what they may say, and what is said of their mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from queryard.core.errors import InvalidRecord
from queryard.core.model import Tenant
from queryard.workload.load import Amount, Arrivals, LoadSpec, read_spec

WHOLE = """
name = "day"
seed = 3
duration = "2 min"
slots = 2
memory = "2 GB"
profile = "fair"

[data]
tpch = { small = 0.01, big = 0.1 }

[arrivals]
kind = "bursty"
load = 0.8
on = "5 s"
off = "15 s"

[[tenants]]
name = "dashboard"
weight = 2
guarantee = 0.3
cap = 0.9
share = 6
priority = 5
variants = 2
mix = ["small.q06", "small.q1?"]

[[tenants]]
name = "batch"
arrivals = { kind = "at once", start = "10 s" }
queries = 4
deadline = "1 min"
[tenants.mix]
big.q09 = 3
"big.q2*" = 1
"""


@pytest.fixture
def read(tmp_path: Path):
    def read(text: str) -> LoadSpec:
        file = tmp_path / "spec.toml"
        file.write_text(text)
        return read_spec(file)

    return read


def test_everything_a_spec_can_say(read):
    spec = read(WHOLE)
    assert (spec.name, spec.seed, spec.profile) == ("day", 3, "fair")
    assert (spec.slots, spec.memory_bytes) == (2, 2_000_000_000)
    assert spec.amount == Amount(duration_s=120.0)
    assert spec.arrivals == Arrivals("bursty", load=0.8, on_s=5.0, off_s=15.0)
    assert spec.data.tpch == {"small": 0.01, "big": 0.1}
    assert len(spec.templates) == 44
    dashboard, batch = spec.askers
    assert spec.tenants == (Tenant("dashboard", 2, 0.3, 0.9), Tenant("batch"))
    assert (dashboard.share, dashboard.priority, dashboard.variants) == (6, 5, 2)
    assert dashboard.mix["small.q06"] == 1.0
    assert dashboard.mix["small.q10"] == 0.1  # a pattern divides its weight
    assert (batch.deadlines, batch.deadline_s) == (1.0, 60.0)
    assert batch.arrivals == Arrivals("at once", start_s=10.0)
    assert batch.amount == Amount(queries=4)
    assert batch.mix["big.q09"] == 3.0
    assert sum(batch.mix.values()) == pytest.approx(4.0)


def test_a_spec_needs_hardly_anything(read):
    spec = read("[data]\ntpch = { tiny = 0.01 }")
    assert (spec.name, spec.amount, spec.arrivals) == ("spec", Amount(100), Arrivals("at once"))
    assert [asker.name for asker in spec.askers] == ["default"]
    assert set(spec.askers[0].mix) == set(spec.templates)
    assert spec.tenants == ()  # nothing is settled between tenants


def test_a_folder_of_sql_files_over_data_of_ones_own(read, tmp_path: Path):
    folder = tmp_path / "queries"
    folder.mkdir()
    (folder / "sales.sql").write_text("SELECT 1;\n")
    (folder / "notes.txt").write_text("not a query")
    spec = read('[data]\nplace = "shop"\nsql = "queries"')
    assert list(spec.templates) == ["sales"]
    assert spec.data.place == tmp_path / "shop"


TPCH = "[data]\ntpch = { s = 0.01 }\n"
MISTAKES = {
    "nothing to read": ("queries = 3", "line 1: what is read?"),
    "an unknown field": ("querys = 3\n" + TPCH, "line 1, querys: unknown field 'querys'"),
    "both kinds of data": ('[data]\ntpch = { s = 1 }\nplace = "."', "line 1, data: give either"),
    "neither kind of data": ("[data]", "line 1, data: give either"),
    "a scale that is none": ("[data]\ntpch = { s = 0 }", "line 2, data, tpch: a scale is"),
    "a schema that is none": ('[data]\ntpch = { "a b" = 1 }', "data, tpch: 'a b': letters"),
    "nothing to ask": ('[data]\nplace = "."', "data: there is nothing to ask"),
    "no sql files": ('[data]\nplace = "."\nsql = "."', "line 3, data, sql: .*no .sql files"),
    "two amounts": ('queries = 3\nduration = 5\n' + TPCH, "line 1, queries: duration says"),
    "no time at all": ('arrivals = {rate = 1}\nduration = 0\n' + TPCH, "line 2, duration"),
    "how many at once": ('duration = 5\n' + TPCH, "line 1, duration: does not say how many"),
    "unknown arrivals": ('arrivals = "posson"\n' + TPCH, "did you mean 'poisson'"),
    "arrivals that need more": ('arrivals = "poisson"\n' + TPCH, "line 1, arrivals: say more"),
    "neither rate nor load": ('arrivals = { kind = "poisson" }\n' + TPCH, "give either rate"),
    "a field of another kind": (
        'arrivals = { kind = "every", rate = 3 }\n' + TPCH,
        "line 1, arrivals, rate: unknown field",
    ),
    "every 0 s": ('arrivals = { kind = "every", every = 0 }\n' + TPCH, "every: must be above 0"),
    "bursts of nothing": (
        'arrivals = { kind = "bursty", rate = 1, on = 0, off = 1 }\n' + TPCH,
        "on: must be above 0",
    ),
    "two of a name": (
        TPCH + '[[tenants]]\nname = "a"\n[[tenants]]\nname = "a"',
        "line 6, tenant 'a', name: two tenants",
    ),
    "too many guarantees": (
        TPCH + '[[tenants]]\nname = "a"\nguarantee = 0.6\n[[tenants]]\nname="b"\nguarantee = 0.6',
        "line 8, tenant 'b', guarantee: the guarantees add up to 1.2",
    ),
    "a guarantee above the cap": (
        TPCH + '[[tenants]]\nname = "a"\nguarantee = 0.6\ncap = 0.5',
        "line 5, tenant 'a', guarantee: 0.6 is above the cap of 0.5",
    ),
    "an unknown query": (
        TPCH + '[[tenants]]\nname = "a"\nmix = ["s.q23"]',
        "line 5, tenant 'a', mix: unknown query 's.q23'; did you mean",
    ),
    "a weight of nothing": (
        TPCH + '[[tenants]]\nname = "a"\n[tenants.mix]\ns.q01 = 0',
        "line 6, tenant 'a', mix: a weight is a number above 0",
    ),
    "a count without arrivals": (
        TPCH + '[[tenants]]\nname = "a"\nqueries = 3',
        "queries: belongs to arrivals of its own",
    ),
    "arrivals without a count": (
        TPCH + '[[tenants]]\nname = "a"\narrivals = "at once"',
        "arrivals: how many",
    ),
    "a share beside arrivals": (
        TPCH + '[[tenants]]\nname = "a"\nshare = 2\nqueries = 1\narrivals = "at once"',
        "line 5, tenant 'a', share",
    ),
    "a tenant's recording": (
        TPCH + '[[tenants]]\nname = "a"\narrivals = { kind = "recorded", file = "x.csv" }',
        "a recording names its tenants itself",
    ),
    "two kinds of deadline": (
        TPCH + '[[tenants]]\nname = "a"\ndeadline = 5\ntightness = [1, 2]',
        "tightness: deadline says the same",
    ),
    "a tightness that is none": (
        TPCH + '[[tenants]]\nname = "a"\ntightness = [3, 1]',
        "tightness: expected two factors",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named_where_they_stand(read, mistake: str):
    text, message = MISTAKES[mistake]
    with pytest.raises(InvalidRecord, match=message) as raised:
        read(text)
    assert "spec.toml, line " in str(raised.value)
